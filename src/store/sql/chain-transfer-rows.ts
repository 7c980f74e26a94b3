import { and, eq, sql } from "drizzle-orm";
import type { TreasuryWatch } from "../../core/treasury-watch.ts";
import type { Tables } from "./database.ts";
import { lazily } from "./lazily.ts";
import type { PreparedWrite } from "./prepared-write.ts";
import { excludedOf, fieldsOf, placeholdersOf, type RowOf } from "./rows.ts";
import { chainTransfers, depositSenders, treasuryWatches } from "./tables/chain-transfers.ts";

/** How the rows of treasuries, their transfers and the senders of deposits are written and found. */

const { placeholder } = sql;

/** A watch as its row has it: each block in two columns. */
const watchRowOf = ({ first, last, reconciled, ...watch }: TreasuryWatch) => ({
  ...watch,
  ...{ firstBlock: first.number, firstHash: first.hash },
  ...{ lastBlock: last.number, lastHash: last.hash },
  ...{ reconciledBlock: reconciled.number, reconciledHash: reconciled.hash },
});

export const watchOf = ({
  firstBlock,
  firstHash,
  lastBlock,
  lastHash,
  reconciledBlock,
  reconciledHash,
  ...watch
}: RowOf<typeof treasuryWatches>): TreasuryWatch => ({
  ...watch,
  first: { number: firstBlock, hash: firstHash },
  last: { number: lastBlock, hash: lastHash },
  reconciled: { number: reconciledBlock, hash: reconciledHash },
});

/** Writes watches by the statement for their rows. */
export const watchWrite =
  (write: PreparedWrite): PreparedWrite =>
  (watch) =>
    write(watchRowOf(watch as TreasuryWatch));

export function chainTransferRows(tables: Tables) {
  const { watchId, hash, ordinal } = chainTransfers;
  return {
    treasuryWatch: () =>
      tables
        .insert(treasuryWatches)
        .values(placeholdersOf(treasuryWatches))
        .onConflictDoUpdate({
          target: treasuryWatches.id,
          set: {
            ...excludedOf(
              treasuryWatches,
              "firstHash",
              "opening",
              "lastBlock",
              "lastHash",
              "received",
              "sent",
            ),
            ...excludedOf(treasuryWatches, "reconciledBlock", "reconciledHash", "balance", "stopped"),
          },
        }),
    chainTransfer: () =>
      tables
        .insert(chainTransfers)
        .values(placeholdersOf(chainTransfers))
        .onConflictDoUpdate({
          target: [watchId, hash, ordinal],
          set: excludedOf(chainTransfers, "status", "block", "blockHash", "depositId"),
        }),
    // A sender is registered and removed, and never changed.
    depositSender: () => tables.insert(depositSenders).values(placeholdersOf(depositSenders)),
  };
}

export const chainTransferDeletions = (tables: Tables) => ({
  depositSender: () =>
    tables
      .delete(depositSenders)
      .where(
        and(eq(depositSenders.mode, placeholder("mode")), eq(depositSenders.address, placeholder("address"))),
      ),
});

export function chainTransferLookUps(tables: Tables) {
  const { chainId, token, address } = treasuryWatches;
  const { watchId, hash, ordinal } = chainTransfers;
  return {
    treasuryWatch: lazily(() => {
      const statement = tables
        .select(fieldsOf(treasuryWatches))
        .from(treasuryWatches)
        .where(
          and(
            eq(chainId, placeholder("chainId")),
            eq(token, placeholder("token")),
            eq(address, placeholder("address")),
          ),
        )
        .prepare();
      return (rowKey: string) => {
        const [chain, contract = "", wallet = ""] = rowKey.split(" ");
        const row = statement.get({ chainId: Number(chain), token: contract, address: wallet });
        return row ? watchOf(row) : null;
      };
    }),
    chainTransfer: lazily(() => {
      const statement = tables
        .select(fieldsOf(chainTransfers))
        .from(chainTransfers)
        .where(
          and(
            eq(watchId, placeholder("watchId")),
            eq(hash, placeholder("hash")),
            eq(ordinal, placeholder("ordinal")),
          ),
        )
        .prepare();
      return (rowKey: string) => {
        const [watch = "", transaction = "", number] = rowKey.split(" ");
        return statement.get({ watchId: watch, hash: transaction, ordinal: Number(number) }) ?? null;
      };
    }),
    depositSender: lazily(() => {
      const statement = tables
        .select(fieldsOf(depositSenders))
        .from(depositSenders)
        .where(
          and(
            eq(depositSenders.mode, placeholder("mode")),
            eq(depositSenders.address, placeholder("address")),
          ),
        )
        .prepare();
      return (rowKey: string) => {
        const [mode = "", sender = ""] = rowKey.split(" ");
        return statement.get({ mode, address: sender }) ?? null;
      };
    }),
  };
}
