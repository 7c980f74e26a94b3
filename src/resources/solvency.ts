import type { LogPlace } from "../core/log.ts";
import type { SolvencyLine } from "../core/solvency/judgement.ts";
import { sumOwed } from "../core/solvency/owed.ts";
import { type KeptStatement, owedWire, type Statement, statedAssetWire } from "../core/solvency/statement.ts";
import { isoTime } from "../core/time.ts";
import { caip2Of } from "../core/x402/chains.ts";

/** A signed statement of solvency, and where it is in the log. */
export const statementResource = ({
  kept,
  statement,
  place,
}: {
  readonly kept: KeptStatement;
  readonly statement: Statement;
  readonly place: LogPlace;
}) => ({
  object: "solvency_statement" as const,
  number: statement.number,
  created_at: isoTime(statement.createdAt),
  /** The position of the last posting that is counted. */
  posting: statement.posting,
  left_out: statement.leftOut,
  assets: statement.assets.map(statedAssetWire),
  /** The SHA-256 of the signed note, which is its entry of the log. */
  hash: kept.entryHash,
  leaf_index: place.leafIndex,
  /** The number of the first checkpoint that covers it. */
  checkpoint: place.checkpoint,
});

/** What the ledger owes of an asset in one mode, beside what its treasury holds. Amounts are digits, in the smallest unit. */
export const solvencyResource = ({ mode, asset, owed, held }: SolvencyLine) => {
  const holding = held?.holding ?? null;
  return {
    object: "solvency" as const,
    ...{ mode, asset, owes: sumOwed(owed).toString() },
    ...owedWire(owed),
    /** What the treasury held at the block; null on the `book` rail, and where the chain did not say. */
    holds: holding?.balance.toString() ?? null,
    /** What it holds more than is owed; negative where it holds less. */
    difference: holding && (holding.balance - sumOwed(owed)).toString(),
    /** Null on the `book` rail. */
    judgement: held?.judgement ?? null,
    chain: held && caip2Of(held.treasury.chainId),
    token: held?.treasury.token ?? null,
    address: held?.treasury.address ?? null,
    block: holding?.block ?? null,
    block_hash: holding?.blockHash ?? null,
    block_time: holding && isoTime(holding.blockTime),
    /** Why the chain did not say. */
    away: held?.away ?? null,
  };
};
