import { type Refusal, refuseField } from "../core/errors.ts";
import { hasHiddenCharacters, NOTHING_HIDDEN } from "../core/hidden-characters.ts";
import { ASSET_PATTERN } from "../core/money.ts";
import { PASSWORD_LENGTH_MAX, PASSWORD_LENGTH_MIN } from "../core/user.ts";

/** The rules of single fields. Each gives null, or `validation_failed` naming the field as the API does. */

const TEXT_LENGTH_MAX = 200;
const EMAIL = /^[^\s@]+@[^\s@]+$/;
const EMAIL_LENGTH_MAX = 254;
const ASSET = new RegExp(ASSET_PATTERN);

/** A name or a reference: one line that a person can read. */
export function refuseText(path: string, value: unknown): Refusal | null {
  if (typeof value !== "string" || value.trim() === "" || value.length > TEXT_LENGTH_MAX)
    return refuseField(path, `must be a string of 1 to ${TEXT_LENGTH_MAX} characters`);
  return hasHiddenCharacters(value) || !value.isWellFormed()
    ? refuseField(path, `must be one line of well-formed text, ${NOTHING_HIDDEN}`)
    : null;
}

export const refuseUnlisted = (path: string, value: unknown, allowed: readonly string[]): Refusal | null =>
  typeof value === "string" && allowed.includes(value)
    ? null
    : refuseField(path, `must be one of ${allowed.join(", ")}`);

export const refuseInteger = (path: string, value: unknown, min: number, max: number): Refusal | null =>
  typeof value === "number" && Number.isInteger(value) && value >= min && value <= max
    ? null
    : refuseField(path, `must be an integer from ${min} to ${max}`);

export const refuseAsset = (path: string, value: unknown): Refusal | null =>
  typeof value === "string" && ASSET.test(value)
    ? null
    : refuseField(path, "must be 1 to 32 characters of A-Z, a-z, 0-9, '.', '_', ':' and '-'");

/** An e-mail is unique in the instance, whatever its capitals. */
export const normaliseEmail = (email: string): string => email.trim().toLowerCase();

export function refuseEmail(path: string, value: unknown): Refusal | null {
  if (typeof value !== "string") return refuseField(path, "must be an e-mail address");
  const email = normaliseEmail(value);
  // The address as it was sent is looked at: what is trimmed from it may be hidden.
  if (hasHiddenCharacters(value)) return refuseField(path, `must be an e-mail address, ${NOTHING_HIDDEN}`);
  const isSane = EMAIL.test(email) && email.length <= EMAIL_LENGTH_MAX && email.isWellFormed();
  return isSane ? null : refuseField(path, "must be an e-mail address, such as ada@example.com");
}

export const refusePassword = (path: string, value: unknown): Refusal | null =>
  typeof value === "string" && value.length >= PASSWORD_LENGTH_MIN && value.length <= PASSWORD_LENGTH_MAX
    ? null
    : refuseField(path, `must be a string of ${PASSWORD_LENGTH_MIN} to ${PASSWORD_LENGTH_MAX} characters`);
