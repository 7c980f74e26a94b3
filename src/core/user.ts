import type { Role } from "./roles.ts";

/** A person who signs in. */
export type User = {
  readonly id: string;
  readonly organisationId: string;
  /** Lower case; unique in the instance. */
  readonly email: string;
  readonly name: string;
  readonly role: Role;
  readonly passwordHash: string;
  /** When a reset link last replaced the password: a passkey enrolled within 24 hours after it does not count for the threshold. */
  readonly passwordResetAt: number | null;
  /** A removed person cannot sign in. The row stays, since the trace and the audit log name it. */
  readonly removedAt: number | null;
  readonly createdAt: number;
};

/**
 * The hash of somebody who was invited and has not chosen a password yet: it is well formed, and no password has it. Comparing it
 * takes as long as comparing any other.
 */
export const NO_PASSWORD = `$argon2id$v=19$m=19456,t=2,p=1$${"A".repeat(43)}$${"A".repeat(43)}`;

/** Whether a person was invited, and has not chosen a password yet. */
export const isInvited = ({ passwordHash }: Pick<User, "passwordHash">): boolean =>
  passwordHash === NO_PASSWORD;

/** In characters, of a password that is chosen now. */
export const PASSWORD_LENGTH_MIN = 12;
export const PASSWORD_LENGTH_MAX = 256;
