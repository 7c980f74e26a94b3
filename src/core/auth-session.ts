import type { Organisation } from "./organisation.ts";
import { type Mode, type Role, roleIsAtLeast } from "./roles.ts";

/** A person's sign-in. Only a hash of the cookie's token is kept. */
export type AuthSession = {
  readonly tokenHash: string;
  readonly userId: string;
  readonly mode: Mode;
  readonly createdAt: number;
  readonly expiresAt: number;
  /** Whether a passkey was proved in it, by which it began or which was registered in it. */
  readonly passkeyProved: boolean;
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
