import type { Instance } from "../core/directory.ts";
import { isRefusal, type Refusal, refuse } from "../core/errors.ts";
import type { Mode } from "../core/roles.ts";
import type { Snapshot } from "../store/store.ts";
import type { Context } from "./context.ts";

/** This installation. It is made with the ledger's first use. */
export async function ensureInstance(ctx: Pick<Context, "store" | "newId" | "now">): Promise<Instance> {
  const known = ctx.store.reader.instance.get();
  if (known) return known;
  const row: Instance = {
    id: ctx.newId("instance"),
    createdAt: ctx.now(),
    restoredAt: null,
    acknowledgedAt: null,
  };
  const instance = await ctx.store.execute<Instance>({
    // It belongs to nobody: any scope will do.
    scope: { organisationId: "", mode: "live" },
    needs: { instance: true },
    decide: (snapshot) =>
      snapshot.instance
        ? { answer: snapshot.instance }
        : { answer: row, change: { rows: [{ kind: "instance", row }] } },
  });
  if (isRefusal(instance)) throw new Error(instance.message);
  return instance;
}

/** Whether it was restored, and nobody has said yet that live money may move again. */
export const awaitsAcknowledgement = (instance: Instance | null): boolean =>
  instance !== null && instance.restoredAt !== null && instance.acknowledgedAt === null;

/** After a restore no live money is committed until somebody has looked at it (decisions.md, Money in and out). */
export const refuseUnacknowledged = ({ instance }: Snapshot, mode: Mode): Refusal | null =>
  mode === "live" && awaitsAcknowledgement(instance)
    ? refuse(
        "restore_unacknowledged",
        "The service was restored from a backup, which may have forgotten payments. Live warrants open again when its operator has run `holdfast restore acknowledge`.",
      )
    : null;
