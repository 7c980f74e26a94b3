import { hashSecret } from "../../core/api-key.ts";
import type { AuthSession } from "../../core/auth-session.ts";
import { type Refusal, refuse } from "../../core/errors.ts";
import type { Wire } from "../../core/form.ts";
import type { Mode } from "../../core/roles.ts";
import type { User } from "../../core/user.ts";
import { authSessionResource, type signInBody } from "../../resources/auth-session.ts";
import type { Put } from "../../store/change.ts";
import type { Decision } from "../../store/store.ts";
import { type Audited, executeAudited } from "../audited.ts";
import type { Context } from "../context.ts";
import { endSignIns } from "../end-credentials.ts";
import { normaliseEmail } from "../fields.ts";
import { SESSION_IDLE_MS } from "./callers.ts";
import { attemptSignIn } from "./throttle.ts";
import { newToken } from "./tokens.ts";

/** The body of `POST /auth/session`. */
export type SignInInput = Wire<typeof signInBody>;

/** A new sign-in: the resource to answer, and the token, which goes only into the cookie. */
export type NewSession = {
  readonly token: string;
  readonly resource: ReturnType<typeof authSessionResource>;
};

/**
 * Signs a person in. Wrong credentials are `not_authenticated`, and take the same time whether or not the
 * e-mail exists. After too many the refusal is `rate_limit_exceeded`.
 */
export function signIn(ctx: Context, input: SignInInput, address: string): Promise<NewSession | Refusal> {
  const email = normaliseEmail(input.email);
  return attemptSignIn(ctx, email, address, () => signInAs(ctx, email, input));
}

async function signInAs(
  ctx: Context,
  email: string,
  { password, mode = "live" }: SignInInput,
): Promise<NewSession | Refusal> {
  const user = await ctx.store.read((reader) => reader.users.byEmail(email));
  const matches = await ctx.passwords.verify(password, user?.passwordHash ?? null);
  const wrong = refuse("not_authenticated", "The e-mail or the password is wrong.");
  if (!user || !matches) return wrong;
  const token = newToken(ctx);
  // Only now is the password known, so that its hash can be made harder.
  const harder = ctx.passwords.isOutdated(user.passwordHash) ? await ctx.passwords.hash(password) : null;
  return ctx.store.execute({
    scope: { organisationId: user.organisationId, mode },
    needs: { user: user.id, passkeys: user.id },
    decide({ user: person, organisation, passkeys }, now): Decision<NewSession> {
      // Comparing takes time. The password may have been changed meanwhile, or the person removed.
      if (person?.passwordHash !== user.passwordHash) return { answer: wrong };
      const raised: readonly Put[] =
        harder === null ? [] : [{ kind: "user", before: person, row: { ...person, passwordHash: harder } }];
      const session = newAuthSession(token, person, mode, now);
      return {
        answer: { token, resource: authSessionResource(organisation, person, session, passkeys) },
        change: { put: [{ kind: "authSession", before: null, row: session }, ...raised] },
      };
    },
  });
}

/** A new sign-in. Only the hash of its cookie's token is kept. */
export const newAuthSession = (
  token: string,
  { id: userId }: User,
  mode: Mode,
  now: number,
): AuthSession => ({
  tokenHash: hashSecret(token),
  userId,
  mode,
  createdAt: now,
  expiresAt: now + SESSION_IDLE_MS,
  passkeyProved: false,
});

/** Signs out: the session ends now, also for anybody else who has its cookie. */
export async function signOut(ctx: Context, user: User, session: AuthSession): Promise<void> {
  await ctx.store.execute({
    scope: { organisationId: user.organisationId, mode: session.mode },
    needs: { callerSession: session.tokenHash },
    decide: ({ callerSession }, now) => ({
      answer: null,
      change: { put: callerSession ? endSignIns([callerSession], now) : [] },
    }),
  });
}

/** Ends all sign-ins of a person, this one too. */
export async function signOutEverywhere(ctx: Context, { id, organisationId }: User): Promise<void> {
  await executeAudited(
    ctx,
    { kind: "user", id },
    {
      scope: { organisationId, mode: "live" },
      needs: { userSessions: id },
      decide: ({ userSessions }, now): Audited<null> => ({
        answer: null,
        put: endSignIns(userSessions, now),
        entries: [{ action: "user.signed_out_everywhere", subject: id, before: null, after: null }],
      }),
    },
  );
}

/** Who is signed in, and for how long. */
export async function readAuthSession(ctx: Context, user: User, session: AuthSession) {
  return ctx.store.read(async ({ organisations, passkeys }) => {
    const organisation = await organisations.get(user.organisationId);
    if (!organisation) throw new Error("a person without an organisation");
    return authSessionResource(organisation, user, session, await passkeys.of(user.id));
  });
}
