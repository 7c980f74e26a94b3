import { type AuthSession, signInIdOf } from "../core/auth-session.ts";
import type { PasswordReset } from "../core/password-reset.ts";
import type { Put } from "../store/change.ts";

/** Ends these sign-ins now. A sign-in that has expired stays as it is. */
export const endSignIns = (sessions: readonly AuthSession[], now: number): readonly Put[] =>
  sessions
    .filter(({ expiresAt }) => expiresAt > now)
    .map((before) => ({ kind: "authSession", before, row: { ...before, expiresAt: now } }));

const NAMED_MAX = 100;

/** What the audit log shows of sign-ins that end together: the ids of those that count now. */
export const namedSignIns = (sessions: readonly AuthSession[], now: number) => ({
  sign_ins: sessions
    .filter(({ expiresAt }) => expiresAt > now)
    .slice(0, NAMED_MAX)
    .map(signInIdOf),
});

/** Makes these unused reset links void now. A link that has expired stays as it is. */
export const voidPasswordResets = (resets: readonly PasswordReset[], now: number): readonly Put[] =>
  resets
    .filter(({ expiresAt }) => expiresAt > now)
    .map((before) => ({ kind: "passwordReset", before, row: { ...before, expiresAt: now } }));
