import { isRefusal } from "../../core/errors.ts";
import { CHANNELS, type Notice, type NoticeAbout, newNotice } from "../../core/notice.ts";
import { DAY_MS } from "../../core/time.ts";
import type { Put } from "../../store/change.ts";
import type { Scope } from "../../store/scope.ts";
import type { Decision } from "../../store/store.ts";
import type { Context } from "../context.ts";
import { channelsTo } from "./reach.ts";

/** What went wrong, by a name that stays the same while it goes on. */
export type Trouble = { readonly name: string; readonly message: string };

/** What goes on is told again after a day. */
const AGAIN_MS = DAY_MS;
/** How many people of an organisation hear of one trouble. The ids of the notices are drawn before the commit. */
const TOLD_MAX = 20;

/**
 * Tells the admins and owners of every organisation what is wrong with the service, unless they heard of it within a day.
 * Answers how many notices it made.
 */
export async function tellOfTrouble(ctx: Context, troubles: readonly Trouble[]): Promise<number> {
  if (troubles.length === 0) return 0;
  const organisations = await ctx.store.read((reader) => reader.organisations.list());
  let told = 0;
  for (const { id } of organisations) {
    for (const { name, message } of troubles) {
      const about = { kind: "trouble", name, message } as const;
      told += await tellAdmins(ctx, { organisationId: id, mode: "live" }, `trouble ${name}`, about);
    }
  }
  return told;
}

/** Tells the admins and owners of the organisations whose endpoints lost events since the last run. */
export async function tellOfLostEvents(ctx: Context): Promise<number> {
  const { endpoints } = ctx.deliveryFailures;
  let told = 0;
  for (const [webhookId, scope] of endpoints) {
    told += await tellAdmins(ctx, scope, `events_lost ${webhookId}`, { kind: "events_lost", webhookId });
    // Only now: what could not be written is told by the next run.
    endpoints.delete(webhookId);
  }
  return told;
}

async function tellAdmins(
  ctx: Context,
  scope: Scope,
  subject: Notice["subject"],
  about: NoticeAbout,
): Promise<number> {
  const ids = Array.from({ length: TOLD_MAX * CHANNELS.length }, () => ctx.newId("notice"));
  const told = await ctx.store.execute({
    scope,
    needs: { readers: "admin", newestNotice: subject },
    decide({ readers, newestNotice }, now): Decision<number> {
      // A time in the future was written by a clock that was ahead.
      if (newestNotice !== null && newestNotice <= now && now - newestNotice < AGAIN_MS) return { answer: 0 };
      const { organisationId, mode } = scope;
      const rows = readers
        .filter(({ settings }) => mode === "live" || settings?.sandbox !== false)
        .slice(0, TOLD_MAX)
        .flatMap((reader) => channelsTo(ctx, reader).map((channel) => ({ userId: reader.user.id, channel })))
        .map(({ userId, channel }, index): Put => {
          const id = ids[index] ?? "";
          const given = { id, organisationId, mode, userId, channel, subject, about, createdAt: now };
          return { kind: "notice", before: null, row: newNotice(given) };
        });
      return { answer: rows.length, change: { put: rows } };
    },
  });
  if (isRefusal(told)) throw new Error(told.message);
  return told;
}
