import { isDeepStrictEqual } from "node:util";

/**
 * The demo prints only what really happened. Any difference from the plan ends it with exit code 1, so CI
 * notices.
 */
export function same(what: string, found: unknown, wanted: unknown): void {
  if (isDeepStrictEqual(found, wanted)) return;
  const show = (value: unknown) => Bun.inspect(value, { compact: true });
  throw new Error(`The demo did not go as planned: ${what} is ${show(found)}, not ${show(wanted)}.`);
}
