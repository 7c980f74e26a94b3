import type { Warrant } from "../core/warrant.ts";
import type { Context } from "../services/context.ts";
import { CHECK_LEASE_MS, interruptCheck } from "../services/warrants/interrupt.ts";

const STEP = 100;

/** Is called for a check that could not be undone. The run goes on with the others; this one is tried again after its lease. */
type OnFault = (error: unknown, warrantId: string) => void;

/**
 * Undoes all checks, since this process runs none at the start, but for those that a live instance owns: a warrant that a crash
 * left in `verifying` is held again, and its key is free.
 */
export const recoverAtStart = (ctx: Context, onFault: OnFault): Promise<number> =>
  interruptWhere(ctx, onFault, (_, isOwned) => !isOwned);

/**
 * Undoes checks whose lease has run out, while the server runs. It also undoes checks that began far in the
 * future: the clock was set back since, and their lease would run out much too late. Beside other instances it undoes those of a
 * dead one at once; a process that is alone does not say which checks it owns.
 */
export const recoverOverdueChecks = (ctx: Context, onFault: OnFault): Promise<number> =>
  interruptWhere(
    ctx,
    onFault,
    (warrant, isOwned) =>
      (!ctx.instances.alone && !isOwned) ||
      Math.abs(ctx.now() - (warrant.verifyingSince ?? 0)) >= CHECK_LEASE_MS,
  );

async function interruptWhere(
  ctx: Context,
  onFault: OnFault,
  isInterrupted: (warrant: Warrant, isOwned: boolean) => boolean,
): Promise<number> {
  let recovered = 0;
  let afterId = "";
  for (;;) {
    const batch = await ctx.store.read((reader) => reader.warrants.verifying(afterId, STEP));
    // After the read: whoever makes one of these checks has said so before it began.
    const owned = await ctx.instances.owned(batch.map(({ id }) => id));
    const outcomes = await Promise.all(
      batch
        .filter((warrant) => isInterrupted(warrant, owned.has(warrant.id)))
        .map((warrant) => interruptCheck(ctx, warrant).catch((error) => onFault(error, warrant.id))),
    );
    recovered += outcomes.filter((outcome) => outcome === true).length;
    const last = batch.at(-1);
    if (!last || batch.length < STEP) return recovered;
    afterId = last.id;
  }
}
