import type { Mode } from "./roles.ts";

/** A person's sign-in. Only a hash of the cookie's token is kept. */
export type AuthSession = {
  readonly tokenHash: string;
  readonly userId: string;
  readonly mode: Mode;
  readonly createdAt: number;
  readonly expiresAt: number;
};
