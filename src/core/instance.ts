/** This installation: one ledger and its keys. */
export type Instance = {
  readonly id: string;
  /** The base URL of its last server. The links that commands print start with it. Null before the first start. */
  readonly baseUrl: string | null;
  /** The EVM chains that its last server could ask. Whether a payment on one of them was made, the chain says, not a person. */
  readonly chainIds: readonly number[];
  /** The newest version of Holdfast that has opened the ledger. */
  readonly version: string;
  /** The oldest version that may open it. */
  readonly oldestWriter: string;
  readonly createdAt: number;
  /** When the ledger was restored from a backup. It does not hold the keys and payments that came after that backup. */
  readonly restoredAt: number | null;
  /** When the operator acknowledged the restore; until then live opens and payments are refused. */
  readonly acknowledgedAt: number | null;
};
