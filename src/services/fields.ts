import { type TSchema, Type } from "@sinclair/typebox";
import { Errors } from "@sinclair/typebox/errors";
import { type Refusal, refuseField } from "../core/errors.ts";
import { hasHiddenCharacters, NOTHING_HIDDEN } from "../core/hidden-characters.ts";
import { ASSET_PATTERN } from "../core/money.ts";
import { PASSWORD_LENGTH_MAX, PASSWORD_LENGTH_MIN } from "../core/user.ts";

/** The rules of single fields. Each gives null, or `validation_failed` naming the field as the API does. */

const TEXT_LENGTH_MAX = 200;
const TEXT = Type.String({ maxLength: TEXT_LENGTH_MAX, pattern: "\\S" });
const EMAIL = Type.String({ maxLength: 254, pattern: "^[^\\s@]+@[^\\s@]+$" });
const ASSET = Type.String({ pattern: ASSET_PATTERN });
const PASSWORD = Type.String({ minLength: PASSWORD_LENGTH_MIN, maxLength: PASSWORD_LENGTH_MAX });

/** @param rule what would be right, as the rest of a sentence that begins with the field */
const refuseUnless = (schema: TSchema, path: string, value: unknown, rule: string): Refusal | null =>
  Errors(schema, value).First() ? refuseField(path, rule) : null;

/** A name or a reference: one line that a person can read. */
export const refuseText = (path: string, value: unknown): Refusal | null =>
  refuseUnless(TEXT, path, value, `must be a string of 1 to ${TEXT_LENGTH_MAX} characters`) ??
  (hasHiddenCharacters(String(value)) || !String(value).isWellFormed()
    ? refuseField(path, `must be one line of well-formed text, ${NOTHING_HIDDEN}`)
    : null);

export const refuseUnlisted = (path: string, value: unknown, allowed: readonly string[]): Refusal | null =>
  refuseUnless(
    Type.Union(allowed.map((one) => Type.Literal(one))),
    path,
    value,
    `must be one of ${allowed.join(", ")}`,
  );

export const refuseInteger = (path: string, value: unknown, min: number, max: number): Refusal | null =>
  refuseUnless(
    Type.Integer({ minimum: min, maximum: max }),
    path,
    value,
    `must be an integer from ${min} to ${max}`,
  );

export const refuseAsset = (path: string, value: unknown): Refusal | null =>
  refuseUnless(ASSET, path, value, "must be 1 to 32 characters of A-Z, a-z, 0-9, '.', '_', ':' and '-'");

/** An e-mail is unique in the instance, whatever its capitals. */
export const normaliseEmail = (email: string): string => email.trim().toLowerCase();

export function refuseEmail(path: string, value: unknown): Refusal | null {
  if (typeof value !== "string") return refuseField(path, "must be an e-mail address");
  // The address as it was sent is looked at: what is trimmed from it may be hidden.
  if (hasHiddenCharacters(value)) return refuseField(path, `must be an e-mail address, ${NOTHING_HIDDEN}`);
  const email = normaliseEmail(value);
  return refuseUnless(
    EMAIL,
    path,
    email.isWellFormed() ? email : null,
    "must be an e-mail address, such as ada@example.com",
  );
}

export const refusePassword = (path: string, value: unknown): Refusal | null =>
  refuseUnless(
    PASSWORD,
    path,
    value,
    `must be a string of ${PASSWORD_LENGTH_MIN} to ${PASSWORD_LENGTH_MAX} characters`,
  );
