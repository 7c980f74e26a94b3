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
  /** What it is encrypted to; null where the configuration decides, and it may stay unencrypted. */
  readonly passphrase: string | null;
};

export type BackupResource = {
  readonly object: "backup";
  readonly file: string;
  readonly bytes: number;
  /** The key files in the backup. */
  readonly keys: readonly KeyFileName[];
  readonly encrypted: boolean;
  /** The key that authenticates it, and that a restore elsewhere needs. The id is no secret. */
  readonly backup_key_id: string;
  readonly created_at: string;
  readonly instance_id: string;
  readonly audit: "ok";
};

/** The work of a backup that the engine and the key files do. `app.ts` passes it in. */
export type WriteBackup = (input: BackupInput, createdAt: number) => Promise<Written | Refusal>;

type Written = {
  readonly bytes: number;
  readonly keys: readonly KeyFileName[];
  readonly encrypted: boolean;
  readonly keyId: string;
};

/**
 * Copies the ledger, and the key files if asked to, into one new file. Where its audit disagrees, the file is
 * made all the same, and the refusal `audit_disagrees` says where.
 */
export async function backUp(
  instance: Instance,
  write: WriteBackup,
  input: BackupInput,
  now: number,
): Promise<BackupResource | Refusal> {
  const written = await write(input, now);
  if (isRefusal(written)) return written;
  return {
    object: "backup",
    file: input.file,
    bytes: written.bytes,
    keys: written.keys,
    encrypted: written.encrypted,
    backup_key_id: written.keyId,
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
  /** Whether a key said that the backup is, byte by byte, as its instance made it. */
  readonly verified: boolean;
  /** That key's id; null where the backup was not verified. */
  readonly backup_key_id: string | null;
  readonly audit: "ok" | "disagrees";
  /** What the audit found; nothing where it is ok. */
  readonly problems: readonly string[];
};

export type RestoreInput = {
  readonly file: string;
  /** Whether a backup whose audit disagrees is restored too. */
  readonly despiteAudit: boolean;
  /** Whether a backup that no key verifies is restored too. */
  readonly unverified: boolean;
  /** The text of the key that verifies it; null where the environment or a data folder has it. */
  readonly key: string | null;
  /** What it is encrypted to; null where it is not encrypted, or the configuration knows. */
  readonly passphrase: string | null;
};

/**
 * The work of a restore that the engine and the key files do. `app.ts` passes it in. Times are epoch
 * milliseconds.
 */
export type RestoreBackup = (
  input: RestoreInput,
  restoredAt: number,
) => Promise<
  | {
      readonly instanceId: string;
      readonly backedUpAt: number;
      readonly keys: readonly KeyFileName[];
      readonly verifiedBy: string | null;
      readonly problems: readonly string[];
    }
  | Refusal
>;

/**
 * Restores a backup into an empty data folder. One whose audit disagrees needs `despiteAudit`, one that no key
 * verifies `unverified`. Live warrants cannot open there until the operator has acknowledged the restore.
 */
export async function restoreFrom(
  restore: RestoreBackup,
  { dataFolder, ...input }: RestoreInput & { readonly dataFolder: string },
  now: number,
): Promise<RestoreResource | Refusal> {
  const restored = await restore(input, now);
  if (isRefusal(restored)) return restored;
  return {
    object: "restore",
    file: input.file,
    data_folder: dataFolder,
    keys: restored.keys,
    backed_up_at: isoTime(restored.backedUpAt),
    restored_at: isoTime(now),
    instance_id: restored.instanceId,
    verified: restored.verifiedBy !== null,
    backup_key_id: restored.verifiedBy,
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
  /** When it was last restored from a backup that no key verified; null where it never was. */
  readonly restored_unverified_at: string | null;
};

const instanceResource = (instance: Instance): InstanceResource => ({
  object: "instance",
  id: instance.id,
  created_at: isoTime(instance.createdAt),
  restored_at: isoTimeOrNull(instance.restoredAt),
  acknowledged_at: isoTimeOrNull(instance.acknowledgedAt),
  restored_unverified_at: isoTimeOrNull(instance.restoredUnverifiedAt),
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

/**
 * Marks the ledger as restored, where something else than Holdfast has brought it back to an earlier time: live money waits then, as after
 * `holdfast restore`, and the key that cosigned is lost. Where the last restore is not yet acknowledged, nothing changes.
 */
export function declareRestore(ctx: Context): Promise<InstanceResource | Refusal> {
  return ctx.store.execute({
    scope: null,
    needs: {},
    decide({ instance }, now): Decision<InstanceResource> {
      if (awaitsAcknowledgement(instance)) return { answer: instanceResource(instance) };
      const { witnessKey, lostWitnessKeys } = instance;
      const row = {
        ...{ ...instance, restoredAt: now, acknowledgedAt: null, witnessKey: null },
        lostWitnessKeys: witnessKey === null ? lostWitnessKeys : [...lostWitnessKeys, witnessKey],
      };
      return {
        answer: instanceResource(row),
        change: { put: [{ kind: "instance", before: instance, row }] },
      };
    },
  });
}
