import { expect } from "bun:test";
import { cpSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { auditLedger } from "../../src/store/sqlite/audit.ts";
import { createTestContext } from "../support/context.ts";
import { type Corruption, expectFound, withCopy } from "../support/corrupted.ts";
import { onlyEmbedded } from "../support/only-embedded.ts";
import { createStage } from "../support/stage.ts";
import { transferredOnChain } from "../support/treasury-in-memory.ts";

const { afterAll, beforeAll, test } = onlyEmbedded(import.meta.path);

/** What the audit finds in the tables of treasuries: a deposit of 100, one of 50 that is gone, and transfers that are none. */

let folder: string;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "holdfast-audit-transfers-"));
  const ctx = createTestContext();
  const { organisationId } = await createStage(ctx);
  await transferredOnChain(ctx, organisationId);
  const { id } = ctx.reader.treasuryWatches.list()[0]!;
  const transfers = ctx.reader.chainTransfers.inBlocks(id, 0, 99, 99);
  expect(transfers.map(({ status, amount }) => [status, amount])).toEqual([
    ["credited", 100n],
    ["unassigned", 30n],
    ["sent", 20n],
    ["credited", 10n],
    ["found", 10n],
  ]);
  expect(ctx.reader.chainTransfers.gone(id)).toEqual({ count: 1, amount: 50n });
  await ctx.store.close();
  cpSync(ctx.folder, folder, { recursive: true });
  rmSync(ctx.folder, { recursive: true });
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const credited = (set: string) => `UPDATE chain_transfers SET ${set} WHERE amount = 100`;
const watch = (set: string) => `UPDATE treasury_watches SET ${set}`;

const CORRUPTIONS: readonly Corruption[] = [
  [
    "another amount of a credited transfer",
    credited("amount = 101"),
    /^transfer trf_\S+ its deposit's amount is 100, not 101$/,
  ],
  [
    "another amount of its deposit",
    "UPDATE deposits SET amount = 99 WHERE amount = 100",
    /its deposit's amount is 99, not 100$/,
  ],
  [
    "another number of it",
    credited("ordinal = 7"),
    /its deposit's reference is "eip155:8453:0x\w+\/0", not "eip155:8453:0x\w+\/7"$/,
  ],
  [
    "another chain",
    watch("chain_id = 1"),
    /its deposit's reference is "eip155:8453:\S+", not "eip155:1:\S+"$/,
  ],
  ["another asset", watch("asset = 'EURC'"), /its deposit's asset is "USDC", not "EURC"$/],
  ["another mode", watch("mode = 'sandbox'"), /its deposit's mode is "live", not "sandbox"$/],
  [
    "a chain of the other mode",
    watch("mode = 'sandbox'"),
    /^the file: CHECK constraint failed in treasury_watches/,
  ],
  ["no deposit", credited("deposit = 'dep_none'"), /its deposit dep_none is not there$/],
  [
    "one deposit of two transfers",
    "DROP INDEX chain_transfers_of_deposit; UPDATE chain_transfers SET deposit = (SELECT deposit FROM chain_transfers WHERE amount = 100) WHERE status = 'credited'",
    /its deposit dep_\S+ is that of 3 transfers$/,
  ],
  ["more received", watch("received = received + 1"), /^treasury twa_\S+ received is 151, not 150$/],
  ["more sent", watch("sent = sent + 1"), /^treasury twa_\S+ sent is 21, not 20$/],
  ["another balance", watch("balance = balance + 1"), /^treasury twa_\S+ balance is 1131, not 1130$/],
  ["another opening", watch("opening = opening + 1"), /^treasury twa_\S+ balance is 1130, not 1131$/],
  [
    "an unassigned transfer that is taken out",
    "UPDATE chain_transfers SET block = NULL, block_hash = NULL WHERE amount = 30",
    /received is 150, not 120$/,
  ],
  ["a transfer that is deleted", "DELETE FROM chain_transfers WHERE amount = 20", /sent is 20, not 0$/],
  [
    "an edited note of a sender",
    "UPDATE deposit_senders SET note = 'x'",
    /^the sender 0xac\w+ of deposits, live: its row is not as it was recorded/,
  ],
];

test("the audit has nothing to report where nothing is wrong", () => {
  expect(withCopy(folder, ({ readers }) => auditLedger(readers))).toEqual([]);
});
for (const corruption of CORRUPTIONS)
  test(`the audit finds ${corruption[0]}`, () => expectFound(folder, corruption));
