import { readinessOf, type Vitals } from "../core/operation.ts";
import { HOUR_MS } from "../core/time.ts";
import type { Context } from "../services/context.ts";
import { deliverNotices, type OnNoticeFault } from "../services/notices/deliver.ts";
import { noticePlanner } from "../services/notices/plan.ts";
import { type Trouble, tellOfTrouble } from "../services/notices/trouble.ts";

type Telling = {
  /** A clock that never jumps, in milliseconds. */
  readonly monotonicNow: () => number;
  /** The clock's time; null while it is known to be wrong. */
  readonly agreedNow: () => number | null;
  readonly onFault: OnNoticeFault;
};

/** Makes the notices of escalations, and starts the attempts that are due. It does not wait for their end. */
export function noticesJob(ctx: Context, { monotonicNow, agreedNow, onFault }: Telling): () => Promise<void> {
  const plan = noticePlanner(ctx, monotonicNow);
  return async () => {
    await plan(agreedNow());
    await deliverNotices(ctx, onFault);
  };
}

type Watched = Pick<Telling, "monotonicNow"> & {
  readonly vitals: () => Promise<Vitals>;
  /** The name of the job that makes backups. */
  readonly backupJob: string;
};

/** How often a trouble that goes on is recorded again. People hear of it once a day. */
const WRITTEN_MS = HOUR_MS;

/** Tells admins what `/readyz` says, where two looks in a row say it, so that what passes wakes nobody; and that a backup failed. */
export function troubleWatch(ctx: Context, watched: Watched): () => Promise<void> {
  let before: ReadonlySet<string> = new Set();
  const writtenAt = new Map<string, number>();
  return async () => {
    const vitals = await watched.vitals();
    const { checks } = readinessOf(vitals);
    const bad = checks.filter(({ ok }) => !ok);
    const lasting = bad.filter(({ name }) => before.has(name));
    before = new Set(bad.map(({ name }) => name));
    const troubles: Trouble[] = lasting.map(({ name, message }) => ({ name, message: message ?? name }));
    const backup = vitals.jobs.find(({ name }) => name === watched.backupJob);
    if (backup?.lastOutcome === "failed") troubles.push(BACKUP_FAILED);
    for (const name of writtenAt.keys())
      if (!troubles.some((trouble) => trouble.name === name)) writtenAt.delete(name);
    const due = troubles.filter(({ name }) => {
      const at = writtenAt.get(name);
      return at === undefined || watched.monotonicNow() - at >= WRITTEN_MS;
    });
    await tellOfTrouble(ctx, due);
    for (const { name } of due) writtenAt.set(name, watched.monotonicNow());
  };
}

const BACKUP_FAILED: Trouble = {
  name: "backup",
  message: "The last backup failed, or its audit found disagreements; the log says why.",
};
