import { hashSecret, looksLikeApiKey } from "../../core/api-key.ts";
import type { AuthSession, User } from "../../core/directory.ts";
import type { KeyCaller, PersonCaller } from "../../core/roles.ts";
import { DAY_MS, HOUR_MS } from "../../core/time.ts";
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
  if (!key || key.revokedAt !== null) return null;
  return {
    kind: "key",
    keyId: key.id,
    agentId: key.agentId,
    organisationId: key.organisationId,
    mode: key.mode,
  };
}

export type SignedIn = { readonly caller: PersonCaller; readonly user: User; readonly session: AuthSession };

/** Whom a session cookie stands for; null where it stands for nobody. Using it renews it. */
export async function signedInBy(ctx: Context, token: string): Promise<SignedIn | null> {
  const session = ctx.store.reader.authSessions.byHash(hashSecret(token));
  if (!session || session.expiresAt <= ctx.now()) return null;
  const user = ctx.store.reader.users.get(session.userId);
  if (!user) return null;
  const renewed = renewedSession(session, ctx.now());
  if (renewed) await saveAuthSession(ctx, user, renewed);
  return {
    caller: {
      kind: "person",
      userId: user.id,
      role: user.role,
      organisationId: user.organisationId,
      mode: session.mode,
    },
    user,
    session: renewed ?? session,
  };
}

/** The session as a use leaves it; null where it needs no renewal yet. */
function renewedSession(session: AuthSession, now: number): AuthSession | null {
  const expiresAt = Math.min(now + SESSION_IDLE_MS, session.createdAt + SESSION_MAX_MS);
  return expiresAt - session.expiresAt >= RENEW_AFTER_MS ? { ...session, expiresAt } : null;
}

/** Writes a session as it now is: new, renewed or ended. */
export async function saveAuthSession(ctx: Context, user: User, session: AuthSession): Promise<void> {
  await ctx.store.execute({
    scope: { organisationId: user.organisationId, mode: session.mode },
    needs: {},
    decide: () => ({ answer: null, change: { rows: [{ kind: "authSession", row: session }] } }),
  });
}
