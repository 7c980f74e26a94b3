import { type Refusal, refuse } from "../core/errors.ts";
import type { Instance } from "../core/instance.ts";
import type { Mode } from "../core/roles.ts";
import type { NoteKey } from "../core/signed-note.ts";
import type { Context } from "./context.ts";

/** Records the server's address and its chains, for the commands that run beside it; and which key cosigns, for a restore. */
export async function rememberServer(ctx: Context): Promise<void> {
  const { baseUrl } = ctx;
  const chainIds = ctx.x402.chains.ids;
  const { key } = await ctx.witness.signer();
  await ctx.store.execute({
    scope: null,
    needs: {},
    decide({ instance }) {
      const witnessKey = isLostKey(instance, key) ? null : key.id;
      const isKnown =
        instance.baseUrl === baseUrl &&
        `${instance.chainIds}` === `${chainIds}` &&
        instance.witnessKey === witnessKey;
      if (isKnown) return { answer: null };
      const row = { ...instance, baseUrl, chainIds, witnessKey };
      return { answer: null, change: { put: [{ kind: "instance", before: instance, row }] } };
    },
  });
}

/** Whether a server ever ran on this ledger, or on the one that it is a copy of. */
export const serverHasRun = (instance: Instance): boolean => instance.baseUrl !== null;

/** Whether the ledger was restored, and the operator has not yet acknowledged that. */
export const awaitsAcknowledgement = ({ restoredAt, acknowledgedAt }: Instance): boolean =>
  restoredAt !== null && acknowledgedAt === null;

/** Whether the key cosigned before a restore. What it signed after the backup is forgotten, so it could sign a fork of that. */
export const isLostKey = ({ lostWitnessKeys }: Instance, { id }: NoteKey): boolean =>
  lostWitnessKeys.includes(id);

/**
 * Whether a record of that time may be outdated: it may come from a backup, which does not know what happened
 * after it was made.
 */
export const mayBeOutdated = (instance: Instance, writtenAt: number): boolean =>
  awaitsAcknowledgement(instance) || (instance.restoredAt ?? Number.NEGATIVE_INFINITY) >= writtenAt;

/**
 * After a restore no live money moves until the operator has acknowledged it (docs/operating, "Restore").
 */
export const refuseUnacknowledged = (instance: Instance, mode: Mode): Refusal | null =>
  mode === "live" && awaitsAcknowledgement(instance)
    ? refuse(
        "restore_unacknowledged",
        "The service was restored from a backup, which may have forgotten payments. Live money moves again when its operator has run `holdfast restore acknowledge`.",
      )
    : null;

/** Refuses what writes where the other instances take this one for dead: they might undo what it begins. */
export const refuseLost = ({ instances }: Context): Refusal | null =>
  instances.isLost()
    ? refuse(
        "instance_lost",
        "This instance has lost the database. Nothing was done. Retry shortly with the same Idempotency-Key; another instance may answer.",
      )
    : null;
