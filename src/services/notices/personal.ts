import type { AuthSession } from "../../core/auth-session.ts";
import { type NoticeAbout, newNotice } from "../../core/notice.ts";
import { isInvited, type User } from "../../core/user.ts";
import type { Put } from "../../store/change.ts";
import type { Context } from "../context.ts";

/**
 * What one person is told about their own account. It goes by e-mail whatever they chose, and at any hour: who took their account
 * over could choose otherwise. Without a mail server none is made.
 */

/**
 * A link with which the person chooses a new password, or the first one, where they were invited. It is kept encrypted until it is
 * sent.
 */
export function resetLinkNotice(
  ctx: Context,
  url: string,
): (user: User, by: string | null, expiresAt: number, now: number) => readonly Put[] {
  const id = ctx.newId("notice");
  const encryptedLink = ctx.notices.email.send === null ? null : ctx.vault.encrypt(url, id);
  return (user, by, expiresAt, now) => {
    if (encryptedLink === null) return [];
    const about: NoticeAbout = isInvited(user)
      ? { kind: "invitation", invitedBy: by, expiresAt }
      : { kind: "password_reset", expiresAt };
    const row = newNotice(
      { ...toPerson(user), id, subject: about.kind, about, createdAt: now },
      encryptedLink,
    );
    return [{ kind: "notice", before: null, row }];
  };
}

/** @param isNew whether nobody has signed in as this person from there before, of what is remembered */
export function newSignInNotice(
  ctx: Context,
  isNew: boolean,
): (user: User, session: AuthSession) => readonly Put[] {
  const id = ctx.newId("notice");
  return (user, { createdAt, network, agent }) => {
    if (!isNew || ctx.notices.email.send === null) return [];
    const about = { kind: "new_sign_in", at: createdAt, network: network ?? "unknown", agent } as const;
    const row = newNotice({ ...toPerson(user), id, subject: about.kind, about, createdAt });
    return [{ kind: "notice", before: null, row }];
  };
}

const toPerson = ({ id: userId, organisationId }: User) =>
  ({ userId, organisationId, mode: "live", channel: "email" }) as const;
