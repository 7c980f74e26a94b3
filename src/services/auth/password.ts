import { hashSecret } from "../../core/api-key.ts";
import type { AuthSession } from "../../core/auth-session.ts";
import { isRefusal, type Refusal, refuse } from "../../core/errors.ts";
import type { User } from "../../core/user.ts";
import { recordingAct } from "../admin/acts.ts";
import { refusePassword } from "../admin/fields.ts";
import type { Context } from "../context.ts";
import { personCallerOf } from "./callers.ts";
import { confirmPassword } from "./confirm-password.ts";
import { attemptSignIn } from "./throttle.ts";

/** The body of `POST /auth/password`. */
export type PasswordChange = { readonly current_password: string; readonly new_password: string };

/**
 * A signed-in person chooses a new password. Their other sign-ins end, and reset links that nobody used are void. A wrong
 * current one is `not_authenticated` and counts as a failed sign-in. Null where it is done.
 */
export async function changePassword(
  ctx: Context,
  { user, session }: { readonly user: User; readonly session: AuthSession },
  input: PasswordChange,
  address: string,
): Promise<Refusal | null> {
  const refused =
    refusePassword("new_password", input.new_password) ??
    (await confirmPassword(ctx, user, input.current_password, address));
  if (refused) return refused;
  const passwordHash = await ctx.passwords.hash(input.new_password);
  const record = recordingAct(ctx, personCallerOf(user, session.mode), "user.password_changed");
  const at = ctx.now();
  return ctx.store.execute({
    scope: { organisationId: user.organisationId, mode: session.mode },
    needs: { userId: user.id, authSessionHash: session.tokenHash },
    decide: (snapshot) => {
      // Hashing takes its time: of two changes at once, the second was asked with a password that is no longer so.
      const isCurrent = snapshot.user?.passwordHash === user.passwordHash;
      if (!snapshot.user || !isCurrent || !snapshot.authSession || snapshot.authSession.expiresAt <= at)
        return { answer: refuse("not_authenticated", "The password was changed meanwhile. Sign in again.") };
      return {
        answer: null,
        change: {
          rows: [
            { kind: "user", row: { ...snapshot.user, passwordHash } },
            record(user.organisationId, user.id, null, null),
          ],
          endsSignInsOf: { userId: user.id, exceptTokenHash: session.tokenHash, at },
          voidsPasswordResetsOf: { userId: user.id, at },
        },
      };
    },
  });
}

/** The body of `POST /auth/password/reset`. */
export type PasswordResetInput = { readonly token: string; readonly new_password: string };

/**
 * Whoever holds a one-time link chooses a new password; all sign-ins of the person end. The link is used up in the same
 * commit. An unknown, a used, a void and an expired one are `not_authenticated` alike, and count as failed sign-ins of
 * the address. Null where it is done.
 */
export async function resetPassword(
  ctx: Context,
  input: PasswordResetInput,
  address: string,
): Promise<Refusal | null> {
  const refused = refusePassword("new_password", input.new_password);
  if (refused) return refused;
  // No e-mail is tried: the links of an address are counted as one pair.
  const person = await attemptSignIn(ctx, "", address, () => resetByLink(ctx, input));
  if (isRefusal(person)) return person;
  // Whoever forgot a password has tried some.
  ctx.signInThrottle.forgive(person.email, address, ctx.now());
  return null;
}

/** The person whose password it is now. */
async function resetByLink(ctx: Context, input: PasswordResetInput): Promise<User | Refusal> {
  const useless = refuse(
    "not_authenticated",
    "The link is unknown, used or out of date. Ask an admin for a new one.",
  );
  const tokenHash = hashSecret(input.token);
  const { passwordResets, users } = ctx.store.reader;
  const known = passwordResets.byHash(tokenHash);
  const user = known && known.usedAt === null && known.expiresAt > ctx.now() ? users.get(known.userId) : null;
  if (!user) return useless;
  const passwordHash = await ctx.passwords.hash(input.new_password);
  const record = recordingAct(ctx, personCallerOf(user, "live"), "user.password_reset");
  const at = ctx.now();
  return ctx.store.execute<User>({
    scope: { organisationId: user.organisationId, mode: "live" },
    needs: { passwordResetHash: tokenHash, userId: user.id },
    decide: ({ passwordReset, user: person }) => {
      if (!person || !passwordReset || passwordReset.usedAt !== null || passwordReset.expiresAt <= at)
        return { answer: useless };
      return {
        answer: person,
        change: {
          rows: [
            { kind: "passwordReset", row: { ...passwordReset, usedAt: at } },
            { kind: "user", row: { ...person, passwordHash, passwordResetAt: at } },
            record(person.organisationId, person.id, null, null),
          ],
          endsSignInsOf: { userId: person.id, exceptTokenHash: null, at },
        },
      };
    },
  });
}
