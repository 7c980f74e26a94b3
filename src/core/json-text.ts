/** JSON as people and programs send it, read so that nothing passes by mistake (decisions.md, Warrants). */

const DEPTH_MAX = 64;

/**
 * The value of a JSON text, or what is wrong with it, to follow the name of where it came from: broken JSON, a key twice in
 * one object, a lone surrogate, a number that is out of range, or nesting beyond 64.
 */
export function parseJsonText(text: string): { readonly value: unknown } | { readonly problem: string } {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return { problem: "is not JSON" };
  }
  const keys = countKeys(value);
  if (typeof keys === "string") return { problem: keys };
  // A key that is repeated was dropped by the parser: the text has a colon more than the value has keys.
  return keys === countColons(text) ? { value } : { problem: "has the same key twice in one object" };
}

/** How many keys the objects in a value have, or what is wrong with it. Keeps no scalar on the way: there may be a million. */
function countKeys(root: unknown): number | string {
  let count = 0;
  let level: object[] = [[root]];
  for (let depth = 0; level.length > 0; depth++) {
    if (depth > DEPTH_MAX) return `is nested deeper than ${DEPTH_MAX}`;
    const next: object[] = [];
    for (const parent of level) {
      if (Array.isArray(parent)) {
        for (const child of parent) {
          const problem = problemWith(child, next);
          if (problem !== null) return problem;
        }
        continue;
      }
      for (const key of Object.keys(parent)) {
        if (!key.isWellFormed()) return "has a lone surrogate in a key";
        const problem = problemWith((parent as Readonly<Record<string, unknown>>)[key], next);
        if (problem !== null) return problem;
        count += 1;
      }
    }
    level = next;
  }
  return count;
}

/** What is wrong with a scalar; what is none goes to the next level. */
function problemWith(value: unknown, next: object[]): string | null {
  if (typeof value === "string" && !value.isWellFormed()) return "has a lone surrogate in a string";
  // Beyond 2^53 a reader rounds: what is hashed and compared would not be what was written.
  if (typeof value === "number" && !(Math.abs(value) < 2 ** 53)) return "has a number that is out of range";
  if (typeof value === "object" && value !== null) next.push(value);
  return null;
}

const QUOTE = 34;
const COLON = 58;
const BACKSLASH = 92;

/** The colons of a JSON text that stand outside strings: one for each key that was written. */
function countColons(text: string): number {
  let count = 0;
  for (let index = 0; index < text.length; index++) {
    const code = text.charCodeAt(index);
    if (code === COLON) count += 1;
    if (code !== QUOTE) continue;
    // On to the end of the string.
    for (index++; text.charCodeAt(index) !== QUOTE; index++) {
      if (text.charCodeAt(index) === BACKSLASH) index++;
    }
  }
  return count;
}
