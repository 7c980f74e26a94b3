import {
  type FilterFunction,
  FunctionExpressionType,
  JSONPathEnvironment,
  type JSONValue,
  jsonpath,
} from "json-p3";
import { DOCUMENT_DEPTH_MAX, JSONPATH_LENGTH_MAX } from "./limits.ts";
import { compilePattern, type Pattern, PatternProblem } from "./pattern.ts";

// JSONPath of RFC 9535, by json-p3. No path runs code. json-p3 uses native regular expressions, which can
// give wrong answers (see pattern.ts), so they are replaced here.

const PATTERNS_MAX = 256;

class Environment extends JSONPathEnvironment {
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
    const pattern = isIRegexp(source) ? compilePattern(source, name) : null;
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

/** Whether json-p3 accepts it as an I-Regexp (RFC 9485). For any other pattern both functions answer false. */
function isIRegexp(source: string): boolean {
  const checker = new jsonpath.functions.Match({ cacheSize: 0, throwErrors: true });
  try {
    checker.call("", source);
    return true;
  } catch (error) {
    if (error instanceof Error && error.name === "IRegexpError") return false;
    throw new PatternProblem("not a regular expression");
  }
}

/** `..` visits the document, what is inside of its levels, and stops before the limit. */
const environment = new Environment({ maxRecursionDepth: DOCUMENT_DEPTH_MAX + 2 });

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
