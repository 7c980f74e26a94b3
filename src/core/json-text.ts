/** JSON as people and programs send it, read strictly, so that nothing passes by mistake (docs/idempotency, "Strict input"). */

const DEPTH_MAX = 64;

/**
 * The value of a JSON text, or the problem with it, in words that follow a name, such as `the body is not JSON`. Besides
 * broken JSON it refuses a key twice in one object, a lone surrogate, a number out of range, and more than 64 levels.
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
  // Of two equal keys the parser keeps one. Then the text has more colons than the value has keys.
  return keys === countColons(text) ? { value } : { problem: "has the same key twice in one object" };
}

/** How many keys the objects in a value have, or the problem with the value. Scalars are not collected: there may be a million. */
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

/** The problem with a scalar, or null. An object or array is added to `next`, the values to check later. */
function problemWith(value: unknown, next: object[]): string | null {
  if (typeof value === "string" && !value.isWellFormed()) return "has a lone surrogate in a string";
  // From 2^53 on a double is rounded: the number that is hashed and compared would not be the one that was written.
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
    // Skip the string.
    for (index++; text.charCodeAt(index) !== QUOTE; index++) {
      if (text.charCodeAt(index) === BACKSLASH) index++;
    }
  }
  return count;
}
