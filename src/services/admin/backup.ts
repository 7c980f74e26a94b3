import { isRefusal, type Refusal } from "../../core/errors.ts";
import type { Instance } from "../../core/instance.ts";
import { isoTime, isoTimeOrNull } from "../../core/time.ts";
import type { KeyFileName } from "../../platform/key-files.ts";
import type { Decision } from "../../store/store.ts";
import type { Context } from "../context.ts";
import { awaitsAcknowledgement } from "../instance.ts";

/** Only the operator of the machine backs up and restores: these verbs have no caller to check. */

export type BackupInput = {
  readonly file: string;
  /** The file that is made instead where the audit of the copy disagrees. */
  readonly disagreesFile: string;
  readonly withKeys: boolean;
};

export type BackupResource = {
  readonly object: "backup";
  readonly file: string;
  readonly bytes: number;
  /** The key files in the backup, which are not encrypted there. */
  readonly keys: readonly KeyFileName[];
  readonly created_at: string;
  readonly instance_id: string;
  readonly audit: "ok";
};

/** The work of a backup that the engine and the key files do. `app.ts` passes it in. */
export type WriteBackup = (
  input: BackupInput,
  createdAt: number,
) => { readonly bytes: number; readonly keys: readonly KeyFileName[] } | Refusal;

/**
 * Copies the ledger, and the key files if asked to, into one new file. Where its audit disagrees, the file is
 * made all the same, and the refusal `audit_disagrees` says where.
 */
export function backUp(
  instance: Instance,
  write: WriteBackup,
  input: BackupInput,
  now: number,
): BackupResource | Refusal {
  const written = write(input, now);
  if (isRefusal(written)) return written;
  return {
    object: "backup",
    file: input.file,
    bytes: written.bytes,
    keys: written.keys,
    created_at: isoTime(now),
    instance_id: instance.id,
    audit: "ok",
  };
}

export type RestoreResource = {
  readonly object: "restore";
  readonly file: string;
  readonly data_folder: string;
  /** The key files that the backup contained. */
  readonly keys: readonly KeyFileName[];
  readonly backed_up_at: string;
  readonly restored_at: string;
  readonly instance_id: string;
  readonly audit: "ok" | "disagrees";
  /** What the audit found; nothing where it is ok. */
  readonly problems: readonly string[];
};

export type RestoreInput = {
  readonly file: string;
  /** Whether a backup whose audit disagrees is restored too. */
  readonly despiteAudit: boolean;
};

/**
 * The work of a restore that the engine and the key files do. `app.ts` passes it in. Times are epoch
 * milliseconds.
 */
export type RestoreBackup = (
  input: RestoreInput,
  restoredAt: number,
) =>
  | {
      readonly instanceId: string;
      readonly backedUpAt: number;
      readonly keys: readonly KeyFileName[];
      readonly problems: readonly string[];
    }
  | Refusal;

/**
 * Restores a backup into an empty data folder. One whose audit disagrees needs `despiteAudit`. Live warrants cannot open there until
 * the operator has acknowledged the restore.
 */
export function restoreFrom(
  restore: RestoreBackup,
  { dataFolder, ...input }: RestoreInput & { readonly dataFolder: string },
  now: number,
): RestoreResource | Refusal {
  const restored = restore(input, now);
  if (isRefusal(restored)) return restored;
  return {
    object: "restore",
    file: input.file,
    data_folder: dataFolder,
    keys: restored.keys,
    backed_up_at: isoTime(restored.backedUpAt),
    restored_at: isoTime(now),
    instance_id: restored.instanceId,
    audit: restored.problems.length === 0 ? "ok" : "disagrees",
    problems: restored.problems,
  };
}

export type InstanceResource = {
  readonly object: "instance";
  readonly id: string;
  readonly created_at: string;
  /** Null where the ledger was never restored. */
  readonly restored_at: string | null;
  readonly acknowledged_at: string | null;
};

const instanceResource = (instance: Instance): InstanceResource => ({
  object: "instance",
  id: instance.id,
  created_at: isoTime(instance.createdAt),
  restored_at: isoTimeOrNull(instance.restoredAt),
  acknowledged_at: isoTimeOrNull(instance.acknowledgedAt),
});

/**
 * Lets live warrants open again after a restore. Where nothing waits for it, nothing changes. It affects
 * every organisation, so no organisation's audit log has it: the instance records the time.
 */
export function acknowledgeRestore(ctx: Context): Promise<InstanceResource | Refusal> {
  return ctx.store.execute({
    scope: null,
    needs: {},
    decide({ instance }, now): Decision<InstanceResource> {
      if (!awaitsAcknowledgement(instance)) return { answer: instanceResource(instance) };
      const row = { ...instance, acknowledgedAt: now };
      return {
        answer: instanceResource(row),
        change: { put: [{ kind: "instance", before: instance, row }] },
      };
    },
  });
}
