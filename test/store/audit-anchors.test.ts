import { Database } from "bun:sqlite";
import { expect } from "bun:test";
import { cpSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beginAnchor } from "../../src/services/chain/anchor.ts";
import { auditTransactions } from "../../src/services/chain/audit.ts";
import { type Sending, stepTransactions } from "../../src/services/chain/wallet.ts";
import { anchor } from "../../src/services/log/anchor.ts";
import { auditLedger } from "../../src/store/sqlite/audit.ts";
import { createCommandLine } from "../support/command-line.ts";
import { createTestContext, type TestContext } from "../support/context.ts";
import { type Corruption, expectFound, withCopy } from "../support/corrupted.ts";
import { createModelChain } from "../support/model-chain.ts";
import { onlyEmbedded } from "../support/only-embedded.ts";
import { createCaller, createStage, open } from "../support/stage.ts";

const { afterAll, beforeAll, describe, test } = onlyEmbedded(import.meta.path);

/** What the audit finds in the tables of anchors: one that is confirmed, with its second signing, and one that is under way. */

const CONFIRMATIONS = 2;

let folder: string;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "holdfast-audit-anchors-"));
  const ctx = createTestContext();
  const stage = await createStage(ctx);
  const caller = await createCaller(stage);
  const chain = createModelChain(CONFIRMATIONS);
  const rules = { confirmations: CONFIRMATIONS, feeMax: 1_000n };
  const sending: Sending = { wallet: chain.wallet, rules, onTakenOut: () => {} };
  await open(stage, caller);
  await anchor(ctx);
  await beginAnchor(ctx, sending);
  chain.mine(5);
  chain.fees = { max: 300n, priority: 30n };
  await stepTransactions(ctx, sending);
  chain.mine(CONFIRMATIONS);
  await stepTransactions(ctx, sending);
  await open(stage, caller);
  await anchor(ctx);
  await beginAnchor(ctx, sending);
  const states = ctx.reader.chainTransactions.after(null, 9);
  expect(states.map(({ state, signings }) => [state, signings.length])).toEqual([
    ["confirmed", 2],
    ["open", 1],
  ]);
  await ctx.store.close();
  cpSync(ctx.folder, folder, { recursive: true });
  rmSync(ctx.folder, { recursive: true });
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const ANCHOR = "UPDATE log_anchors SET";
const TRANSACTION = "UPDATE chain_transactions SET";

const CORRUPTIONS: readonly Corruption[] = [
  [
    "the chain of an anchor",
    `${ANCHOR} chain_id = 1 WHERE nonce = 0`,
    /^anchor 0 of \S+ on eip155:1: its transaction/,
  ],
  [
    "the wallet of an anchor",
    `${ANCHOR} wallet = '0x1' WHERE nonce = 0`,
    /^anchor 0 of 0x1 on \S+ its transaction is/,
  ],
  [
    "the nonce of an anchor",
    `${ANCHOR} nonce = 7 WHERE nonce = 0`,
    /^transaction 0 of \S+ on \S+ belongs to no anchor and no payout/,
  ],
  [
    "the checkpoint of an anchor",
    `${ANCHOR} checkpoint = 9`,
    /^anchor 0 of \S+ on \S+ is of checkpoint 9, which is/,
  ],
  [
    "another checkpoint",
    `${ANCHOR} checkpoint = 2 WHERE nonce = 0`,
    /^anchor 0 of \S+ on \S+ its size is 1, not 2$/,
  ],
  [
    "the size of an anchor",
    `${ANCHOR} size = 7 WHERE nonce = 0`,
    /^anchor 0 of \S+ on \S+ its size is 7, not 1$/,
  ],
  [
    "the root of an anchor",
    `${ANCHOR} root = zeroblob(32)`,
    /^anchor 0 of \S+ on \S+ its root is "0{64}", not/,
  ],
  [
    "a deleted anchor",
    "DELETE FROM log_anchors WHERE nonce = 1",
    /^transaction 1 of \S+ on \S+ belongs to no anchor and no payout$/,
  ],
  [
    "a deleted transaction",
    "DELETE FROM chain_transactions WHERE nonce = 1",
    /^anchor 1 of \S+ on \S+ its transaction is/,
  ],
  [
    "the chain of a transaction",
    `${TRANSACTION} chain_id = 1`,
    /^transaction 0 of \S+ on eip155:1: belongs to no/,
  ],
  [
    "the wallet of a transaction",
    `${TRANSACTION} wallet = '0x1'`,
    /^transaction 0 of 0x1 on \S+ belongs to no/,
  ],
  [
    "the nonce of a transaction",
    `${TRANSACTION} nonce = 7 WHERE nonce = 1`,
    /^transaction 7 of \S+ on \S+ belongs to no/,
  ],
  [
    "the address of a transaction",
    `${TRANSACTION} "to" = '0x1'`,
    /^anchor 0 of \S+ on \S+ the address of its transaction/,
  ],
  [
    "the data of a transaction",
    `${TRANSACTION} data = data || '00'`,
    /^anchor 0 of \S+ on \S+ the data of its/,
  ],
  [
    "signings that are no JSON",
    `${TRANSACTION} signings = 'x'`,
    /^transaction 0 of \S+ on \S+ cannot be read/,
  ],
  [
    "no signing",
    `${TRANSACTION} signings = '[]'`,
    /^the file: CHECK constraint failed in chain_transactions/,
  ],
  ["no block", `${TRANSACTION} block = NULL`, /^the file: CHECK constraint failed in chain_transactions/],
  [
    "a block below zero",
    `${TRANSACTION} block = -1 WHERE nonce = 0`,
    /^transaction 0 of \S+ on \S+ is confirmed in no/,
  ],
  [
    "another state",
    `${TRANSACTION} state = 'open'`,
    /^the file: CHECK constraint failed in chain_transactions/,
  ],
  ...["block = 99", "created_at = 7", "gas = gas + 1"].map(
    (set): Corruption => [
      `another value: ${set}`,
      `${TRANSACTION} ${set} WHERE nonce = 0`,
      /^transaction 0 of \S+ on \S+ its row is not as it was recorded, by its digest$/,
    ],
  ),
  [
    "another hash in the block",
    `${TRANSACTION} mined_hash = '0x1' WHERE nonce = 0`,
    /its block has a transaction that it never signed$/,
  ],
];

