import { hashSecret } from "../../core/api-key.ts";
import type { AuthSession, User } from "../../core/directory.ts";
import { type Refusal, refuse } from "../../core/errors.ts";
import type { Mode } from "../../core/roles.ts";
import { isoTime } from "../../core/time.ts";
import type { Context } from "../context.ts";
import { SESSION_IDLE_MS, saveAuthSession } from "./callers.ts";

/** The body of `POST /auth/session`. */
export type SignInInput = { readonly email: string; readonly password: string; readonly mode?: Mode };

const TOKEN_BYTES = 32;

/** A person's sign-in: the resource to answer, and the token that goes into the cookie and nowhere else. */
export type NewSession = {
  readonly token: string;
  readonly resource: ReturnType<typeof authSessionResource>;
};

/**
 * Signs a person in. Wrong credentials are `not_authenticated`, in the same time whether or not the e-mail exists; too many
 * of them are `rate_limit_exceeded` (decisions.md, Sign-in, roles, passkeys).
 */
export async function signIn(
  ctx: Context,
  input: SignInInput,
  address: string,
): Promise<NewSession | Refusal> {
  const email = input.email.toLowerCase();
  const now = ctx.now();
  if (!ctx.signInThrottle.admit(email, address, now)) {
    return refuse("rate_limit_exceeded", "Too many failed sign-ins. Wait a quarter of an hour.");
  }
  const user = ctx.store.reader.users.byEmail(email);
  const matches = await ctx.passwords.verify(input.password, user?.passwordHash ?? null);
  if (!user || !matches) return refuse("not_authenticated", "The e-mail or the password is wrong.");
  ctx.signInThrottle.forget(email, address, now);
  const token = Buffer.from(Array.from({ length: TOKEN_BYTES }, ctx.randomByte)).toString("base64url");
  const session: AuthSession = {
    tokenHash: hashSecret(token),
    userId: user.id,
    mode: input.mode ?? "live",
    createdAt: now,
    expiresAt: now + SESSION_IDLE_MS,
  };
  await saveAuthSession(ctx, user, session);
  return { token, resource: authSessionResource(ctx, user, session) };
}

/** Signs out: the session ends now, whoever else holds its cookie. */
export async function signOut(ctx: Context, user: User, session: AuthSession): Promise<void> {
  const ended = { ...session, expiresAt: Math.min(session.expiresAt, ctx.now()) };
  await saveAuthSession(ctx, user, ended);
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
