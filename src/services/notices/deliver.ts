import { isRefusal } from "../../core/errors.ts";
import {
  claimNotice,
  dropNotice,
  endNotice,
  isPersonal,
  NOTICE_AHEAD_MAX_MS,
  NOTICE_CLAIM_MS,
  type Notice,
  type NoticeAbout,
  type NoticeResult,
  noticeSettingsOf,
  rescheduleNotice,
  withinHours,
} from "../../core/notice.ts";
import { type Role, roleIsAtLeast } from "../../core/roles.ts";
import type { User } from "../../core/user.ts";
import type { NoticeQueue } from "../../store/deliveries-reader.ts";
import type { NoticeReader } from "../../store/needs.ts";
import type { Reader } from "../../store/reader.ts";
import type { Decision } from "../../store/store.ts";
import type { Context } from "../context.ts";
import { composeNotice, WAITS_AS } from "./compose.ts";
import { channelsTo, reachNeeds, reachOf } from "./reach.ts";

/** Is called for an attempt that failed on our side. The notice continues by its schedule. */
export type OnNoticeFault = (error: unknown, noticeId: string) => void;

const STEP = 100;
/** How many due notices of a queue a run looks at. */
const DUE_MAX = 16;

/**
 * Puts notices that were cut off back on their schedule, and starts the attempts that are due, as far as there are slots. It
 * does not wait for their end, and each channel has its own slots: a mail server that hangs delays nothing else.
 */
export async function deliverNotices(ctx: Context, onFault: OnNoticeFault): Promise<void> {
  await recoverNotices(ctx);
  const now = ctx.now();
  const queues = await ctx.store.read(async ({ notices }) => {
    const next = await notices.nextAttemptAt();
    return next === null || next > now ? [] : notices.queuesToSend(now);
  });
  for (const queue of queues) await beginInQueue(ctx, queue, onFault);
}

async function beginInQueue(ctx: Context, queue: NoticeQueue, onFault: OnNoticeFault): Promise<void> {
  const { organisationId } = queue;
  const { slots } = ctx.notices[queue.channel];
  if (slots.free({ id: organisationId, organisationId }) === 0) return;
  const due = await ctx.store.read((reader) => reader.notices.due(queue, ctx.now(), DUE_MAX));
  for (const notice of due) {
    if (slots.taken(organisationId).has(notice.id)) continue;
    if (slots.free({ id: organisationId, organisationId }) === 0) return;
    const attempt = attemptNotice(ctx, notice, onFault).then(
      (durationMs) => slots.took(organisationId, durationMs),
      (error: unknown) => onFault(error, notice.id),
    );
    slots.hold({ id: notice.id, webhookId: organisationId, organisationId }, attempt);
  }
}

/** Makes the attempt that is due to one notice, and records how it ended. Answers how long it took, in milliseconds; 0 where none was made. */
async function attemptNotice(ctx: Context, { id, ...due }: Notice, onFault: OnNoticeFault): Promise<number> {
  const isOver = await ctx.store.read((reader) => hasEnded(reader, due.about));
  const claimed = await execute(ctx, due, id, (notice, reader, now) => {
    const row = claimNotice(notice, now);
    if (row === null) return null;
    if (isOver || !mayHear(ctx, notice, reader)) return dropNotice(notice);
    const settings = reader.settings ?? noticeSettingsOf(notice.userId, notice.organisationId);
    const at = isPersonal(notice.about) ? now : withinHours(settings, now);
    return at > now ? { ...notice, nextAttemptAt: at } : row;
  });
  if (claimed === null || claimed.notice.claimedUntil === null || claimed.user === null) return 0;
  let result: NoticeResult;
  try {
    result = await sendNotice(ctx, claimed.notice, claimed.user);
  } catch (error) {
    onFault(error, id);
    result = { outcome: "failed", answer: "not_sent", durationMs: null };
  }
  await execute(ctx, due, id, (notice, _, now) =>
    notice.claimedUntil === null || notice.attempts !== claimed.notice.attempts
      ? null
      : endNotice(notice, result, now),
  );
  return result.durationMs ?? 0;
}

type NoticePerson = Omit<NoticeReader, "user"> & { readonly user: User | null };

/** Changes a notice, and answers it with its person; null where nothing changed. */
async function execute(
  ctx: Context,
  { organisationId, mode, userId }: Pick<Notice, "organisationId" | "mode" | "userId">,
  id: string,
  after: (notice: Notice, person: NoticePerson, now: number) => Notice | null,
): Promise<{ readonly notice: Notice; readonly user: User | null } | null> {
  const changed = await ctx.store.execute({
    scope: { organisationId, mode },
    needs: { notice: id, user: userId, ...reachNeeds(userId) },
    decide({ notice, user, ...snapshot }, now): Decision<Awaited<ReturnType<typeof execute>>> {
      const row = notice && after(notice, { user, ...reachOf(snapshot) }, now);
      if (!row) return { answer: null };
      return { answer: { notice: row, user }, change: { put: [{ kind: "notice", before: notice, row }] } };
    },
  });
  if (isRefusal(changed)) throw new Error(changed.message);
  return changed;
}

/** The role that a notice is for. */
const ROLE_OF = {
  escalations: "operator",
  disputes: "admin",
  events_lost: "admin",
  trouble: "admin",
  password_reset: "viewer",
  invitation: "viewer",
  new_sign_in: "viewer",
  test: "viewer",
} as const satisfies Record<NoticeAbout["kind"], Role>;

/** Whether the person may still hear of it: they may have been removed or demoted meanwhile, or have chosen not to. */
function mayHear(ctx: Context, { about, channel }: Notice, { user, ...reach }: NoticePerson): boolean {
  if (user === null || !roleIsAtLeast(user.role, ROLE_OF[about.kind])) return false;
  return isPersonal(about) || channelsTo(ctx, { user, ...reach }).includes(channel);
}

/** Whether nobody needs to hear of it any more. */
async function hasEnded({ escalations }: Reader, about: NoticeAbout): Promise<boolean> {
  if (about.kind !== "escalations" && about.kind !== "disputes") return false;
  for (const id of about.escalationIds) {
    if ((await escalations.get(id))?.status === WAITS_AS[about.kind]) return false;
  }
  return about.count <= about.escalationIds.length;
}

async function sendNotice(ctx: Context, notice: Notice, user: User): Promise<NoticeResult> {
  const { send } = ctx.notices[notice.channel];
  if (send === null) return { outcome: "failed", answer: "channel_not_set_up", durationMs: null };
  const link = notice.encryptedLink === null ? null : ctx.vault.decrypt(notice.encryptedLink, notice.id);
  return send(notice, user, await composeNotice(ctx, notice, user, link));
}

/** Puts notices back on their schedule: those whose attempt was cut off, and those whose times were written before the clock was set back. */
async function recoverNotices(ctx: Context): Promise<void> {
  const now = ctx.now();
  const offSchedule = await ctx.store.read(async ({ notices }) => [
    ...(await notices.cutOff(now, STEP)),
    ...(await notices.beyond(now + NOTICE_CLAIM_MS, now + NOTICE_AHEAD_MAX_MS, STEP)),
  ]);
  await Promise.all(
    offSchedule.map((notice) =>
      execute(ctx, notice, notice.id, (found, _, at) => rescheduleNotice(found, at)),
    ),
  );
}