describe("the audit of the ledger", () => {
  test("has nothing to report where nothing is wrong", () => {
    expect(withCopy(folder, ({ readers }) => auditLedger(readers))).toEqual([]);
  });
  for (const corruption of CORRUPTIONS) test(`finds ${corruption[0]}`, () => expectFound(folder, corruption));
});

describe("the audit of the signatures", () => {
  /** What it says of a copy, after somebody has changed it. */
  const auditAfter = (change: string): Promise<readonly string[]> => after(change, auditTransactions);

  async function after<Found>(change: string, work: (ctx: TestContext) => Promise<Found>): Promise<Found> {
    const copy = mkdtempSync(join(tmpdir(), "holdfast-audit-anchors-"));
    cpSync(folder, copy, { recursive: true });
    const raw = new Database(join(copy, "holdfast.db"));
    raw.run("DROP TRIGGER chain_transactions_keep_what_was_signed");
    raw.run("PRAGMA ignore_check_constraints = ON");
    raw.run(change);
    raw.close();
    const ctx = createTestContext({}, copy);
    try {
      return await work(ctx);
    } finally {
      await ctx.store.close();
      rmSync(copy, { recursive: true });
    }
  }
  const first = (set: string) => `UPDATE chain_transactions SET ${set} WHERE nonce = 0`;
  const inSignings = (path: string, value: string) =>
    first(`signings = json_replace(signings, '${path}', ${value})`);

  test("has nothing to report where nothing is wrong", async () => {
    expect(await auditAfter("SELECT 1")).toEqual([]);
  });

  for (const [change, what] of [
    [first("chain_id = 1"), "the chain of signing 1"],
    [first("wallet = '0x1'"), "the wallet of signing 1"],
    [first("nonce = 9"), "the nonce of signing 1"],
    [first(`"to" = '0x1'`), "the address of signing 1"],
    [first("data = '0x'"), "the data of signing 1"],
    [first("gas = gas + 1"), "the gas of signing 1"],
    [inSignings("$[1].hash", "'0x1'"), "the hash of signing 2"],
    [inSignings("$[1].fees.max", "'301'"), "the fee of signing 2"],
    [inSignings("$[1].fees.priority", "'31'"), "the fee of signing 2"],
    [inSignings("$[1].raw", "'0x02'"), "the transaction of signing 2"],
    [inSignings("$[1].raw", "json_extract(signings, '$[0].raw')"), "the hash of signing 2"],
  ] as const)
    test(`finds ${what}: ${change}`, async () => {
      const found = await auditAfter(change);
      expect(found).toContainEqual(
        expect.stringMatching(new RegExp(`^transaction .*: ${what} is not what was signed$`)),
      );
    });

  test("is part of `holdfast audit`", async () => {
    const { code, out } = await after(first("gas = gas + 1"), (ctx) => createCommandLine(ctx).run("audit"));
    expect([code, out]).toEqual([
      1,
      expect.stringContaining("the gas of signing 1 is not what was signed\n"),
    ]);
  });

  test("says so where the transactions cannot be read", async () => {
    expect(await auditAfter(first("signings = 'x'"))).toEqual([
      expect.stringMatching(/^the transactions cannot be read: /),
    ]);
  });
});
