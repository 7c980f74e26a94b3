import type { Client } from "../../core/client.ts";
import { isRefusal, type Refusal } from "../../core/errors.ts";
import type { SignInsEnded } from "../../resources/sign-in.ts";
import type { Audited } from "../audited.ts";
import { liveSignIn, signInsOf } from "../auth/sign-ins.ts";
import type { Context } from "../context.ts";
import { contactNeeds, endContacts, endSignIns, namedSignIns, withContacts } from "../end-credentials.ts";
import { type Authority, administer, refuseAuthority } from "./authority.ts";
import { findUser, refuseManaging, userNotFound } from "./users.ts";

/** The sign-ins of a person whom the authority may manage. */
export function listSignIns(ctx: Context, authority: Authority, input: { readonly user_id: string }) {
  return ctx.store.read(async (reader) => {
    const refused = refuseAuthority(authority, "admin");
    if (refused) return refused;
    const user = await findUser(reader, authority, input.user_id);
    if (isRefusal(user)) return user;
    const current = authority.kind === "person" ? authority.signInHash : null;
    return refuseManaging(authority, user.role) ?? signInsOf(reader, user.id, { now: ctx.now(), current });
  });
}

/**
 * Ends one sign-in of a person, or all, at once; with all of them the chat that is linked. The person may sign in again: to keep somebody out, remove them or reset the
 * password. Only an owner ends those of admins and owners.
 *
 * @param client null at the command line
 */
export async function endSignInsOf(
  ctx: Context,
  authority: Authority,
  input: { readonly user_id: string; readonly sign_in_id?: string },
  client: Client | null,
): Promise<SignInsEnded | Refusal> {
  const refused = refuseAuthority(authority, "admin");
  if (refused) return refused;
  const known = await ctx.store.read((reader) => findUser(reader, authority, input.user_id));
  if (isRefusal(known)) return known;
  const { sign_in_id: signInId } = input;
  const ended = await administer(ctx, authority, "admin", {
    scope: { organisationId: known.organisationId, mode: "live" },
    needs: { user: known.id, userSessions: known.id, ...contactNeeds(known.id) },
    decide({ user, userSessions, ...snapshot }, now, current): Audited<SignInsEnded> {
      if (!user) return { answer: userNotFound(known.id) };
      const forbidden = refuseManaging(current, user.role);
      if (forbidden) return { answer: forbidden };
      const one = signInId === undefined ? null : liveSignIn(userSessions, signInId, now);
      if (isRefusal(one)) return { answer: one };
      const before = namedSignIns(one ? [one] : userSessions, now);
      const answer = { object: "sign_ins_ended", user_id: user.id, ...before } as const;
      // One sign-in alone leaves the chat linked, and the devices.
      const contacts = one ? NO_CONTACTS : snapshot;
      const deleted = endContacts(contacts);
      if (before.sign_ins.length === 0 && deleted.length === 0) return { answer };
      return {
        answer,
        put: endSignIns(one ? [one] : userSessions, now),
        deleted,
        entries: withContacts(
          { action: "user.sign_ins_ended", subject: user.id, before, after: { sign_ins: [] } },
          contacts,
        ),
      };
    },
  });
  if (!isRefusal(ended) && client && authority.kind === "person") {
    ctx.signInLog.ended({
      ...{ client, userId: known.id, signInIds: ended.sign_ins },
      ...{ why: "ended", endedBy: authority.userId },
    });
  }
  return ended;
}

const NO_CONTACTS = { messagingAccount: null, messagingCode: null, pushSubscriptions: [] };
