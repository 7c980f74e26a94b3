import { canonicalJson } from "../canonical.ts";

/** SHA-256 of a value's RFC 8785 form, in lower-case hex. */
export type HashJson = (value: unknown) => string;

const SHOWN_MAX = 80;

/** A value in a sentence about it, cut where it is long. */
export function shown(value: unknown): string {
  const text = value === undefined ? "nothing" : JSON.stringify(value);
  return text.length > SHOWN_MAX ? `${text.slice(0, SHOWN_MAX)}…` : text;
}

/** Whether two values of JSON are the same, whatever the order of their keys. */
export const same = (one: unknown, other: unknown): boolean =>
  one === other || (one !== undefined && other !== undefined && canonicalJson(one) === canonicalJson(other));
