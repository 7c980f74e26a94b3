import { type Refusal, refuse } from "../core/errors.ts";
import type { Instance } from "../core/instance.ts";
import type { Mode } from "../core/roles.ts";
import type { Context } from "./context.ts";

/** Records the server's address and its chains, for the commands that run beside it. */
export async function rememberServer(ctx: Context): Promise<void> {
  const { baseUrl } = ctx;
  const chainIds = ctx.x402.chains.ids;
  await ctx.store.execute({
    scope: null,
    needs: {},
    decide({ instance }) {
      const isKnown = instance.baseUrl === baseUrl && `${instance.chainIds}` === `${chainIds}`;
      if (isKnown) return { answer: null };
      const row = { ...instance, baseUrl, chainIds };
      return { answer: null, change: { put: [{ kind: "instance", before: instance, row }] } };
    },
  });
}

/** Whether a server ever ran on this ledger, or on the one that it is a copy of. */
export const serverHasRun = (instance: Instance): boolean => instance.baseUrl !== null;

/** Whether the ledger was restored, and the operator has not yet acknowledged that. */
export const awaitsAcknowledgement = ({ restoredAt, acknowledgedAt }: Instance): boolean =>
  restoredAt !== null && acknowledgedAt === null;

/**
 * Whether a record of that time may be outdated: it may come from a backup, which does not know what happened
 * after it was made.
 */
export const mayBeOutdated = (instance: Instance, writtenAt: number): boolean =>
  awaitsAcknowledgement(instance) || (instance.restoredAt ?? Number.NEGATIVE_INFINITY) >= writtenAt;

/**
 * After a restore no live money moves until the operator has acknowledged it (README, "Operating it").
 */
export const refuseUnacknowledged = (instance: Instance, mode: Mode): Refusal | null =>
  mode === "live" && awaitsAcknowledgement(instance)
    ? refuse(
        "restore_unacknowledged",
        "The service was restored from a backup, which may have forgotten payments. Live money moves again when its operator has run `holdfast restore acknowledge`.",
      )
    : null;
