import type { Escalation } from "../core/escalation.ts";
import { DAY_MS, HOUR_MS } from "../core/time.ts";
import type { Context } from "../services/context.ts";

/** Rows that one step reads, so that requests get their turn between steps. */
const STEP = 200;
/** How many reminders a run logs. One more line says how many others there are. */
const REMINDERS_MAX = 200;

/** Writes a warning to the log. */
export type Warn = (message: string, fields: Readonly<Record<string, string | number>>) => void;

/**
 * Logs reminders of escalations that wait for a person: each after a day of waiting, and then once a day. A
 * reminder is due when a whole day of waiting has ended since the last run, so nothing about it is stored.
 *
 * @param since epoch milliseconds up to which earlier runs have reminded, also those before a restart
 * @returns a run that may be called at any time; it answers how many reminders were due
 */
export function escalationReminders(ctx: Context, since: number, warn: Warn): () => Promise<number> {
  let remindedUntil = since;
  return async () => {
    const now = ctx.now();
    let due = 0;
    let after: Escalation | null = null;
    do {
      const waiting = await readStep(ctx, now, after);
      for (const escalation of waiting) {
        if (daysOf(escalation, now) <= daysOf(escalation, remindedUntil)) continue;
        due += 1;
        if (due <= REMINDERS_MAX) warn("an escalation waits", fieldsOf(escalation, now));
      }
      after = waiting.length < STEP ? null : (waiting.at(-1) ?? null);
      await new Promise(setImmediate);
    } while (after !== null);
    if (due > REMINDERS_MAX) warn("more escalations wait", { more: due - REMINDERS_MAX });
    // After the clock was set back, no reminder is repeated.
    remindedUntil = Math.max(remindedUntil, now);
    return due;
  };
}

const readStep = (ctx: Context, now: number, after: Escalation | null): Promise<readonly Escalation[]> =>
  ctx.store.read((reader) => reader.escalations.waiting(now - DAY_MS + 1, after, STEP));

/** How many whole days the escalation has waited. */
const daysOf = ({ createdAt }: Escalation, now: number): number => Math.floor((now - createdAt) / DAY_MS);

const fieldsOf = (escalation: Escalation, now: number) => ({
  escalation_id: escalation.id,
  warrant_id: escalation.warrantId,
  organisation_id: escalation.organisationId,
  mode: escalation.mode,
  status: escalation.status,
  waiting_hours: Math.floor((now - escalation.createdAt) / HOUR_MS),
});
