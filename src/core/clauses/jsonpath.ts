import {
  type FilterFunction,
  FunctionExpressionType,
  JSONPathEnvironment,
  JSONPathNodeList,
  type JSONValue,
  jsonpath,
  Nothing,
} from "json-p3";
import { jsonEquals } from "./document.ts";
import { DOCUMENT_DEPTH_MAX, JSONPATH_LENGTH_MAX } from "./limits.ts";
import { compileIRegexp, type Pattern, PatternProblem } from "./pattern.ts";

// JSONPath of RFC 9535, by json-p3. No path runs code. What json-p3 does otherwise than the RFC, or by native
// regular expressions, which can give wrong answers (see pattern.ts), is replaced here.

const PATTERNS_MAX = 256;

const { InfixExpression, StringLiteral } = jsonpath.expressions;
type WellTyped = Parameters<JSONPathEnvironment["checkWellTypedness"]>;

class Environment extends JSONPathEnvironment {
  /** A pattern that cannot be matched is refused where it is written out in the path, and not only when it is tried. */
  override checkWellTypedness(...[token, args]: WellTyped): WellTyped[1] {
    const checked = super.checkWellTypedness(token, args);
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
allowEscapedControls(environment);

/** json-p3 refuses the escape of a control character as if the character stood there itself. */
function allowEscapedControls(environment: Environment): void {
  // biome-ignore lint/complexity/useLiteralKeys: it is private, and TypeScript takes it only so.
  const parser = environment["parser"];
  const decode: (token: { readonly value: string }) => string = parser.decodeString;
  parser.stringFromCodePoint = (point: number) => String.fromCodePoint(point);
  parser.decodeString = (token: { readonly value: string }) => {
    if (/[^ -\uffff]/.test(token.value)) throw new Error("a control character in a string");
    return decode.call(parser, token);
  };
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
