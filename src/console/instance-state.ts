import type { NewestBackup } from "../core/backup-schedule.ts";
import type { Readiness } from "../core/operation.ts";
import type { Context } from "../services/context.ts";

/**
 * What the running server knows of itself, for the page of settings. The composition root passes it in. What reads the ledger does
 * so from the snapshot of the request: one that waited for another snapshot while it holds one could wait for ever.
 */
export type InstanceState = {
  readonly version: string;
  readonly readiness: (reading: Context) => Promise<Readiness>;
  /** Null where the server makes no backups by itself. */
  readonly newestBackup: () => NewestBackup | null;
  /** For how long an anchor on a chain is late; null where there are none. */
  readonly anchorLateMs: () => number | null;
  readonly witnesses: (reading: Context) => Promise<
    readonly {
      readonly witness: string;
      /** Whether it has signed the newest checkpoint; null where there is none. */
      readonly hasSigned: boolean | null;
    }[]
  >;
};
