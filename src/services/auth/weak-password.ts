import { type Refusal, refuseField } from "../../core/errors.ts";
import type { Organisation } from "../../core/organisation.ts";
import type { User } from "../../core/user.ts";
import type { Context } from "../context.ts";

/** What others know of a person, and so try first. */
export type Known = Pick<User, "email" | "name"> & { readonly organisation: Pick<Organisation, "name"> };

/** A shorter word stands in passwords by chance. */
const WORD_LENGTH_MIN = 3;

/**
 * Refuses a new password that is too easy to guess, in words that say why and what would help. Its length has been
 * checked before. Only somebody who may set the password gets here, since judging takes a tenth of a second.
 */
export async function refuseWeakPassword(
  { passwords }: Context,
  path: string,
  password: string,
  known: Known,
): Promise<Refusal | null> {
  const weakness = await passwords.weaknessOf({ password, known: wordsOf(known) });
  return weakness === null ? null : refuseField(path, weakness);
}

/** The e-mail and both names, whole and word by word. */
function wordsOf({ email, name, organisation }: Known): readonly string[] {
  const whole = [email, email.slice(0, email.lastIndexOf("@")), name, organisation.name].map((text) =>
    text.toLowerCase(),
  );
  const words = whole.flatMap((text) => text.split(/[^\p{L}\p{N}]+/u));
  return [...new Set([...whole, ...words])].filter(({ length }) => length >= WORD_LENGTH_MIN);
}
