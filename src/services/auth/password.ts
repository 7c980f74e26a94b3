import { hashSecret } from "../../core/api-key.ts";
import type { AuthSession } from "../../core/auth-session.ts";
import { isRefusal, type Refusal, refuse } from "../../core/errors.ts";
import type { Wire } from "../../core/form.ts";
import type { User } from "../../core/user.ts";
import type { passwordResetBody } from "../../resources/password.ts";
import { type Audited, executeAudited } from "../audited.ts";
import type { Context } from "../context.ts";
import { endSignIns, voidPasswordResets } from "../end-credentials.ts";
import { refusePassword } from "../fields.ts";
import { confirmPassword } from "./confirm-password.ts";
import { attemptSignIn } from "./throttle.ts";
import { type Known, refuseWeakPassword } from "./weak-password.ts";

/** The body of `POST /auth/password`. */
export type PasswordChange = { readonly current_password: string; readonly new_password: string };

/**
 * A signed-in person chooses a new password. Their other sign-ins end, and their unused reset links become
 * void. A wrong current password is `not_authenticated` and counts as a failed sign-in. Null on success.
 */
export async function changePassword(
  ctx: Context,
  { user, session }: { readonly user: User; readonly session: AuthSession },
  input: PasswordChange,
  address: string,
): Promise<Refusal | null> {
  const refused =
    refusePassword("new_password", input.new_password) ??
    (await confirmPassword(ctx, user, input.current_password, address)) ??
    (await refuseWeakPassword(ctx, "new_password", input.new_password, await knownOf(ctx, user)));
  if (refused) return refused;
  const passwordHash = await ctx.passwords.hash(input.new_password);
  return executeAudited(
    ctx,
    { kind: "user", id: user.id },
    {
      scope: { organisationId: user.organisationId, mode: session.mode },
      needs: {
        user: user.id,
        callerSession: session.tokenHash,
        userSessions: user.id,
        unusedPasswordResets: user.id,
      },
      decide({ user: person, callerSession, userSessions, unusedPasswordResets }, now): Audited<null> {
        // Hashing takes time. Where another change came first, the password that was confirmed here is not
        // the current one any more.
        const isCurrent = person?.passwordHash === user.passwordHash;
        if (!person || !isCurrent || !callerSession || callerSession.expiresAt <= now) {
          return {
            answer: refuse("not_authenticated", "The password was changed meanwhile. Sign in again."),
          };
        }
        const others = userSessions.filter(({ tokenHash }) => tokenHash !== session.tokenHash);
        return {
          answer: null,
          put: [
            { kind: "user", before: person, row: { ...person, passwordHash } },
            ...endSignIns(others, now),
            ...voidPasswordResets(unusedPasswordResets, now),
          ],
          entries: [{ action: "user.password_changed", subject: person.id, before: null, after: null }],
        };
      },
    },
  );
}

/** The body of `POST /auth/password/reset`. */
export type PasswordResetInput = Wire<typeof passwordResetBody>;

/**
 * The holder of a one-time link chooses a new password. All sign-ins of the person end, and the link is used
 * up in the same commit. A weak password is refused, and the link stays good. A link that is unknown, used, void or expired is `not_authenticated`, always the
 * same, and counts as a failed sign-in of the address. Null on success.
 */
export async function resetPassword(
  ctx: Context,
  input: PasswordResetInput,
  address: string,
): Promise<Refusal | null> {
  const refused = refusePassword("new_password", input.new_password);
  if (refused) return refused;
  // The request names no e-mail, so all failures of an address are counted for the empty one.
  const person = await attemptSignIn(ctx, "", address, () => resetByLink(ctx, input));
  if (isRefusal(person)) return person;
  // A person who forgot the password has probably tried wrong ones. These failures are forgotten now.
  ctx.signInThrottle.forgive(person.email, address, ctx.now());
  return null;
}

/** The person who owns the link, once the new password is kept. */
async function resetByLink(ctx: Context, input: PasswordResetInput): Promise<User | Refusal> {
  const tokenHash = hashSecret(input.token);
  const user = await ctx.store.read(async ({ passwordResets, users }) => {
    const reset = await passwordResets.byHash(tokenHash);
    return reset && reset.usedAt === null && reset.expiresAt > ctx.now() ? users.get(reset.userId) : null;
  });
  if (!user) return uselessLink();
  const weak = await refuseWeakPassword(ctx, "new_password", input.new_password, await knownOf(ctx, user));
  if (weak) return weak;
  const passwordHash = await ctx.passwords.hash(input.new_password);
  return executeAudited(
    ctx,
    { kind: "user", id: user.id },
    {
      scope: { organisationId: user.organisationId, mode: "live" },
      needs: { passwordReset: tokenHash, user: user.id, userSessions: user.id },
      decide({ passwordReset: link, user: person, userSessions }, now): Audited<User> {
        if (!person || !link || link.usedAt !== null || link.expiresAt <= now) {
          return { answer: uselessLink() };
        }
        return {
          answer: person,
          put: [
            { kind: "passwordReset", before: link, row: { ...link, usedAt: now } },
            { kind: "user", before: person, row: { ...person, passwordHash, passwordResetAt: now } },
            ...endSignIns(userSessions, now),
          ],
          entries: [{ action: "user.password_reset", subject: person.id, before: null, after: null }],
        };
      },
    },
  );
}

async function knownOf({ store }: Context, { email, name, organisationId }: User): Promise<Known> {
  const organisation = await store.read(({ organisations }) => organisations.get(organisationId));
  if (!organisation) throw new Error("a person without an organisation");
  return { email, name, organisation };
}

const uselessLink = (): Refusal =>
  refuse("not_authenticated", "The link is unknown, used or out of date. Ask an admin for a new one.");
