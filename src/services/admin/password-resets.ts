import { hashSecret } from "../../core/api-key.ts";
import { isRefusal, type Refusal, refuse } from "../../core/errors.ts";
import type { PasswordReset } from "../../core/password-reset.ts";
import { roleIsAtLeast } from "../../core/roles.ts";
import { HOUR_MS, isoTime } from "../../core/time.ts";
import type { Audited } from "../audited.ts";
import { newToken } from "../auth/tokens.ts";
import type { Context } from "../context.ts";
import { voidPasswordResets } from "../end-credentials.ts";
import { type Authority, administer, refuseAuthority } from "./authority.ts";
import { findUser, userNotFound } from "./users.ts";

const LIFETIME_MS = HOUR_MS;

/** A one-time link. It is shown only here: only a hash of its token is kept. */
export type NewPasswordReset = {
  readonly object: "password_reset";
  readonly user_id: string;
  /** The token follows the `#`: browsers do not send that part, so no server logs it. */
  readonly url: string;
  readonly expires_at: string;
};

/**
 * Makes a link with which a person can choose a new password for one hour. Earlier links become void. A
 * person may make one only for somebody with a lower role; the operator of the machine, for anyone.
 */
export async function issuePasswordReset(
  ctx: Context,
  authority: Authority,
  input: { readonly user_id: string },
): Promise<NewPasswordReset | Refusal> {
  const refused = refuseAuthority(authority, "admin");
  if (refused) return refused;
  const known = await ctx.store.read((reader) => findUser(reader, authority, input.user_id));
  if (isRefusal(known)) return known;
  const token = newToken(ctx);
  const tokenHash = hashSecret(token);
  return administer(ctx, authority, "admin", {
    scope: { organisationId: known.organisationId, mode: "live" },
    needs: { user: known.id, unusedPasswordResets: known.id },
    decide: ({ user, unusedPasswordResets }, now, current): Audited<NewPasswordReset> => {
      if (!user) return { answer: userNotFound(known.id) };
      if (current.kind === "person" && roleIsAtLeast(user.role, current.role)) {
        return {
          answer: refuse(
            "insufficient_role",
            `A reset link is for lower roles only: theirs is ${user.role}, yours is ${current.role}.`,
          ),
        };
      }
      const row: PasswordReset = {
        tokenHash,
        userId: user.id,
        createdAt: now,
        expiresAt: now + LIFETIME_MS,
        usedAt: null,
      };
      const after = { user_id: user.id, expires_at: isoTime(row.expiresAt) };
      return {
        answer: {
          object: "password_reset",
          user_id: user.id,
          url: `${new URL(ctx.baseUrl).origin}/reset-password#${token}`,
          expires_at: after.expires_at,
        },
        put: [...voidPasswordResets(unusedPasswordResets, now), { kind: "passwordReset", before: null, row }],
        entries: [{ action: "user.password_reset_issued", subject: user.id, before: null, after }],
      };
    },
  });
}
