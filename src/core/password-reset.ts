/** A one-time link with which a person chooses a new password. Only a hash of its token is kept. */
export type PasswordReset = {
  readonly tokenHash: string;
  readonly userId: string;
  readonly createdAt: number;
  readonly expiresAt: number;
  readonly usedAt: number | null;
};
