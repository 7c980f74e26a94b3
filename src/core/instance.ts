/** This installation: one ledger and its keys. */
export type Instance = {
  readonly id: string;
  /** Where its server was last reached; links that commands write down lead there. Null before the first start. */
  readonly baseUrl: string | null;
  /** The EVM chains that its server last had endpoints of: of a payment on one of them the chain tells, not a person. */
  readonly chainIds: readonly number[];
  readonly createdAt: number;
  /** When the ledger was restored from a backup. A backup does not know the keys and payments that came after it. */
  readonly restoredAt: number | null;
  /** When the operator acknowledged the restore; until then live opens and payments are refused. */
  readonly acknowledgedAt: number | null;
};
