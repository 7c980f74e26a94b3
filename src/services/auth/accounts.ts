import type { Client } from "../../core/client.ts";
import type { User } from "../../core/user.ts";
import type { Reader } from "../../store/reader.ts";
import type { Attempt } from "./attempt.ts";

/**
 * The counters of an account. Strangers share the one of the e-mail. Where its person has signed in before has another, so
 * that nobody who guesses elsewhere holds them up there; and who is signed in has a third.
 */
const strangersAt = (email: string): string => `e-mail ${email}`;
const knownAt = (email: string): string => `known ${email}`;
const signedInAs = (email: string): string => `signed in ${email}`;

export const accountsOf = (email: string): readonly string[] => [
  strangersAt(email),
  knownAt(email),
  signedInAs(email),
];

/** Whose password is tried at a sign-in, whether or not there is such a person. */
export async function accountOf(
  { users, authSessions }: Reader,
  email: string,
  { network }: Client,
): Promise<Pick<Attempt, "account" | "trusted" | "user">> {
  const user = await users.byEmail(email);
  // Asked of nobody too, since it takes time.
  const trusted = await authSessions.hasBeenFrom(user?.id ?? "", network);
  return { account: trusted ? knownAt(email) : strangersAt(email), trusted, user };
}

/** Whose password is asked for again. Only a cookie leads there, so strangers count nothing. */
export const ownAccount = (user: User): Pick<Attempt, "account" | "trusted" | "user"> => ({
  account: signedInAs(user.email),
  trusted: true,
  user,
});
