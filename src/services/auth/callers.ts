import { type ApiKey, endOf, hashSecret, looksLikeApiKey } from "../../core/api-key.ts";
import { type AuthSession, owesPasskey, USE_RECORDED_MS } from "../../core/auth-session.ts";
import { isRefusal } from "../../core/errors.ts";
import type { KeyCaller, PersonCaller } from "../../core/roles.ts";
import { DAY_MS, HOUR_MS } from "../../core/time.ts";
import type { User } from "../../core/user.ts";
import type { Scope } from "../../store/scope.ts";
import type { Decision } from "../../store/store.ts";
import type { Context } from "../context.ts";

/** A sign-in lasts 12 hours from its last use, and 7 days at most. */
export const SESSION_IDLE_MS = 12 * HOUR_MS;
export const SESSION_MAX_MS = 7 * DAY_MS;

/**
 * The caller of an API key; null where the key is not valid. There is no promise where the key is known
 * already.
 */
export function callerOfApiKey(ctx: Context, secret: string): KeyCaller | null | Promise<KeyCaller | null> {
  if (!looksLikeApiKey(secret)) return null;
  const key = ctx.store.apiKey(hashSecret(secret));
  return key instanceof Promise ? key.then((found) => callerOf(ctx, found)) : callerOf(ctx, key);
}

function callerOf(ctx: Context, key: ApiKey | null): KeyCaller | null {
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

export type SignedIn = { readonly caller: PersonCaller; readonly user: User; readonly session: AuthSession };

/**
 * The person of a session cookie; null where the cookie is not valid. Each use renews the sign-in.
 *
 * @param isUnattended whether no person acts, but a page that is open: that is no use
 */
export async function signedInBy(
  ctx: Context,
  token: string,
  isUnattended = false,
): Promise<SignedIn | null> {
  const found = await signedInNow(ctx, hashSecret(token));
  if (!found || isUnattended || !renewedSession(found.session, ctx.now())) return found;
  const session = await renewAuthSession(ctx, found.user, found.session);
  return session && { ...found, session };
}

/** The caller of a sign-in as they are whenever that is asked; null once it has ended. */
export const callerNowIn =
  (ctx: Pick<Context, "store" | "now">) =>
  async (tokenHash: string): Promise<PersonCaller | null> =>
    (await signedInNow(ctx, tokenHash))?.caller ?? null;

async function signedInNow(
  { store, now }: Pick<Context, "store" | "now">,
  tokenHash: string,
): Promise<SignedIn | null> {
  return store.read(async ({ authSessions, users, organisations }) => {
    const session = await authSessions.byHash(tokenHash);
    if (!session || session.expiresAt <= now()) return null;
    const user = await users.get(session.userId);
    if (!user || user.removedAt !== null) return null;
    const organisation = await organisations.get(user.organisationId);
    if (!organisation) throw new Error("a person without an organisation");
    const caller: PersonCaller = {
      kind: "person",
      userId: user.id,
      role: user.role,
      organisationId: organisation.id,
      mode: session.mode,
      signInHash: session.tokenHash,
      owesPasskey: owesPasskey(organisation, user.role, session),
    };
    return { caller, user, session };
  });
}

/** The session with its use, and its expiry moved ahead; null where that is not needed yet. */
function renewedSession(session: AuthSession, now: number): AuthSession | null {
  if (now - (session.lastUsedAt ?? session.createdAt) < USE_RECORDED_MS) return null;
  const expiresAt = Math.min(now + SESSION_IDLE_MS, session.createdAt + SESSION_MAX_MS);
  return { ...session, lastUsedAt: now, expiresAt: Math.max(expiresAt, session.expiresAt) };
}

/**
 * Null where the sign-in has ended meanwhile: a late request must not sign somebody in again who has signed
 * out.
 */
async function renewAuthSession(
  ctx: Context,
  { organisationId }: User,
  { tokenHash, mode }: AuthSession,
): Promise<AuthSession | null> {
  const scope: Scope = { organisationId, mode };
  const kept = await ctx.store.execute({
    scope,
    needs: { callerSession: tokenHash },
    decide({ callerSession: session }, now): Decision<AuthSession | null> {
      if (!session || session.expiresAt <= now) return { answer: null };
      const renewed = renewedSession(session, now);
      // Another request has renewed it already.
      if (!renewed) return { answer: session };
      return {
        answer: renewed,
        change: { put: [{ kind: "authSession", before: session, row: renewed }] },
      };
    },
  });
  return isRefusal(kept) ? null : kept;
}
