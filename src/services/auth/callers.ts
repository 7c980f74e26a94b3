import { endOf, hashSecret, looksLikeApiKey } from "../../core/api-key.ts";
import type { AuthSession } from "../../core/auth-session.ts";
import type { KeyCaller, Mode, PersonCaller } from "../../core/roles.ts";
import { DAY_MS, HOUR_MS } from "../../core/time.ts";
import type { User } from "../../core/user.ts";
import type { Context } from "../context.ts";

/** A sign-in lasts 12 hours from its last use, and 7 days at most (decisions.md, Sign-in, roles, passkeys). */
export const SESSION_IDLE_MS = 12 * HOUR_MS;
export const SESSION_MAX_MS = 7 * DAY_MS;
/** A use renews the session once an hour at most, so that reads do not write. */
const RENEW_AFTER_MS = HOUR_MS;

/** Whom an API key stands for; null where it stands for nobody. */
export function callerOfApiKey(ctx: Context, secret: string): KeyCaller | null {
  if (!looksLikeApiKey(secret)) return null;
  const key = ctx.store.reader.apiKeys.byHash(hashSecret(secret));
  const now = ctx.now();
  if (!key || endOf(key, now) !== null) return null;
  ctx.keyUses.record(key, now);
  return {
    kind: "key",
    keyId: key.id,
    agentId: key.agentId,
    organisationId: key.organisationId,
    mode: key.mode,
  };
}

/** A person as whoever calls, and as the audit log names who acted. */
export const personCallerOf = (user: User, mode: Mode): PersonCaller => ({
  kind: "person",
  userId: user.id,
  role: user.role,
  organisationId: user.organisationId,
  mode,
});

export type SignedIn = { readonly caller: PersonCaller; readonly user: User; readonly session: AuthSession };

/** Whom a session cookie stands for; null where it stands for nobody. Using it renews it. */
export async function signedInBy(ctx: Context, token: string): Promise<SignedIn | null> {
  const session = ctx.store.reader.authSessions.byHash(hashSecret(token));
  if (!session || session.expiresAt <= ctx.now()) return null;
  const user = ctx.store.reader.users.get(session.userId);
  if (!user || user.removedAt !== null) return null;
  const renewed = renewedSession(session, ctx.now());
  if (renewed && !(await renewAuthSession(ctx, user, renewed))) return null;
  return {
    caller: { ...personCallerOf(user, session.mode), signInHash: session.tokenHash },
    user,
    session: renewed ?? session,
  };
}

/** The session as a use leaves it; null where it needs no renewal yet. */
function renewedSession(session: AuthSession, now: number): AuthSession | null {
  const expiresAt = Math.min(now + SESSION_IDLE_MS, session.createdAt + SESSION_MAX_MS);
  return expiresAt - session.expiresAt >= RENEW_AFTER_MS ? { ...session, expiresAt } : null;
}

/** False where the sign-in was ended meanwhile: who signed out everywhere is not signed in again by a late request. */
async function renewAuthSession(ctx: Context, user: User, renewed: AuthSession): Promise<boolean> {
  const now = ctx.now();
  const kept = await ctx.store.execute({
    scope: { organisationId: user.organisationId, mode: renewed.mode },
    needs: { authSessionHash: renewed.tokenHash },
    decide: ({ authSession }) =>
      authSession && authSession.expiresAt > now
        ? { answer: true, change: { rows: [{ kind: "authSession", row: renewed }] } }
        : { answer: false },
  });
  return kept === true;
}
