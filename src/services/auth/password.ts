import { hashSecret } from "../../core/api-key.ts";
import type { AuthSession } from "../../core/auth-session.ts";
import type { Client } from "../../core/client.ts";
import { isRefusal, type Refusal, refuse } from "../../core/errors.ts";
import type { Wire } from "../../core/form.ts";
import { isInvited, type User } from "../../core/user.ts";
import type { EndOfSignIn } from "../../platform/sign-in-log.ts";
import type { passwordResetBody } from "../../resources/password.ts";
import { type Audited, executeAudited } from "../audited.ts";
import type { Context } from "../context.ts";
import {
  contactNeeds,
  endContacts,
  endSignIns,
  namedSignIns,
  voidPasswordResets,
  withContacts,
} from "../end-credentials.ts";
import { refusePassword } from "../fields.ts";
import { accountsOf } from "./accounts.ts";
import { attemptSignIn } from "./attempt.ts";
import { confirmPassword } from "./confirm-password.ts";
import { type Known, refuseWeakPassword } from "./weak-password.ts";

/** The body of `POST /auth/password`. */
export type PasswordChange = { readonly current_password: string; readonly new_password: string };

/**
 * A signed-in person chooses a new password. Their other sign-ins end, their chat is unlinked, their devices are forgotten, and
 * their unused reset links become void. A wrong current password is `not_authenticated` and counts as a failed sign-in. Null on success.
 */
export async function changePassword(
  ctx: Context,
  { user, session }: { readonly user: User; readonly session: AuthSession },
  input: PasswordChange,
  client: Client,
): Promise<Refusal | null> {
  const refused =
    refusePassword("new_password", input.new_password) ??
    (await confirmPassword(ctx, user, input.current_password, client)) ??
    (await refuseWeakPassword(ctx, "new_password", input.new_password, await knownOf(ctx, user)));
  if (refused) return refused;
  const passwordHash = await ctx.passwords.hash(input.new_password);
  const ended = await executeAudited(
    ctx,
    { kind: "user", id: user.id },
    {
      scope: { organisationId: user.organisationId, mode: session.mode },
      needs: {
        user: user.id,
        callerSession: session.tokenHash,
        userSessions: user.id,
        unusedPasswordResets: user.id,
        ...contactNeeds(user.id),
      },
      decide(snapshot, now): Audited<Ended> {
        const { user: person, callerSession, userSessions, unusedPasswordResets } = snapshot;
        // Hashing takes time. Where another change came first, the password that was confirmed here is not
        // the current one any more.
        const isCurrent = person?.passwordHash === user.passwordHash;
        if (!person || !isCurrent || !callerSession || callerSession.expiresAt <= now) {
          return {
            answer: refuse("not_authenticated", "The password was changed meanwhile. Sign in again."),
          };
        }
        const others = userSessions.filter(({ tokenHash }) => tokenHash !== session.tokenHash);
        const answer = namedSignIns(others, now);
        return {
          answer,
          put: [
            { kind: "user", before: person, row: { ...person, passwordHash } },
            ...endSignIns(others, now),
            ...voidPasswordResets(unusedPasswordResets, now),
          ],
          // Somebody who knew the old password could have linked the chat or added a device.
          deleted: endContacts(snapshot),
          entries: withContacts(
            { action: "user.password_changed", subject: person.id, before: answer, after: { sign_ins: [] } },
            snapshot,
          ),
        };
      },
    },
  );
  if (isRefusal(ended)) return ended;
  logEnded(ctx, client, user, ended, "password changed");
  return null;
}

/** The sign-ins that a change ended. */
type Ended = ReturnType<typeof namedSignIns>;

function logEnded(
  ctx: Context,
  client: Client,
  { id }: User,
  { sign_ins: signInIds }: Ended,
  why: EndOfSignIn,
): void {
  if (signInIds.length > 0) ctx.signInLog.ended({ client, userId: id, signInIds, why, endedBy: id });
}

/** The body of `POST /auth/password/reset`. */
export type PasswordResetInput = Wire<typeof passwordResetBody>;

/**
 * The holder of a one-time link chooses a new password. All sign-ins of the person end, their chat is unlinked, their devices are
 * forgotten, and the link is used up in the same commit. A weak password is refused, and the link stays good. A link that is unknown, used, void or expired is `not_authenticated`, always the
 * same, and counts as a failed sign-in of the address. Null on success.
 */
export async function resetPassword(
  ctx: Context,
  input: PasswordResetInput,
  client: Client,
): Promise<Refusal | null> {
  const refused = refusePassword("new_password", input.new_password);
  if (refused) return refused;
  // Nobody guesses a link, so it has no account that could be held up.
  const attempt = { by: "reset link", client, account: null, trusted: false, user: null } as const;
  const reset = await attemptSignIn(ctx, attempt, () => resetByLink(ctx, input));
  if (isRefusal(reset)) return reset;
  // A person who forgot the password has probably tried wrong ones. And what strangers guessed was another password.
  for (const account of accountsOf(reset.person.email)) {
    await ctx.signInThrottle.forgive(account, ctx.now());
  }
  logEnded(ctx, client, reset.person, reset.ended, "password reset");
  return null;
}

/** The person who owns the link, and the sign-ins that ended, once the new password is kept. */
async function resetByLink(
  ctx: Context,
  input: PasswordResetInput,
): Promise<{ readonly person: User; readonly ended: Ended } | Refusal> {
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
      needs: { passwordReset: tokenHash, user: user.id, userSessions: user.id, ...contactNeeds(user.id) },
      decide(
        { passwordReset: link, user: person, userSessions, ...contacts },
        now,
      ): Audited<{ person: User; ended: Ended }> {
        if (!person || !link || link.usedAt !== null || link.expiresAt <= now) {
          return { answer: uselessLink() };
        }
        const ended = namedSignIns(userSessions, now);
        return {
          answer: { person, ended },
          put: [
            { kind: "passwordReset", before: link, row: { ...link, usedAt: now } },
            // A person who was invited chooses their first password here, so nobody else could have signed in before.
            {
              kind: "user",
              before: person,
              row: { ...person, passwordHash, passwordResetAt: isInvited(person) ? null : now },
            },
            ...endSignIns(userSessions, now),
          ],
          deleted: endContacts(contacts),
          entries: withContacts(
            { action: "user.password_reset", subject: person.id, before: ended, after: { sign_ins: [] } },
            contacts,
          ),
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
