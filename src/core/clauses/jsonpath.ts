import {
  type FilterFunction,
  FunctionExpressionType,
  JSONPathEnvironment,
  JSONPathNode,
  JSONPathNodeList,
  type JSONValue,
  jsonpath,
  Nothing,
  TokenKind,
} from "json-p3";
import { jsonEquals } from "./document.ts";
import { DOCUMENT_DEPTH_MAX, JSONPATH_LENGTH_MAX } from "./limits.ts";
import { compileIRegexp, type Pattern, PatternProblem } from "./pattern.ts";

// JSONPath of RFC 9535, by json-p3. No path runs code. What json-p3 does otherwise than the RFC, or by native
// regular expressions, which can give wrong answers (see pattern.ts), is replaced here.

const PATTERNS_MAX = 256;

const {
  FilterExpressionLiteral,
  FunctionExtension,
  InfixExpression,
  NumberLiteral,
  PrefixExpression,
  RelativeQuery,
  StringLiteral,
} = jsonpath.expressions;
type Expression = InstanceType<typeof jsonpath.expressions.FilterExpression>;
type WellTyped = Parameters<JSONPathEnvironment["checkWellTypedness"]>;

class Environment extends JSONPathEnvironment {
  /** A pattern that cannot be matched is refused where it is written out in the path, and not only when it is tried. */
  override checkWellTypedness(...[token, args]: WellTyped): WellTyped[1] {
    const checked = super.checkWellTypedness(token, args);
    if (args.some((argument) => bracketed.has(argument))) throw new Error("an argument in brackets");
    const [, pattern] = args;
    if ((token.value === "match" || token.value === "search") && pattern instanceof StringLiteral)
      compileIRegexp(pattern.value, token.value);
    return checked;
  }

  protected override setupFilterFunctions(): void {
    super.setupFilterFunctions();
    this.functionRegister.set("match", patternFunction("match"));
    this.functionRegister.set("search", patternFunction("search"));
    this.functionRegister.set("length", new ScalarLength());
  }
}

/** `length()` of a text counts Unicode scalar values (RFC 9535, 2.4.4); json-p3 counts UTF-16 units. */
class ScalarLength extends jsonpath.functions.Length {
  override call(value: unknown): ReturnType<jsonpath.functions.Length["call"]> {
    return typeof value === "string" ? [...value].length : super.call(value);
  }
}

function patternFunction(name: "match" | "search"): FilterFunction {
  const patterns = new Map<string, Pattern | null>();
  const compile = (source: string): Pattern | null => {
    const known = patterns.get(source);
    if (known !== undefined) return known;
    if (patterns.size >= PATTERNS_MAX) patterns.clear();
    const pattern = compileIRegexp(source, name);
    patterns.set(source, pattern);
    return pattern;
  };
  return {
    argTypes: [FunctionExpressionType.ValueType, FunctionExpressionType.ValueType],
    returnType: FunctionExpressionType.LogicalType,
    call: (text: unknown, source: unknown) =>
      typeof text === "string" && typeof source === "string" && (compile(source)?.test(text) ?? false),
  };
}

const NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/;

/** Expressions that stand in brackets. They may not be compared, nor be arguments. */
const bracketed = new WeakSet<Expression>();

const isLogical = (expression: Expression): boolean =>
  expression instanceof InfixExpression || expression instanceof PrefixExpression;

const evaluateInfix = InfixExpression.prototype.evaluate;
/** json-p3 compares texts by UTF-16 units, and takes an array for an object with its indexes as keys. */
InfixExpression.prototype.evaluate = function evaluate(context) {
  if (this.logical) return evaluateInfix.call(this, context);
  const left = comparable(this.left.evaluate(context));
  const right = comparable(this.right.evaluate(context));
  const equal = left === Nothing || right === Nothing ? left === right : jsonEquals(left, right);
  switch (this.operator) {
    case "==":
      return equal;
    case "!=":
      return !equal;
    case "<":
      return isLess(left, right);
    case ">":
      return isLess(right, left);
    case "<=":
      return equal || isLess(left, right);
    default:
      return equal || isLess(right, left);
  }
};

/** In a filter inside of a filter json-p3 takes the value that the outer one looks at for the document, which is `$`. */
RelativeQuery.prototype.evaluate = function evaluate({ currentValue, rootValue }) {
  let nodes: Iterable<JSONPathNode> = [new JSONPathNode(currentValue, [], rootValue)];
  for (const segment of this.path.segments) nodes = segment.lazyResolve(nodes);
  return new JSONPathNodeList([...nodes]);
};

/** What a side of a comparison stands for. A query there selects one node at most. */
function comparable(side: unknown): unknown {
  if (!(side instanceof JSONPathNodeList)) return side;
  return side.nodes.length === 1 ? side.nodes[0]?.value : Nothing;
}

function isLess(left: unknown, right: unknown): boolean {
  if (typeof left === "number" && typeof right === "number") return left < right;
  return typeof left === "string" && typeof right === "string" && isTextLess(left, right);
}

