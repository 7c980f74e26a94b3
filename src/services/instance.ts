import { isRefusal, type Refusal, refuse } from "../core/errors.ts";
import type { Instance } from "../core/instance.ts";
import type { Mode } from "../core/roles.ts";
import type { Snapshot } from "../store/store.ts";
import type { Context } from "./context.ts";

/** This installation. It is made with its first use. */
export const ensureInstance = async (ctx: Pick<Context, "store" | "newId" | "now">): Promise<Instance> =>
  ctx.store.reader.instance.get() ?? writeInstance(ctx, (known, made) => known ?? made);

/** Remembers where the server that starts is reached, and which chains it reaches, for the commands beside it. */
export const rememberServer = (ctx: Context): Promise<Instance> =>
  writeInstance(ctx, (known, made) => ({
    ...(known ?? made),
    baseUrl: ctx.baseUrl,
    chainIds: ctx.x402.chains.ids,
  }));

/** Whether a server ever ran on this ledger, or on the one that it is a copy of. */
export const serverHasRun = (instance: Instance | null): boolean =>
  instance !== null && instance.baseUrl !== null;

async function writeInstance(
  ctx: Pick<Context, "store" | "newId" | "now">,
  after: (known: Instance | null, made: Instance) => Instance,
): Promise<Instance> {
  const made: Instance = {
    id: ctx.newId("instance"),
    baseUrl: null,
    chainIds: [],
    createdAt: ctx.now(),
    restoredAt: null,
    acknowledgedAt: null,
  };
  const instance = await ctx.store.execute<Instance>({
    // It belongs to nobody: any scope will do.
    scope: { organisationId: "", mode: "live" },
    needs: { instance: true },
    decide({ instance: known }) {
      const row = after(known, made);
      const isWritten =
        known !== null && known.baseUrl === row.baseUrl && `${known.chainIds}` === `${row.chainIds}`;
      return { answer: row, ...(!isWritten && { change: { rows: [{ kind: "instance", row }] } }) };
    },
  });
  if (isRefusal(instance)) throw new Error(instance.message);
  return instance;
}

/** Whether it was restored, and nobody has said yet that live money may move again. */
export const awaitsAcknowledgement = (instance: Instance | null): boolean =>
  instance !== null && instance.restoredAt !== null && instance.acknowledgedAt === null;

/** Whether what is written of a moment may be an old copy's word, which does not know what came after it. */
export const mayBeOutdated = (instance: Instance | null, writtenAt: number): boolean =>
  awaitsAcknowledgement(instance) || (instance?.restoredAt ?? Number.NEGATIVE_INFINITY) >= writtenAt;

/** After a restore no live money is committed until somebody has looked at it (decisions.md, Money in and out). */
export const refuseUnacknowledged = ({ instance }: Snapshot, mode: Mode): Refusal | null =>
  mode === "live" && awaitsAcknowledgement(instance)
    ? refuse(
        "restore_unacknowledged",
        "The service was restored from a backup, which may have forgotten payments. Live warrants open again when its operator has run `holdfast restore acknowledge`.",
      )
    : null;
