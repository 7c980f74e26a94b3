import type { RetentionMark } from "./retention.ts";

/** The file in the data folder whose key authenticates backups (docs/operating, "Backups"). It never goes into one. */
export const BACKUP_KEY_FILE = "backup.key";

/** The file in the data folder whose key cosigns the checkpoints of other logs (docs/witnesses, "Being a witness"). It never goes into a backup. */
export const WITNESS_KEY_FILE = "witness.key";

/** This installation: one ledger and its keys. */
export type Instance = {
  readonly id: string;
  /** The base URL of its last server. The links that commands print start with it. Null before the first start. */
  readonly baseUrl: string | null;
  /**
   * The EVM chains that its last server could ask. For a payment on one of them the chain decides whether it
   * was made; a person may attest only once the chain has been silent for a day.
   */
  readonly chainIds: readonly number[];
  /** The newest version of Holdfast that has opened the ledger. */
  readonly version: string;
  /** The oldest version that may open it. */
  readonly oldestWriter: string;
  readonly createdAt: number;
  /** How long servers had run at certain records, oldest first: the retention computes from these how long a row has been kept. */
  readonly retentionMarks: readonly RetentionMark[];
  /** For how many days the last server kept idempotency keys. Null before the first one. */
  readonly idempotencyDays: number | null;
  /** For how many days the last server kept capsules. Null before the first one that kept any. */
  readonly capsuleDays: number | null;
  /**
   * When the ledger was restored from a backup; null where it never was. Whatever happened after the backup
   * was made is missing in it, such as later keys and payments.
   */
  readonly restoredAt: number | null;
  /** When the operator acknowledged the restore; until then live opens and payments are refused. */
  readonly acknowledgedAt: number | null;
  /**
   * When the ledger was last restored from a backup of which no key said who made it; null where it never was. It stays, also
   * through later restores: what somebody may have changed is still in it.
   */
  readonly restoredUnverifiedAt: number | null;
  /** The id of the key that its last server cosigns with. Null before the first start, and after a restore. */
  readonly witnessKey: string | null;
  /** Those of the ledger's former lives: what they signed after a backup was made, a restore has forgotten. */
  readonly lostWitnessKeys: readonly string[];
};
