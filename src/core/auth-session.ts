import type { Organisation } from "./organisation.ts";
import { type Mode, type Role, roleIsAtLeast } from "./roles.ts";
import { HOUR_MS } from "./time.ts";

/** A person's sign-in. Only a hash of the cookie's token is kept. */
export type AuthSession = {
  readonly tokenHash: string;
  readonly userId: string;
  readonly mode: Mode;
  readonly createdAt: number;
  readonly expiresAt: number;
  /** Whether the person has proved a passkey: they signed in with it, or registered it during this sign-in. */
  readonly passkeyProved: boolean;
  /** Where and by which program it was made, as limits count the one and the other names itself. Null in old ledgers. */
  readonly network: string | null;
  readonly agent: string | null;
  /** Up to an hour ago: reads seldom write. Null where it was not used since an old ledger. */
  readonly lastUsedAt: number | null;
};

/**
 * Whether a sign-in must prove a passkey before anything else is allowed: where the organisation asks for a second
 * factor, of everybody from operator up. A passkey counts as both factors, since it verifies the person.
 */
export const owesPasskey = (
  { secondFactor }: Pick<Organisation, "secondFactor">,
  role: Role,
  { passkeyProved }: Pick<AuthSession, "passkeyProved">,
): boolean => secondFactor && roleIsAtLeast(role, "operator") && !passkeyProved;

/** A use is recorded once an hour at most, so that reads do not write. */
export const USE_RECORDED_MS = HOUR_MS;

/** What a sign-in is called where people see it: the token cannot be found from it. */
export const signInIdOf = ({ tokenHash }: Pick<AuthSession, "tokenHash">): string =>
  `sgn_${tokenHash.slice(0, 20)}`;

/** How somebody shows who they are, as logs say it. */
export type SignInMeans = "password" | "passkey" | "password again" | "reset link" | "one-time link";
