import type { Context } from "../services/context.ts";
import { awaitsAcknowledgement } from "../services/instance.ts";

/**
 * Skips a run while a restore is not acknowledged: the ledger does not know what was settled, and what its log signed, since its
 * backup.
 */
export const onceAcknowledged =
  (run: (at: Context) => Promise<unknown>) =>
  async (at: Context): Promise<void> => {
    const instance = await at.store.read((reader) => reader.instance.get());
    if (!awaitsAcknowledgement(instance)) await run(at);
  };