/** By code points (RFC 9535, 2.3.5.2.2). */
function isTextLess(left: string, right: string): boolean {
  let at = 0;
  while (at < left.length && left.charCodeAt(at) === right.charCodeAt(at)) at++;
  // The first difference may be in the second half of a character.
  if (at > 0 && (left.charCodeAt(at - 1) & 0xfc00) === 0xd800) at--;
  return (left.codePointAt(at) ?? -1) < (right.codePointAt(at) ?? -1);
}

/** `..` visits the document, what is inside of its levels, and stops before the limit. */
const environment = new Environment({ maxRecursionDepth: DOCUMENT_DEPTH_MAX + 2 });
keepToGrammar(environment);

/** What is used here of json-p3's parser, whose types the package does not export. */
type Stream = { readonly current: Token; readonly peek: Token };
type Token = { readonly kind: TokenKind; readonly value: string };
type Parser = {
  parse(stream: { readonly tokens: readonly Token[] }): unknown;
  readonly tokenMap: Map<TokenKind, (this: Parser, stream: Stream) => Expression>;
  decodeString(token: Token): string;
  stringFromCodePoint(point: number): string;
  throwForNonComparable(expression: Expression): void;
  throwForLiteral(expression: Expression): void;
};

/**
 * json-p3 refuses numbers that begin with `0.` and escapes of control characters, and takes numbers such as `-01`, comparisons of
 * what is negated or in brackets, `!!`, names such as `.a-b`, slices such as `[0:1 2]`, and a comma after the last argument.
 */
function keepToGrammar(environment: Environment): void {
  // biome-ignore lint/complexity/useLiteralKeys: it is private, and TypeScript takes it only so.
  const parser = environment["parser"] as Parser;
  const { decodeString, parse, throwForNonComparable, tokenMap } = parser;
  const [parseBracketed, parseNegated] = [tokenMap.get(TokenKind.LPAREN), tokenMap.get(TokenKind.NOT)];
  const refuseValue = (expression: Expression): void => {
    const isCall = expression instanceof FunctionExtension;
    const gives = isCall ? environment.functionRegister.get(expression.name)?.returnType : null;
    if (expression instanceof FilterExpressionLiteral || gives === FunctionExpressionType.ValueType)
      throw new Error("a value that is neither compared nor an argument");
  };
  parser.parse = (stream) => {
    for (const [at, { kind, value }] of stream.tokens.entries()) {
      const next = stream.tokens[at + 1];
      if (kind === TokenKind.NAME && value.includes("-"))
        throw new Error(`a name after a point has no "-": ['${value}'] is how it is written`);
      if (kind === TokenKind.INDEX && next?.kind === TokenKind.INDEX)
        throw new Error(`nothing between ${value} and ${next.value}`);
      if (kind === TokenKind.COMMA && next?.kind === TokenKind.RPAREN)
        throw new Error("no argument after a comma");
    }
    return parse.call(parser, stream);
  };
  parser.throwForLiteral = refuseValue;
  parser.stringFromCodePoint = (point) => String.fromCodePoint(point);
  parser.decodeString = (token) => {
    if (/[^ -\uffff]/.test(token.value)) throw new Error("a control character in a string");
    return decodeString.call(parser, token);
  };
  parser.throwForNonComparable = (expression) => {
    if (bracketed.has(expression) || isLogical(expression))
      throw new Error("a comparison of what is no value");
    throwForNonComparable.call(parser, expression);
  };
  tokenMap.set(TokenKind.NUMBER, ({ current }) => {
    if (!NUMBER.test(current.value)) throw new Error(`a malformed number: ${current.value}`);
    return new NumberLiteral(current as never, Number(current.value));
  });
  tokenMap.set(TokenKind.LPAREN, (stream) => {
    const expression = parseBracketed?.call(parser, stream) as Expression;
    refuseValue(expression);
    bracketed.add(expression);
    return expression;
  });
  tokenMap.set(TokenKind.NOT, (stream) => {
    const expression = parseNegated?.call(parser, stream);
    if (!(expression instanceof PrefixExpression)) throw new Error("a malformed negation");
    const { right } = expression;
    if (right instanceof PrefixExpression && !bracketed.has(right))
      throw new Error("a negation of a negation");
    refuseValue(right);
    return expression;
  });
}

/**
 * Paths that were parsed without a problem. An organisation's warrants use the same few paths again and
 * again.
 */
const rightPaths = new Set<string>();
const RIGHT_PATHS_MAX = 256;

/** What is wrong with a path, or null. */
export function parseJsonPath(path: string): string | null {
  if (path.length > JSONPATH_LENGTH_MAX) return `must be at most ${JSONPATH_LENGTH_MAX} characters`;
  if (rightPaths.has(path)) return null;
  try {
    environment.compile(path);
  } catch (error) {
    if (error instanceof PatternProblem) return `has ${error.message}`;
    return `is not a JSONPath of RFC 9535: ${(error as Error).message.slice(0, 200)}`;
  }
  if (rightPaths.size >= RIGHT_PATHS_MAX) rightPaths.clear();
  rightPaths.add(path);
  return null;
}

/**
 * The values that a path selects, one at a time, in the document's order. Throws where the path is malformed, or where the
 * document or a pattern is more than can be evaluated. The clause fails then, also where the path negates the pattern.
 */
export function* select(path: string, document: unknown): Generator<unknown> {
  for (const node of environment.lazyQuery(path, document as JSONValue)) yield node.value;
}
