import { hashSecret } from "../../core/api-key.ts";
import { isRefusal, type Refusal, refuse } from "../../core/errors.ts";
import type { PasswordReset } from "../../core/password-reset.ts";
import { roleIsAtLeast } from "../../core/roles.ts";
import { DAY_MS, HOUR_MS, isoTime } from "../../core/time.ts";
import { isInvited, type User } from "../../core/user.ts";
import type { Put } from "../../store/change.ts";
import type { Audited, Entry } from "../audited.ts";
import { newToken } from "../auth/tokens.ts";
import type { Context } from "../context.ts";
import { voidPasswordResets } from "../end-credentials.ts";
import { resetLinkNotice } from "../notices/personal.ts";
import { type Authority, administer, refuseAuthority } from "./authority.ts";
import { findUser, refuseManaging, userNotFound } from "./users.ts";

const LIFETIME_MS = HOUR_MS;
/** Somebody who is invited may be away. Nothing of theirs can be taken over by the link, since they have nothing yet. */
const INVITATION_LIFETIME_MS = 7 * DAY_MS;

/** A one-time link. It is shown only here: only a hash of its token is kept. */
export type NewPasswordReset = {
  readonly object: "password_reset";
  readonly user_id: string;
  /** The token follows the `#`: browsers do not send that part, so no server logs it. */
  readonly url: string;
  readonly expires_at: string;
};

/**
 * Makes a link with which a person can choose a new password for one hour; somebody who was invited and has none yet, for seven
 * days. Earlier links become void. A person may make one only for somebody with a lower role, or for whoever they may invite; the
 * operator of the machine, for anyone.
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
  const link = newResetLink(ctx);
  return administer(ctx, authority, "admin", {
    scope: { organisationId: known.organisationId, mode: "live" },
    needs: { user: known.id, unusedPasswordResets: known.id },
    decide: ({ user, unusedPasswordResets }, now, current): Audited<NewPasswordReset> => {
      if (!user) return { answer: userNotFound(known.id) };
      const forbidden = isInvited(user) ? refuseManaging(current, user.role) : refuseReset(current, user);
      if (forbidden) return { answer: forbidden };
      const { put, answer, entry } = link.for(user, current, now);
      return { answer, put: [...voidPasswordResets(unusedPasswordResets, now), ...put], entries: [entry] };
    },
  });
}

/** Whoever makes a reset link can sign in by it, so it is for lower roles only. */
const refuseReset = (authority: Authority, { role }: User): Refusal | null =>
  authority.kind === "person" && roleIsAtLeast(role, authority.role)
    ? refuse(
        "insufficient_role",
        `A reset link is for lower roles only: theirs is ${role}, yours is ${authority.role}.`,
      )
    : null;

/** Draws the token of a link. Whose it is, who makes it, and from when on it counts, is said at the commit. */
export function newResetLink(ctx: Context) {
  const token = newToken(ctx);
  const tokenHash = hashSecret(token);
  const url = `${new URL(ctx.baseUrl).origin}/reset-password#${token}`;
  const mail = resetLinkNotice(ctx, url);
  return {
    for(user: User, by: Authority, now: number) {
      const expiresAt = now + (isInvited(user) ? INVITATION_LIFETIME_MS : LIFETIME_MS);
      const row: PasswordReset = { tokenHash, userId: user.id, createdAt: now, expiresAt, usedAt: null };
      const after = { user_id: user.id, expires_at: isoTime(expiresAt) };
      const answer: NewPasswordReset = {
        object: "password_reset",
        user_id: user.id,
        url,
        expires_at: after.expires_at,
      };
      return {
        answer,
        put: [
          { kind: "passwordReset", before: null, row },
          ...mail(user, by.kind === "person" ? by.userId : null, expiresAt, now),
        ] satisfies readonly Put[],
        entry: {
          action: "user.password_reset_issued",
          subject: user.id,
          before: null,
          after,
        } satisfies Entry,
      };
    },
  };
}
