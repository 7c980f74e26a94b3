import { isRefusal } from "../../core/errors.ts";
import { derivedId } from "../../core/ids.ts";
import { NAMED_MAX, type NoticeAbout, newNotice, nextOfPlan, type PlannedNotice } from "../../core/notice.ts";
import { roleIsAtLeast } from "../../core/roles.ts";
import { MINUTE_MS } from "../../core/time.ts";
import type { Deletion, Put } from "../../store/change.ts";
import type { NoticeReader } from "../../store/needs.ts";
import type { Scope } from "../../store/scope.ts";
import type { Decision } from "../../store/store.ts";
import type { Context } from "../context.ts";
import { channelsTo } from "./reach.ts";

/** How many escalations one commit plans further, and how many commits a run makes for a scope. */
const STEP = 50;
const STEPS_MAX = 200;
/**
 * After a notice, further escalations of the same organisation and mode are gathered for this long and go out together. So a
 * hundred escalations do not send a hundred notices.
 */
const GATHER_MS = 5 * MINUTE_MS;
/** How many scopes are remembered as having had a notice. Where there are more, all are forgotten. */
const REMEMBERED_MAX = 10_000;

/**
 * Makes the notices of escalations that people are to hear of: of new ones, and after a day and three days of those that still
 * wait. An escalation that has ended meanwhile gets none.
 *
 * @param monotonicNow a clock that never jumps, in milliseconds
 * @returns a run that may be called at any time; `now` is null where the clock is known to be wrong, and then no reminder is made.
 *   It answers how many notices it made
 */
export function noticePlanner(
  ctx: Context,
  monotonicNow: () => number,
): (now: number | null) => Promise<number> {
  const gathering = new Map<string, number>();
  return async (now) => {
    const until = now ?? 0;
    const scopes = await ctx.store.read(async ({ notices }) => {
      const next = await notices.nextPlanAt();
      return next === null || next > until ? [] : notices.scopesToPlan(until);
    });
    let made = 0;
    for (const scope of scopes) {
      const key = `${scope.organisationId} ${scope.mode}`;
      const since = gathering.get(key);
      if (since !== undefined && monotonicNow() - since < GATHER_MS) continue;
      // All that is due goes into one notice, which the first step makes with anything to tell.
      let notices = 0;
      for (let step = 0; step < STEPS_MAX; step++) {
        const planned = await planStep(ctx, scope, until, notices === 0);
        notices += planned.notices;
        if (planned.plans < STEP) break;
        await new Promise(setImmediate);
      }
      made += notices;
      if (gathering.size >= REMEMBERED_MAX) gathering.clear();
      if (notices > 0) gathering.set(key, monotonicNow());
    }
    return made;
  };
}

type Step = { readonly plans: number; readonly notices: number };

/** Plans escalations of one organisation and mode further, in one commit; with `tells`, it makes the notices of all that are due. */
async function planStep(ctx: Context, scope: Scope, until: number, tells: boolean): Promise<Step> {
  const { planned, all } = await ctx.store.read(async ({ notices }) => {
    const found = await notices.planned(scope, until, STEP);
    const more = tells && found.length === STEP;
    return { planned: found, all: more ? await notices.plannedCount(scope, until) : found.length };
  });
  const waiting = new Set(
    planned.flatMap(({ plan, status }) => (status === null || status === "resolved" ? [] : [plan.id])),
  );
  const raisedBy = new Map(
    planned.flatMap(({ plan, status, raisedBy: by }) => (status === "disputed" ? [[plan.id, by]] : [])),
  );
  const made = await ctx.store.execute({
    scope,
    needs: { plannedNotices: planned.map(({ plan }) => plan.id), readers: "operator" },
    decide({ plannedNotices, readers }, now): Decision<Step> {
      const put: Put[] = [];
      const deleted: Deletion[] = [];
      const open = new Map<number, PlannedNotice[]>();
      const disputed = new Map<number, PlannedNotice[]>();
      for (const plan of plannedNotices) {
        const { hours, next } = nextOfPlan(plan, until);
        const goesOn = waiting.has(plan.id) && next !== null;
        if (goesOn) put.push({ kind: "plannedNotice", before: plan, row: next });
        else deleted.push({ kind: "plannedNotice", row: plan });
        const byHours = raisedBy.has(plan.id) ? disputed : open;
        if (waiting.has(plan.id)) byHours.set(hours, [...(byHours.get(hours) ?? []), plan]);
      }
      const notices = tells
        ? [
            ...[...open].flatMap(([hours, of]) =>
              noticesOf(
                ctx,
                scope,
                readers,
                { kind: "escalations", hours, of, others: all - planned.length },
                now,
              ),
            ),
            ...[...disputed].flatMap(([hours, of]) =>
              disputesTo(ctx, scope, readers, { hours, of, raisedBy }, now),
            ),
          ]
        : [];
      const answer = { plans: planned.length, notices: notices.length };
      return { answer, change: { put: [...put, ...notices], deleted } };
    },
  });
  if (isRefusal(made)) throw new Error(made.message);
  return made;
}

/** Escalations that have waited equally long, and how many others are due that this step has not read. */
type Gathered = {
  readonly kind: "escalations" | "disputes";
  readonly hours: number;
  readonly of: readonly PlannedNotice[];
  readonly others: number;
};
type Disputed = Pick<Gathered, "hours" | "of"> & { readonly raisedBy: ReadonlyMap<string, string | null> };

/** A dispute waits for a second person: for admins and owners, but not for who raised it. */
const disputesTo = (
  ctx: Context,
  scope: Scope,
  readers: readonly NoticeReader[],
  { hours, of, raisedBy }: Disputed,
  now: number,
): readonly Put[] =>
  readers
    .filter(({ user }) => roleIsAtLeast(user.role, "admin"))
    .flatMap((reader) => {
      const others = of.filter(({ id }) => raisedBy.get(id) !== reader.user.id);
      return noticesOf(ctx, scope, [reader], { kind: "disputes", hours, of: others, others: 0 }, now);
    });

/** One notice for each reader and channel. */
function noticesOf(
  ctx: Context,
  scope: Scope,
  readers: readonly NoticeReader[],
  { kind, hours: waitedHours, of: plans, others }: Gathered,
  now: number,
): readonly Put[] {
  const [first] = plans;
  if (!first) return [];
  const { organisationId, mode } = scope;
  const escalationIds = plans.slice(0, NAMED_MAX).map(({ id }) => id);
  const about: NoticeAbout = { kind, escalationIds, count: plans.length + others, waitedHours };
  return readers
    .filter(({ settings }) => mode === "live" || settings?.sandbox !== false)
    .flatMap((reader) =>
      channelsTo(ctx, reader).map((channel): Put => {
        const salt = `${reader.user.id} ${channel} ${waitedHours}${kind === "disputes" ? " disputed" : ""}`;
        const row = newNotice({
          id: derivedId("notice", first.id, salt),
          ...{ organisationId, mode, userId: reader.user.id, channel },
          subject: `${kind} ${waitedHours}`,
          ...{ about, createdAt: now },
        });
        return { kind: "notice", before: null, row };
      }),
    );
}
