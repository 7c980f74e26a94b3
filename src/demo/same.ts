import { isDeepStrictEqual } from "node:util";

/** The tour tells nothing that is not so: what differs ends it, and CI sees the exit code. */
export function same(what: string, found: unknown, wanted: unknown): void {
  if (isDeepStrictEqual(found, wanted)) return;
  const show = (value: unknown) => Bun.inspect(value, { compact: true });
  throw new Error(`The demo did not go as told: ${what} is ${show(found)}, not ${show(wanted)}.`);
}
