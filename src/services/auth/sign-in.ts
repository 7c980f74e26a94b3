import { hashSecret } from "../../core/api-key.ts";
import { type AuthSession, signInIdOf } from "../../core/auth-session.ts";
import type { Client } from "../../core/client.ts";
import { isRefusal, type Refusal, refuse } from "../../core/errors.ts";
import type { Wire } from "../../core/form.ts";
import type { Mode } from "../../core/roles.ts";
import type { User } from "../../core/user.ts";
import type { EndOfSignIn } from "../../platform/sign-in-log.ts";
import { authSessionResource, type signInBody } from "../../resources/auth-session.ts";
import { signInResource } from "../../resources/sign-in.ts";
import type { Put } from "../../store/change.ts";
import { type Audited, type Entry, executeAudited } from "../audited.ts";
import type { Context } from "../context.ts";
import { contactNeeds, endContacts, endSignIns, namedSignIns, withContacts } from "../end-credentials.ts";
import { normaliseEmail } from "../fields.ts";
import { newSignInNotice } from "../notices/personal.ts";
import { accountOf } from "./accounts.ts";
import { attemptSignIn } from "./attempt.ts";
import { SESSION_IDLE_MS, type SignedIn } from "./callers.ts";
import { newToken } from "./tokens.ts";

/** The body of `POST /auth/session`. */
export type SignInInput = Wire<typeof signInBody>;

/** A new sign-in: the resource to answer, and the token, which goes only into the cookie. */
export type NewSession = {
  readonly token: string;
  readonly resource: ReturnType<typeof authSessionResource>;
  readonly session: AuthSession;
};

/**
 * Signs a person in. Wrong credentials are `not_authenticated`, and take the same time whether or not the
 * e-mail exists. After too many the refusal is `rate_limit_exceeded`.
 */
export async function signIn(
  ctx: Context,
  input: SignInInput,
  client: Client,
): Promise<NewSession | Refusal> {
  const email = normaliseEmail(input.email);
  const account = await ctx.store.read((reader) => accountOf(reader, email, client));
  const attempt = { ...account, by: "password", client } as const;
  return attemptSignIn(ctx, attempt, () => signInAs(ctx, email, input, client, !account.trusted));
}

async function signInAs(
  ctx: Context,
  email: string,
  { password, mode = "live" }: SignInInput,
  client: Client,
  isNewPlace: boolean,
): Promise<NewSession | Refusal> {
  const user = await ctx.store.read((reader) => reader.users.byEmail(email));
  const matches = await ctx.passwords.verify(password, user?.passwordHash ?? null);
  const wrong = refuse("not_authenticated", "The e-mail or the password is wrong.");
  if (!user || !matches) return wrong;
  const token = newToken(ctx);
  const tellOwner = newSignInNotice(ctx, isNewPlace);
  // Only now is the password known, so that its hash can be made harder.
  const harder = ctx.passwords.isOutdated(user.passwordHash) ? await ctx.passwords.hash(password) : null;
  const actor = { kind: "user", id: user.id } as const;
  return executeAudited(ctx, actor, {
    scope: { organisationId: user.organisationId, mode },
    needs: { user: user.id, passkeys: user.id },
    decide({ user: person, organisation, passkeys }, now): Audited<NewSession> {
      // Comparing takes time. The password may have been changed meanwhile, or the person removed.
      if (person?.passwordHash !== user.passwordHash) return { answer: wrong };
      const raised: readonly Put[] =
        harder === null ? [] : [{ kind: "user", before: person, row: { ...person, passwordHash: harder } }];
      const session = newAuthSession(token, person, mode, client, now);
      const resource = authSessionResource(organisation, person, session, passkeys);
      return {
        answer: { token, resource, session },
        put: [{ kind: "authSession", before: null, row: session }, ...raised, ...tellOwner(person, session)],
        entries: [signedInEntry(session, "password")],
      };
    },
  });
}

/** A new sign-in. Only the hash of its cookie's token is kept. */
export const newAuthSession = (
  token: string,
  { id: userId }: User,
  mode: Mode,
  { network, agent }: Client,
  now: number,
): AuthSession => ({
  tokenHash: hashSecret(token),
  userId,
  mode,
  createdAt: now,
  expiresAt: now + SESSION_IDLE_MS,
  passkeyProved: false,
  network,
  agent,
  lastUsedAt: now,
});

/** What the audit log has of a new sign-in. */
export const signedInEntry = (session: AuthSession, by: AfterSignIn["by"]): Entry => ({
  action: "user.signed_in",
  subject: session.userId,
  before: null,
  after: { ...signInResource(session, null), by },
});

/** Once somebody has signed in: logs it, and ends the sign-in whose cookie the browser had until now. */
export async function afterSignIn(
  ctx: Context,
  { session }: NewSession,
  { by, client, replaced }: AfterSignIn,
): Promise<void> {
  ctx.signInLog.succeeded({ client, by, userId: session.userId, signInId: signInIdOf(session) });
  if (replaced) await signOut(ctx, replaced, client, "signed in again");
}

export type AfterSignIn = {
  readonly by: "password" | "passkey" | "one-time link";
  readonly client: Client;
  /** Who was signed in there, whether or not it is the same person. */
  readonly replaced: Pick<SignedIn, "user" | "session"> | null;
};

/** Signs out: the session ends now, also for anybody else who has its cookie. */
export async function signOut(
  ctx: Context,
  { user, session }: Pick<SignedIn, "user" | "session">,
  client: Client,
  why: EndOfSignIn = "signed out",
): Promise<void> {
  const ended = await executeAudited(
    ctx,
    { kind: "user", id: user.id },
    {
      scope: { organisationId: user.organisationId, mode: session.mode },
      needs: { callerSession: session.tokenHash },
      decide({ callerSession: kept }, now): Audited<boolean> {
        if (!kept || kept.expiresAt <= now) return { answer: false };
        const before = signInResource(kept, null);
        return {
          answer: true,
          put: endSignIns([kept], now),
          entries: [{ action: "user.signed_out", subject: user.id, before, after: null }],
        };
      },
    },
  );
  if (ended !== true) return;
  const signInIds = [signInIdOf(session)];
  ctx.signInLog.ended({ client, userId: user.id, signInIds, why, endedBy: user.id });
}

/** Ends all sign-ins of a person, this one too, unlinks their chat, and forgets their devices. */
export async function signOutEverywhere(
  ctx: Context,
  { id, organisationId }: User,
  client: Client,
): Promise<void> {
  const ended = await executeAudited(
    ctx,
    { kind: "user", id },
    {
      scope: { organisationId, mode: "live" },
      needs: { userSessions: id, ...contactNeeds(id) },
      decide({ userSessions, ...contacts }, now): Audited<ReturnType<typeof namedSignIns>> {
        const before = namedSignIns(userSessions, now);
        return {
          answer: before,
          put: endSignIns(userSessions, now),
          deleted: endContacts(contacts),
          entries: withContacts(
            { action: "user.signed_out_everywhere", subject: id, before, after: { sign_ins: [] } },
            contacts,
          ),
        };
      },
    },
  );
  if (isRefusal(ended)) return;
  ctx.signInLog.ended({ client, userId: id, signInIds: ended.sign_ins, why: "signed out", endedBy: id });
}

/** Who is signed in, and for how long. */
export async function readAuthSession(ctx: Context, user: User, session: AuthSession) {
  return ctx.store.read(async ({ organisations, passkeys }) => {
    const organisation = await organisations.get(user.organisationId);
    if (!organisation) throw new Error("a person without an organisation");
    return authSessionResource(organisation, user, session, await passkeys.of(user.id));
  });
}
