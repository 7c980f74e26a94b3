import { hashSecret } from "../../core/api-key.ts";
import type { AuthSession } from "../../core/auth-session.ts";
import { isRefusal, type Refusal, refuse } from "../../core/errors.ts";
import type { Mode } from "../../core/roles.ts";
import { isoTime } from "../../core/time.ts";
import type { User } from "../../core/user.ts";
import { recordingAct } from "../admin/acts.ts";
import { normaliseEmail } from "../admin/fields.ts";
import type { Context } from "../context.ts";
import { personCallerOf, SESSION_IDLE_MS } from "./callers.ts";
import { attemptSignIn } from "./throttle.ts";
import { newToken } from "./tokens.ts";

/** The body of `POST /auth/session`. */
export type SignInInput = { readonly email: string; readonly password: string; readonly mode?: Mode };

/** A person's sign-in: the resource to answer, and the token that goes into the cookie and nowhere else. */
export type NewSession = {
  readonly token: string;
  readonly resource: ReturnType<typeof authSessionResource>;
};

/**
 * Signs a person in. Wrong credentials are `not_authenticated`, in the same time whether or not the e-mail exists; too many
 * of them are `rate_limit_exceeded` (decisions.md, Sign-in, roles, passkeys).
 */
export function signIn(ctx: Context, input: SignInInput, address: string): Promise<NewSession | Refusal> {
  const email = normaliseEmail(input.email);
  return attemptSignIn(ctx, email, address, () => signInAs(ctx, email, input));
}

async function signInAs(
  ctx: Context,
  email: string,
  { password, mode }: SignInInput,
): Promise<NewSession | Refusal> {
  const user = ctx.store.reader.users.byEmail(email);
  const matches = await ctx.passwords.verify(password, user?.passwordHash ?? null);
  const wrong = refuse("not_authenticated", "The e-mail or the password is wrong.");
  if (!user || !matches) return wrong;
  const { token, session } = newAuthSession(ctx, user, mode);
  const kept = await ctx.store.execute<AuthSession>({
    scope: { organisationId: user.organisationId, mode: session.mode },
    needs: { userId: user.id },
    // Comparing takes its time: meanwhile the password may have been changed, or the person removed.
    decide: (snapshot) =>
      snapshot.user?.passwordHash === user.passwordHash
        ? { answer: session, change: { rows: [{ kind: "authSession", row: session }] } }
        : { answer: wrong },
  });
  return isRefusal(kept) ? kept : { token, resource: authSessionResource(ctx, user, kept) };
}

/** A sign-in that begins now, not yet kept, and the token of its cookie. */
export function newAuthSession(
  ctx: Context,
  user: User,
  mode: Mode = "live",
): { readonly token: string; readonly session: AuthSession } {
  const token = newToken(ctx);
  const now = ctx.now();
  return {
    token,
    session: {
      tokenHash: hashSecret(token),
      userId: user.id,
      mode,
      createdAt: now,
      expiresAt: now + SESSION_IDLE_MS,
    },
  };
}

/** Signs out: the session ends now, whoever else holds its cookie. */
export async function signOut(ctx: Context, user: User, session: AuthSession): Promise<void> {
  const ended = { ...session, expiresAt: Math.min(session.expiresAt, ctx.now()) };
  await ctx.store.execute({
    scope: { organisationId: user.organisationId, mode: session.mode },
    needs: {},
    decide: () => ({ answer: null, change: { rows: [{ kind: "authSession", row: ended }] } }),
  });
}

/** Ends all sign-ins of a person, this one too. */
export async function signOutEverywhere(ctx: Context, user: User): Promise<void> {
  const record = recordingAct(ctx, personCallerOf(user, "live"), "user.signed_out_everywhere");
  const endsSignInsOf = { userId: user.id, exceptTokenHash: null, at: ctx.now() };
  await ctx.store.execute({
    scope: { organisationId: user.organisationId, mode: "live" },
    needs: {},
    decide: () => ({
      answer: null,
      change: { rows: [record(user.organisationId, user.id, null, null)], endsSignInsOf },
    }),
  });
}

/** Who is signed in (decisions.md, Sign-in, roles, passkeys). */
export function authSessionResource(ctx: Context, user: User, session: AuthSession) {
  const organisation = ctx.store.reader.organisations.get(user.organisationId);
  return {
    object: "auth_session" as const,
    user: { id: user.id, email: user.email, name: user.name, role: user.role },
    organisation: { id: user.organisationId, name: organisation?.name ?? "" },
    mode: session.mode,
    expires_at: isoTime(session.expiresAt),
  };
}
