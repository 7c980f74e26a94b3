import { Database } from "bun:sqlite";
import { AMOUNT_MAX } from "../../src/core/money.ts";
import { migrate } from "../../src/store/sqlite/migrate.ts";
import { BEHIND_TRANSFERS, transferRows, WRONG_TRANSFERS } from "./guard-cases-of-transfers.ts";
import type { Behind, Wrong } from "./table-guards.ts";

/**
 * Raw SQL of a buggy caller that the tables refuse, in the ledger of `buildGoodLedger` with the rows of `guardedRows`. Both engines
 * refuse it.
 */

/** The tables of a new ledger, without rows. */
export function newTables(): Database {
  const raw = new Database(":memory:");
  migrate(raw);
  return raw;
}

const tables = newTables();
const columnsOf = (table: string): readonly string[] =>
  tables
    .query<{ name: string }, [string]>("SELECT name FROM pragma_table_info(?)")
    .all(table)
    .map(({ name }) => name);

const aStatement = (number: string, leaf = "NULL"): string =>
  `INSERT INTO solvency_statements VALUES (${number}, 'note ${number}', randomblob(32), randomblob(32), ${leaf}, NULL)`;

/** A transaction of a wallet, signed twice; with other columns where they are given. */
const sentToChain = (columns: {
  nonce?: string;
  state?: string;
  signings?: string;
  gas?: string;
}): string => {
  const { nonce = "0", state = "'open'", signings = "'[{},{}]'", gas = "1" } = columns;
  return `INSERT INTO chain_transactions VALUES (1, '0xw', ${nonce}, '0xto', '0x', ${gas}, ${signings}, ${state}, NULL, NULL, 0, NULL)`;
};

/** Warrants and a deposit without their postings: what is refused of a posting for one is refused for one reason. */
function* unpostedRows(): Iterable<string> {
  yield warrant({ id: "'wrt_bare'" });
  yield warrant({ id: "'wrt_refunded'", state: "'refunded'", settled_at: "1" });
  // Released, and not posted: one warrant by itself, and one whose purchase a wallet has paid.
  for (const id of ["'wrt_released'", "'wrt_answered'"])
    yield warrant({ id, state: "'released'", released_bps: "10000", settled_at: "1" });
  const account = inMode("sandbox");
  const scope = `(SELECT scope FROM accounts WHERE position = ${account})`;
  yield warrant({ id: "'wrt_sandbox'", account, scope });
  yield "INSERT INTO deposits SELECT NULL, 'dep_bare', account, amount, NULL, 0, NULL FROM deposits WHERE reference = 'second'";
}

/** Two entries and a statement that are leaves, a checkpoint of one of them, and a statement without a leaf. */
function* logRows(): Iterable<string> {
  for (const leaf of [0, 1]) yield `UPDATE trace SET leaf_index = ${leaf} WHERE position = ${leaf + 1}`;
  yield "INSERT INTO log_tiles VALUES (0, 0, randomblob(64))";
  yield "INSERT INTO log_checkpoints VALUES (1, 1, zeroblob(32), '', NULL)";
  yield `${aStatement("1")}; ${aStatement("2")}`;
  yield "UPDATE solvency_statements SET leaf_index = 2 WHERE number = 1";
}

/** Payouts, deposits from a chain and corrections without their postings. */
function* payoutRows(): Iterable<string> {
  for (const [id, end] of [
    ["submitted", null],
    ["paid", "status = 'paid', reference = 'r'"],
    ["failed", "status = 'failed', reason = 'x'"],
  ]) {
    yield payout({ id: `'pay_${id}'` });
    if (end) yield `UPDATE payouts SET ${end}, version = 2, ended_at = 1 WHERE id = 'pay_${id}'`;
  }
  yield* transferRows(inMode);
  yield correction({ id: "'cor_proposed'" });
  yield correction({
    id: "'cor_recorded'",
    status: "'recorded'",
    deposit: "(SELECT position FROM deposits WHERE id = 'dep_bare')",
  });
}

/** A payout with its transaction of nonce 1, one without, and another transaction of nonce 2. */
function* chainPayoutRows(): Iterable<string> {
  yield "INSERT INTO log_anchors VALUES (1, '0xw', 0, 1, 1, zeroblob(32), NULL)";
  for (const nonce of ["1", "2"]) yield sentToChain({ nonce });
  for (const id of ["'pay_onchain'", "'pay_unsent'"]) yield payout({ id, rail: "'live_evm'" });
  yield payoutTransaction({ nonce: "1" }, "pay_onchain");
  yield "INSERT INTO rail_states VALUES ('live', 'USDC', 1, '0xw', '0xto', 3, NULL, NULL, NULL, NULL, NULL)";
  yield "INSERT INTO payout_waits VALUES (1, 'no_money', NULL, NULL, NULL, 0, NULL)";
}

/** Rows that are right, and that the cases below need. */
export function* guardedRows(): Iterable<string> {
  yield* unpostedRows();
  yield* payoutRows();
  for (const phase of ["held", "signed", "answered", "ended"]) yield purchase({ phase: `'${phase}'` });
  yield "INSERT INTO imported_tables VALUES ('trace', 1, NULL)";
  yield "INSERT INTO cosignatures VALUES (1, 'w', '', NULL)";
  yield "INSERT INTO witnessed_logs VALUES ('log', '', 0, NULL)";
  yield sentToChain({});
  yield* chainPayoutRows();
  const aPerson = "FROM users LIMIT 1";
  yield `INSERT INTO password_resets SELECT 'used', id, 0, 2, 1 ${aPerson}`;
  yield `INSERT INTO users SELECT 'usr_other', organisation_id, 'other@example.com', name, role, '', NULL, NULL, 0 ${aPerson}`;
  yield `INSERT INTO passkeys SELECT 'passkey', organisation_id, id, 'x', '', 0, '[]', 1, 0, NULL FROM users WHERE id <> 'usr_other' LIMIT 1`;
  const quoting = { phase: "'quoting'", warrant_id: "NULL", nonce: "NULL", header: "NULL" };
  yield purchase(quoting);
  yield "INSERT INTO contents VALUES ('hash', x'01')";
  yield `INSERT INTO auth_sessions (token_hash, user_id, mode, created_at, expires_at) SELECT 'token', id, 'live', 0, 1 ${aPerson}`;
  yield "INSERT INTO idempotency_keys (scope, key, fingerprint, holder, created_at) SELECT position, 'in flight', x'00', 'wrt_bare', 0 FROM scopes LIMIT 1";
  yield "INSERT INTO webhooks SELECT 'whk', id, 'live', '', '[]', '', 0, 0 FROM organisations LIMIT 1";
  for (const [status, attempts, code, next] of [
    ["pending", 0, "NULL", "1"],
    ["delivered", 1, "200", "NULL"],
    ["exhausted", 4, "500", "NULL"],
  ]) {
    yield `INSERT INTO webhook_deliveries SELECT 'del_${status}', id, organisation_id, mode, '', '', 'wrt_bare', 0, '${status}', ${attempts}, ${code}, NULL, NULL, NULL, ${next}, 0 FROM webhooks LIMIT 1`;
  }
  yield `INSERT INTO passkey_approvals SELECT 'used', id, 'passkey', 'wrt_bare', 1, 'release', NULL, '{}', 0, 2, 1 ${aPerson}`;
  yield `INSERT INTO notices SELECT 'ntc', organisation_id, 'live', id, 'email', '', '{}', NULL, 'pending', 0, NULL, NULL, NULL, 1, 0 ${aPerson}`;
  yield `INSERT INTO notice_settings SELECT id, organisation_id, 1, 1, NULL, NULL, 'UTC', 1, 1 ${aPerson}`;
  yield `INSERT INTO messaging_accounts SELECT id, organisation_id, '42', NULL, 0 ${aPerson}`;
  yield `INSERT INTO messaging_codes SELECT id, organisation_id, 'hash', 0 ${aPerson}`;
  yield `INSERT INTO push_subscriptions SELECT 'psh', organisation_id, id, 'https://push.example.com/1', '', '', '', 0, NULL ${aPerson}`;
  yield "INSERT INTO planned_notices SELECT 'esc', id, 'live', 0, 0, 0 FROM organisations LIMIT 1";
  yield* logRows();
  for (const [id, removedAt] of [
    ["used", "NULL"],
    ["removed", "1"],
  ])
    yield `INSERT INTO source_keys SELECT 'sky_${id}', id, 'https://a.example', '{}', 0, ${removedAt}, NULL FROM organisations LIMIT 1`;
}

const one = (state: string) =>
  `(SELECT id FROM warrants WHERE state = '${state}' AND scope IN (SELECT position FROM scopes WHERE mode = 'live') LIMIT 1)`;

type Legs4 = readonly [available: bigint, held: bigint, paid: bigint, funding: bigint];
/** A posting as `INSERT … SELECT` from the warrant or deposit that it is for, one value changed. */
const posting = (
  from: string,
  legs: Legs4 | readonly string[],
  wrong: Record<string, string> = {},
): string => {
  const isWarrant = from.startsWith("warrants");
  const values = {
    position: "NULL",
    account: "account",
    kind: !isWarrant ? "'deposit'" : String(legs[1]).startsWith("amount") ? "'hold'" : "'settlement'",
    rail: "(SELECT mode || '_book' FROM scopes JOIN accounts ON scope = scopes.position WHERE accounts.position = account)",
    cause: "position",
    available: legs[0],
    held: legs[1],
    paid: legs[2],
    funding: legs[3],
    recorded_at: "0",
    ...wrong,
  };
  return `INSERT INTO postings (${Object.keys(values).join(", ")}) SELECT ${Object.values(values).join(", ")} FROM ${from}`;
};
const held = `warrants WHERE id = ${one("held")}`;
const bare = "warrants WHERE id = 'wrt_bare'";
const bareDeposit = "deposits WHERE id = 'dep_bare'";
const released = `warrants WHERE id = ${one("released")}`;
const inMode = (mode: string) =>
  `(SELECT accounts.position FROM accounts JOIN scopes ON scopes.position = scope WHERE mode = '${mode}' LIMIT 1)`;
const aDeposit = "deposits WHERE reference = 'second'";
const holding = ["-amount", "amount", "0", "0"] as const;
const paying = ["0", "-amount", "amount", "0"] as const;
const refunding = ["amount", "-amount", "0", "0"] as const;
const funding = ["amount", "0", "0", "-amount"] as const;

/** A copy of an existing warrant with some columns changed. */
const warrant = (columns: Record<string, string>, verb = "INSERT"): string => {
  const values = columnsOf("warrants").map(
    (name) => columns[name] ?? (name === "id" ? "'wrt_new'" : name === "position" ? "NULL" : name),
  );
  return `${verb} INTO warrants SELECT ${values.join(", ")} FROM ${held}`;
};

const MONEY: readonly Wrong[] = [
  [
    "a negative balance",
    () => "UPDATE accounts SET available = -1, funding = 1 - held - paid",
    /a balance is the sum of its postings/,
    /accounts_not_negative/,
  ],
  [
    "a balance that nothing was posted to",
    () => "UPDATE accounts SET available = available + 1, funding = funding - 1",
    /a balance is the sum of its postings/,
  ],
  [
    "a balance that contains postings that are not there",
    () => "UPDATE accounts SET posted = posted + 1",
    /a balance is the sum of its postings/,
  ],
  ["a balance of another asset", () => "UPDATE accounts SET asset = 'X', posted = 0", /an account|a balance/],
  ["a deleted balance", () => "DELETE FROM accounts", /accounts are kept/],
  [
    "an account with something in it from the beginning",
    () => "INSERT INTO accounts SELECT NULL, scope, 'NEW', 1, 0, 0, -1, 0, NULL, 0, 0 FROM accounts LIMIT 1",
    /an account begins empty/,
  ],
  [
    "an account of nobody",
    () => "INSERT INTO accounts VALUES (NULL, 7777, 'NEW', 0, 0, 0, 0, 0, NULL, 0, 0)",
    /an account begins empty, in a scope/,
  ],
  ["a changed scope", () => "UPDATE scopes SET mode = 'live'", /scopes are kept/],
  ["a deleted scope", () => "DELETE FROM scopes", /scopes are kept/],
  [
    "a balance above 2^63",
    () => `UPDATE accounts SET available = ${AMOUNT_MAX}, funding = -${AMOUNT_MAX} - held - paid`,
    /a balance is the sum/,
    /bigint out of range/,
  ],
  [
    "a balance of half a unit",
    () => "UPDATE accounts SET available = available + 0.5, funding = funding - 0.5",
    /a balance is the sum/,
  ],
  [
    "an unbalanced posting",
    () => posting(aDeposit, ["amount", "0", "0", "1 - amount"]),
    /postings_sum_to_zero/,
  ],
  [
    "a posting of half a unit",
    () => posting(bare, ["-amount - 0.5", "amount + 0.5", "0", "0"]),
    /postings_integers/,
    null,
  ],
  [
    "a posting of text",
    () => posting(bare, ["'x'", "0", "0", "0"]),
    /postings_integers/,
    /invalid input syntax/,
  ],
  [
    // Added as doubles, the two are zero.
    "a posting of the double that equals the least integer",
    () => posting(bareDeposit, [`${AMOUNT_MAX}`, "0", "0", "-9223372036854775808.0"]),
    /postings_integers/,
  ],
  [
    "a sandbox posting on a live rail",
    () => posting("warrants WHERE id = 'wrt_sandbox'", holding, { rail: "'live_book'" }),
    /an account of the mode of its rail/,
  ],
  [
    "a deposit of the sandbox on a live rail",
    () => posting(bareDeposit, funding, { rail: "'sandbox_book'" }),
    /an account of the mode of its rail/,
  ],
  [
    "a posting in another mode than its warrant's",
    () => posting(bare, holding, { account: inMode("sandbox"), rail: "'sandbox_book'" }),
    /a hold is the amount of a warrant of the same account/,
  ],
  [
    "a posting of another organisation than its warrant's",
    () =>
      posting(bare, holding, {
        account: inMode("sandbox"),
        rail: "'sandbox_book'",
      }),
    /a hold is the amount of a warrant of the same account/,
  ],
  [
    "a posting of another asset than its warrant's",
    () => posting(bare, holding, { account: "(SELECT position FROM accounts WHERE asset = 'HUGE')" }),
    /of the same account/,
  ],
  ["a posting for no warrant at all", () => posting(bare, holding, { cause: "7777" }), /of the same account/],
  [
    "a posting without a cause",
    () => posting(bare, holding, { cause: "NULL" }),
    /of the same account|NOT NULL/,
  ],
  [
    "a posting of a kind that nobody knows",
    () => posting(bare, holding, { kind: "'gift'" }),
    /a posting is a deposit or its correction/,
  ],
  [
    "money for a warrant out of nothing",
    () => posting(bare, ["0", "amount", "0", "-amount"]),
    /a hold is the amount/,
  ],
  ["a second hold", () => posting(held, holding), /UNIQUE constraint failed: postings/],
  [
    "a settlement of what is not settled",
    () => posting(bare, refunding),
    /a settlement is what its warrant says/,
  ],
  ["a second settlement", () => posting(released, paying), /UNIQUE constraint failed: postings/],
  [
    "a hold of what is settled",
    () => posting("warrants WHERE id = 'wrt_refunded'", holding),
    /a hold is the amount/,
  ],
  ["a second posting of a deposit", () => posting(aDeposit, funding), /UNIQUE constraint failed: postings/],
  [
    "a deposit that is held at once",
    () => posting(bareDeposit, ["amount", "1", "0", "-amount - 1"]),
    /brings the amount of a deposit of the same account/,
  ],
  [
    "a posting of more than its deposit",
    () => posting(bareDeposit, ["amount + 1", "0", "0", "-amount - 1"]),
    /brings the amount of a deposit of the same account/,
  ],
  ["a payment of what is held", () => posting(bare, paying), /a settlement is what its warrant says/],
  ["a changed posting", () => "UPDATE postings SET paid = 0 WHERE paid > 0", /postings are append-only/],
  ["a deleted posting", () => "DELETE FROM postings WHERE position = 1", /postings are append-only/],
  [
    "a replaced posting",
    () => "INSERT OR REPLACE INTO postings SELECT * FROM postings WHERE position = 1",
    /./,
    null,
  ],
  ["a changed deposit", () => "UPDATE deposits SET amount = amount + 1", /deposits are append-only/],
  ["a deleted deposit", () => "DELETE FROM deposits", /deposits are append-only/],
  [
    "a second deposit of a reference",
    () => `INSERT INTO deposits SELECT NULL, 'dep_new', account, 1, reference, 0, NULL FROM ${aDeposit}`,
    /UNIQUE constraint failed: deposits.account, deposits.reference/,
  ],
  [
    "a deposit of nothing",
    () => "INSERT INTO deposits SELECT NULL, 'dep_new', account, 0, NULL, 0, NULL FROM deposits LIMIT 1",
    /deposits_amount/,
  ],
];

/** A payee of a live account to whom something is owed. */
const owed = `payees WHERE payable > 5 AND account IN
  (SELECT accounts.position FROM accounts JOIN scopes ON scopes.position = scope WHERE mode = 'live') LIMIT 1`;
const inserted = (table: string, values: Record<string, string>, from: string): string =>
  `INSERT INTO ${table} (${Object.keys(values).join(", ")}) SELECT ${Object.values(values).join(", ")} FROM ${from}`;
const payout = (columns: Record<string, string> = {}): string =>
  inserted(
    "payouts",
    {
      ...{ id: "'pay_new'", account: "account", payee: "position", amount: "3", rail: "'live_book'" },
      ...{ status: "'submitted'", version: "1", created_at: "0", ...columns },
    },
    owed,
  );
const payoutTransaction = (columns: Record<string, string> = {}, id = "pay_unsent"): string =>
  inserted(
    "payout_transactions",
    {
      ...{ chain_id: "1", wallet: "'0xw'", nonce: "2", payout: "position", account: "account" },
      ...{ rail: "rail", token: "'0xto'", by_person: "0", judged: "0", recorded_at: "0", ...columns },
    },
    `payouts WHERE id = '${id}'`,
  );
const correction = (columns: Record<string, string> = {}): string =>
  inserted(
    "corrections",
    {
      ...{
        id: "'cor_new'",
        account: "account",
        deposit: "position",
        amount_before: "amount",
        amount_after: "20",
      },
      ...{ reason: "'x'", status: "'proposed'", proposed_by: "'usr_1'", created_at: "0", ...columns },
    },
    "deposits WHERE reference = 'second'",
  );
const onPayout = (id: string, set: string) => () => `UPDATE payouts SET ${set} WHERE id = 'pay_${id}'`;
const ending = "version = 2, ended_at = 1";
const deciding = "decided_by = 'usr_2', decided_at = 1";
const onCorrection = (set: string) => () => `UPDATE corrections SET ${set} WHERE id = 'cor_proposed'`;
const ofPayout = (id: string, kind: string, legs: Record<string, string>) => () =>
  posting(`payouts WHERE id = 'pay_${id}'`, ["0", "0", "0", "0"], { kind: `'${kind}'`, ...legs });

const PAYOUTS: readonly Wrong[] = [
  ["a payout of nothing", () => payout({ amount: "0" }), /payouts_amount/],
  ["a payout that begins as paid", () => payout({ status: "'paid'" }), /begins as submitted/],
  ["a payout from another account", () => payout({ account: "account + 1" }), /a payee of its account/],
  ["a live payout on a rail of the sandbox", () => payout({ rail: "'sandbox_book'" }), /a rail of its mode/],
  ["a second payout of an id", () => payout({ id: "'pay_paid'" }), /UNIQUE constraint failed: payouts.id/],
  ["a payout in no status", onPayout("submitted", `status = 'gone', ${ending}`), /payouts_status/],
  ["paid, and no time", onPayout("submitted", "status = 'paid', reference = 'r', version = 2"), /_ended/],
  ["paid, and no reference", onPayout("submitted", `status = 'paid', ${ending}`), /payouts_reference/],
  ["failed, and no reason", onPayout("submitted", `status = 'failed', ${ending}`), /payouts_reason/],
  ["a second payment", onPayout("paid", "status = 'paid', version = 3"), /is paid once, or fails once/],
  [
    "another reference",
    onPayout("paid", "status = 'failed', reason = 'x', version = 3, reference = 'q'"),
    /once/,
  ],
  ["a failed payout that is paid", onPayout("failed", "status = 'paid', version = 3"), /is paid once/],
  [
    "a move without a version",
    onPayout("submitted", "status = 'failed', reason = 'x', ended_at = 1"),
    /once/,
  ],
  [
    "a payout of another amount",
    onPayout("submitted", `amount = 4, status = 'failed', reason = 'x', ${ending}`),
    /what is paid out, and to whom, is fixed/,
  ],
  ["a deleted payout", () => "DELETE FROM payouts", /payouts are kept/],
  ["a payee that is owed less than nothing", () => "UPDATE payees SET payable = -1", /payees_not_negative/],
  [
    "a payee that is owed half a unit",
    () => "UPDATE payees SET payable = payable + 0.5",
    /payees_integers/,
    null,
  ],
  [
    "more under way than in payouts",
    () => "UPDATE payees SET submitted = submitted + 1",
    /is in its payouts/,
  ],
  [
    "a payee that begins with something",
    () => `INSERT INTO payees SELECT NULL, account, 'new', 1, 0, 0 FROM ${owed}`,
    /begins with nothing/,
  ],
  ["a payee of no account", () => "INSERT INTO payees VALUES (NULL, 7777, 'new', 0, 0, 0)", /in an account/],
  [
    "a payee twice",
    () => `INSERT INTO payees SELECT NULL, account, payee, 0, 0, 0 FROM ${owed}`,
    /UNIQUE constraint failed: payees.account, payees.payee/,
  ],
  ["a payee under another name", () => "UPDATE payees SET payee = 'other'", /stays that of its account/],
  ["a deleted payee", () => "DELETE FROM payees", /payees are kept/],
  ["a correction of nothing", () => correction({ amount_after: "amount" }), /corrections_amounts/],
  ["a correction to less than nothing", () => correction({ amount_after: "-1" }), /corrections_amounts/],
  ["a correction of another amount", () => correction({ amount_before: "1" }), /what its deposit counts for/],
  [
    "a correction of another account",
    () => correction({ account: "account + 1" }),
    /what its deposit counts for/,
  ],
  ["a second proposal", () => correction(), /UNIQUE constraint failed: corrections.deposit/],
  [
    "a second correction of an id",
    () => correction({ id: "'cor_recorded'", status: "'recorded'" }),
    /UNIQUE constraint failed: corrections.id/,
  ],
  ["a correction in no status", onCorrection(`status = 'gone', ${deciding}`), /corrections_status/],
  ["withdrawn by nobody", onCorrection("status = 'withdrawn'"), /corrections_decided/],
  [
    "approved by who proposed it",
    onCorrection("status = 'recorded', decided_by = 'usr_1', decided_at = 1"),
    /corrections_two_people/,
  ],
  [
    "a recorded correction that is withdrawn",
    () => `UPDATE corrections SET status = 'withdrawn', ${deciding} WHERE id = 'cor_recorded'`,
    /decided once/,
  ],
  [
    "a correction with another reason",
    onCorrection(`reason = 'y', status = 'recorded', ${deciding}`),
    /what is corrected is fixed/,
  ],
  ["a deleted correction", () => "DELETE FROM corrections", /corrections are kept/],
  [
    "a posting of what is only proposed",
    () => posting("corrections WHERE id = 'cor_proposed'", ["-3", "0", "0", "3"], { kind: "'correction'" }),
    /a correction is posted once it is recorded/,
  ],
  [
    "a posting of more than is corrected",
    () => posting("corrections WHERE id = 'cor_recorded'", ["-4", "0", "0", "4"], { kind: "'correction'" }),
    /a correction is posted once it is recorded/,
  ],
  [
    "a payout posted as more than it is",
    ofPayout("submitted", "payout_submitted", { payable: "-4", submitted: "4" }),
    /is posted as it says/,
  ],
  [
    "a payout posted as paid before",
    ofPayout("submitted", "payout_paid", { payable: "0", submitted: "-3" }),
    /is posted as it says/,
  ],
  [
    "a payment that is owed again",
    ofPayout("paid", "payout_paid", { payable: "3", submitted: "-3" }),
    /is posted as it says/,
  ],
  [
    "a failed payout that came back unpaid",
    ofPayout("failed", "payout_failed", { payable: "3", submitted: "0" }),
    /is posted as it says/,
  ],
  [
    "a release that owes a part",
    () => posting("warrants WHERE id = 'wrt_refunded'", refunding, { payable: "1" }),
    /a settlement is what its warrant says/,
  ],
  [
    "a release that owes its payee nothing, as of a version that knows no payees",
    () => posting("warrants WHERE id = 'wrt_released'", paying),
    /a settlement is what its warrant says/,
  ],
  [
    "a release that owes what a wallet has paid",
    () => posting("warrants WHERE id = 'wrt_answered'", paying, { payable: "amount" }),
    /a settlement is what its warrant says/,
  ],
  ["a hold that owes", () => posting(bare, holding, { payable: "1" }), /a hold is the amount/],
  ["a deposit that owes", () => posting(bareDeposit, funding, { payable: "1" }), /brings the amount/],
];

const WARRANTS: readonly Wrong[] = [
  ["a warrant of nothing", () => warrant({ amount: "0" }), /warrants_amount/],
  ["a warrant of less than nothing", () => warrant({ amount: "-1" }), /warrants_amount/],
  [
    "a warrant of 2^63",
    () => warrant({ amount: "9223372036854775808" }),
    /warrants_amount/,
    /bigint out of range/,
  ],
  ["a warrant in no state", () => warrant({ state: "'paid'" }), /warrants_state|warrants_share/],
  ["a warrant of version 0", () => warrant({ version: "0" }), /warrants_version/],
  ["a warrant of no scope", () => warrant({ scope: "7777" }), /held from an account of its scope/],
  [
    "a warrant that is held from another scope's account",
    () => warrant({ account: inMode("sandbox") }),
    /held from an account of its scope/,
  ],
  [
    "a warrant of no policy, and no rules",
    () => warrant({ policy: "NULL", rules_hash: "NULL" }),
    /warrants_rules/,
  ],
  ["released, and no share", () => warrant({ state: "'released'", settled_at: "1" }), /warrants_share/],
  [
    "released, and not all",
    () => warrant({ state: "'released'", settled_at: "1", released_bps: "9999" }),
    /warrants_share/,
  ],
  [
    "partially released, and all",
    () => warrant({ state: "'partially_released'", settled_at: "1", released_bps: "10000" }),
    /warrants_share/,
  ],
  [
    "partially released, and none",
    () => warrant({ state: "'partially_released'", settled_at: "1", released_bps: "0" }),
    /warrants_share/,
  ],
  [
    "refunded, and a share",
    () => warrant({ state: "'refunded'", settled_at: "1", released_bps: "1" }),
    /warrants_share/,
  ],
  ["settled, and no time", () => warrant({ state: "'refunded'" }), /warrants_settled_at/],
  ["a time, and not settled", () => warrant({ settled_at: "1" }), /warrants_settled_at/],
  [
    "a move of what is settled",
    () => `UPDATE warrants SET state = 'refunded', released_bps = NULL WHERE id = ${one("released")}`,
    /a settled warrant is final/,
  ],
  ["a deleted warrant", () => `DELETE FROM warrants WHERE id = ${one("held")}`, /warrants are kept/],
  [
    "a replaced warrant",
    () => warrant({ id: one("held"), amount: "1" }, "INSERT OR REPLACE"),
    /warrants are kept/,
    null,
  ],
  ["a new warrant with a grace", () => warrant({ grace_until: "deadline + 1" }), /from an interrupted check/],
  ...(
    [
      ["that ends at the deadline", "grace_until = deadline", "held"],
      ["of more than an hour", "grace_until = deadline + 3600001", "held"],
      ["that is no integer", "grace_until = deadline + 0.5", "held", null],
      ["of what is escalated", "grace_until = deadline + 1", "escalated"],
    ] as const
  ).map(
    ([what, set, state, postgres]): Wrong => [
      `a grace ${what}`,
      () => `UPDATE warrants SET ${set} WHERE id = ${one(state)}`,
      /a grace ends within an hour/,
      postgres,
    ],
  ),
  ...[
    "position",
    "id",
    "scope",
    "account",
    "amount",
    "payee",
    "spec",
    "spec_hash",
    "agent",
    "session",
    "verifier",
    "policy",
    "rules_hash",
    "deadline",
    "opened_at",
    "opened_by_agent",
    "opened_by_user",
  ].map(
    (column) =>
      [
        `another ${column}`,
        () => `UPDATE warrants SET ${column} = ${column} WHERE id = ${one("held")}`,
        /the terms of a warrant are fixed/,
      ] as Wrong,
  ),
];

const HISTORY: readonly Wrong[] = [
  ["a changed trace entry", () => "UPDATE trace SET recorded_at = 0", /the trace is append-only/],
  ...["position", "rowid", "oid", "_rowid_"].map(
    (name): Wrong => [
      `a trace entry whose ${name} is moved`,
      () => `UPDATE trace SET ${name} = 7777 WHERE position = 1`,
      /the trace is append-only/,
      name === "position" ? undefined : null,
    ],
  ),
  ["a deleted trace entry", () => "DELETE FROM trace WHERE position = 1", /the trace is append-only/],
  [
    "a replaced trace entry",
    () => "INSERT OR REPLACE INTO trace SELECT * FROM trace WHERE position = 1",
    /the trace is append-only/,
    null,
  ],
  [
    "two entries of one sequence",
    () =>
      "INSERT INTO trace SELECT NULL, warrant, sequence, from_state, to_state, actor_kind, actor_id, recorded_at, encoding, schema_hashes, check_id, entry_hash, event_id, NULL, NULL FROM trace WHERE position = 1",
    /UNIQUE constraint failed: trace/,
  ],
  [
    "a system with a name",
    () =>
      "INSERT INTO trace SELECT NULL, 7777, 0, NULL, 'held', 'system', 'x', 0, 1, NULL, NULL, x'00', NULL, NULL, NULL",
    /trace_actor/,
  ],
  [
    "schemas after the opening",
    () =>
      "INSERT INTO trace SELECT NULL, 7777, 1, 'held', 'verifying', 'system', NULL, 0, 1, '{}', NULL, x'00', NULL, NULL, NULL",
    /trace_schemas/,
  ],
  [
    "a check that nothing was verified by",
    () =>
      "INSERT INTO trace SELECT NULL, 7777, 1, 'held', 'refunded', 'system', NULL, 0, 1, NULL, 'chk_x', x'00', NULL, NULL, NULL",
    /trace_check/,
  ],
  [
    "an opening with a state before it",
    () =>
      "INSERT INTO trace SELECT NULL, 7777, 0, 'held', 'held', 'system', NULL, 0, 1, NULL, NULL, x'00', NULL, NULL, NULL",
    /trace_opening/,
  ],
  [
    "a second entry that opens",
    () =>
      "INSERT INTO trace SELECT NULL, 7777, 1, NULL, 'held', 'system', NULL, 0, 1, NULL, NULL, x'00', NULL, NULL, NULL",
    /trace_opening/,
  ],
  ["a changed verifier", () => "UPDATE verifiers SET name = 'other'", /a saved verifier is never edited/],
  ["a deleted verifier", () => "DELETE FROM verifiers", /verifiers are kept/],
  ["a session of another agent", () => "UPDATE spend_sessions SET agent_id = agent_id", /stays its agent's/],
  ["a session at another position", () => "UPDATE spend_sessions SET position = 99", /stays its agent's/],
  ["a deleted session", () => "DELETE FROM spend_sessions", /spend sessions are kept/],
  ...["per_warrant_max", "hourly_max", "daily_max", "payees", "source_origins"].map(
    (column) =>
      [
        `a session with another ${column}`,
        () => `UPDATE spend_sessions SET ${column} = ${column}`,
        /the limits of a spend session are fixed/,
      ] as Wrong,
  ),
  [
    "a hold at another time",
    () => "UPDATE session_totals SET held_at = held_at",
    /what a session held is history/,
  ],
  ["a deleted hold", () => "DELETE FROM session_totals", /what a session held is history/],
  [
    "a hold before the last one",
    () => "INSERT INTO session_totals SELECT session, held_at - 1, 0, NULL FROM session_totals LIMIT 1",
    /what a session held is history/,
  ],
  ["a deleted agent", () => "DELETE FROM agents", /agents are kept/],
  [
    "an agent at another position",
    () => "UPDATE agents SET position = 99",
    /stays in its organisation and mode/,
  ],
  [
    "a check of no warrant",
    () =>
      "INSERT INTO checks SELECT NULL, 'chk_new', 7777, source_url, http_status, bytes, duration_ms, score, passed, reason_codes, evidence_hash, details, outcome, band_label, evaluated_at, evaluator_version, signed_by, capsule_hash, NULL FROM checks LIMIT 1",
    /a check belongs to a warrant/,
  ],
  [
    "a check of one id twice",
    () =>
      "INSERT INTO checks SELECT NULL, id, (SELECT max(position) FROM warrants), source_url, http_status, bytes, duration_ms, score, passed, reason_codes, evidence_hash, details, outcome, band_label, evaluated_at, evaluator_version, signed_by, capsule_hash, NULL FROM checks LIMIT 1",
    /UNIQUE constraint failed: checks.id/,
  ],
  [
    "a deposit to no account",
    () => "INSERT INTO deposits VALUES (NULL, 'dep_new', 7777, 1, NULL, 0, NULL)",
    /a deposit belongs to an account/,
  ],
  [
    "a key of no scope",
    () =>
      "INSERT INTO idempotency_keys (scope, key, fingerprint, holder, created_at) VALUES (7777, 'k', x'00', 'wrt_x', 0)",
    /an idempotency key belongs to a scope/,
  ],
  ["a changed check", () => "UPDATE checks SET score = 10000", /checks are append-only/],
  ["a deleted check", () => "DELETE FROM checks", /checks are append-only/],
  ["a changed policy", () => "UPDATE policies SET rules = '{}'", /a policy version is never edited/],
  ["a deleted policy", () => "DELETE FROM policies", /policies are kept/],
  [
    "a replaced policy",
    () =>
      "INSERT OR REPLACE INTO policies SELECT position, id, organisation_id, agent_id, name, version, '{}', rules_hash, created_at, NULL FROM policies",
    /policies are kept/,
    null,
  ],
  [
    "a policy version twice",
    () =>
      "INSERT INTO policies SELECT NULL, 'pol_new', organisation_id, agent_id, name, version, rules, rules_hash, created_at, NULL FROM policies WHERE agent_id IS NOT NULL",
    /UNIQUE constraint failed: policies.agent_id/,
  ],
  ["a changed schema", () => "UPDATE schemas SET schema = 'true'", /a named schema is immutable/],
  ["a deleted schema", () => "DELETE FROM schemas", /named schemas are kept/],
  [
    "a changed entry of the audit log",
    () => "UPDATE audit_entries SET action = 'user.created'",
    /the audit log is append-only/,
  ],
  ["a deleted entry of the audit log", () => "DELETE FROM audit_entries", /the audit log is append-only/],
  [
    "a replaced entry of the audit log",
    () =>
      "INSERT OR REPLACE INTO audit_entries SELECT id, organisation_id, actor_kind, actor_id, action, 'other', NULL, NULL, 0 FROM audit_entries",
    /the audit log is append-only/,
    null,
  ],
  [
    "a machine with a name in the audit log",
    () =>
      "INSERT INTO audit_entries SELECT 'act_new', organisation_id, 'machine', 'usr_x', action, subject, NULL, NULL, 0 FROM audit_entries LIMIT 1",
    /audit_entries_actor/,
  ],
  [
    "a used reset link made good again",
    () => "UPDATE password_resets SET used_at = NULL",
    /a reset link is good for one use/,
  ],
  [
    "a used reset link used again",
    () => "UPDATE password_resets SET used_at = 9",
    /a reset link is good for one use/,
  ],
  [
    "a used approval made good again",
    () => "UPDATE passkey_approvals SET used_at = NULL",
    /an approval is good for one use/,
  ],
  [
    "a used approval for another warrant",
    () => "UPDATE passkey_approvals SET warrant_id = 'wrt_x', expires_at = 9",
    /an approval is good for one use/,
  ],
  [
    "a passkey that becomes another person's",
    () =>
      "INSERT INTO passkeys SELECT id, organisation_id, 'usr_other', 'x', '', 9, '[]', 1, 0, NULL FROM passkeys WHERE true ON CONFLICT (id) DO UPDATE SET counter = 9",
    /a passkey stays its person's/,
  ],
  [
    "a schema's name twice",
    () =>
      "INSERT INTO schemas SELECT 'sch_new', organisation_id, name, schema, schema_hash, created_at, NULL FROM schemas",
    /UNIQUE constraint failed: schemas/,
  ],
];

const LIMITS: readonly Wrong[] = [
  [
    "an agent in no mode",
    () =>
      "INSERT INTO agents SELECT NULL, 'agt_new', organisation_id, 'test', name, identity, status, 1, 0, 0, 0, NULL FROM agents LIMIT 1",
    /agents_mode/,
  ],
  [
    "two keys of one secret",
    () =>
      "INSERT INTO api_keys SELECT 'key_new', organisation_id, agent_id, mode, secret_hash, last_four, 0, NULL, NULL, NULL FROM api_keys LIMIT 1",
    /UNIQUE constraint failed: api_keys.secret_hash/,
  ],
  [
    "a sign-in to no mode",
    () =>
      "INSERT INTO auth_sessions (token_hash, user_id, mode, created_at, expires_at) SELECT 'h', id, 'test', 0, 0 FROM users LIMIT 1",
    /auth_sessions_mode/,
  ],
  [
    "an organisation's policy version twice",
    () =>
      "INSERT INTO policies SELECT NULL, 'pol_new', organisation_id, agent_id, name, version, rules, rules_hash, 0, NULL FROM policies WHERE agent_id IS NULL",
    /UNIQUE constraint failed: policies.organisation_id/,
  ],
  [
    "a session spent over its ceiling",
    () => "UPDATE spend_sessions SET amount_spent = amount_ceiling + 1",
    /spend_sessions_spent/,
  ],
  [
    "a session spent below nothing",
    () => "UPDATE spend_sessions SET amount_spent = -1",
    /spend_sessions_spent/,
  ],
  [
    "a session with a warrant too many",
    () => "UPDATE spend_sessions SET warrant_count = warrant_limit + 1",
    /spend_sessions_count/,
  ],
  [
    "a session of no agent",
    () =>
      "INSERT INTO spend_sessions SELECT NULL, 'ses_new', 'agt_none', 1, 0, NULL, 0, 1, 0, 0, NULL, 0, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL",
    /FOREIGN KEY/,
  ],
  [
    "an agent in another mode",
    () => "UPDATE agents SET mode = 'live'",
    /an agent stays in its organisation and mode/,
  ],
  ["an agent of no status", () => "UPDATE agents SET status = 'asleep'", /agents_status/],
  ["an agent with failures below nothing", () => "UPDATE agents SET failure_count = -1", /agents_failures/],
  [
    "a live key of a sandbox agent",
    () =>
      "INSERT INTO api_keys SELECT 'key_new', organisation_id, id, 'live', 'h', 'last', 0, NULL, NULL, NULL FROM agents WHERE mode = 'sandbox'",
    /an API key has its agent's organisation and mode/,
  ],
  [
    "a key that changes its mode",
    () => "UPDATE api_keys SET mode = 'live' WHERE mode = 'sandbox'",
    /an API key stays its agent's/,
  ],
  ["a person of no role", () => "UPDATE users SET role = 'root'", /users_role/],
  [
    "two people of one e-mail",
    () => "UPDATE users SET email = 'a@b.example'",
    /UNIQUE constraint failed: users.email/,
  ],
  [
    "two unresolved escalations",
    () =>
      `INSERT INTO escalations SELECT 'esc_new', organisation_id, mode, warrant_id, check_id, score, reason_codes, 'open', NULL, NULL, NULL, NULL, NULL, 0, NULL, NULL FROM escalations WHERE warrant_id = ${one("escalated")}`,
    /UNIQUE constraint failed: escalations.warrant_id/,
  ],
  [
    "resolved, and no time",
    () => `UPDATE escalations SET status = 'resolved' WHERE warrant_id = ${one("escalated")}`,
    /escalations_resolved/,
  ],
  [
    "half an outcome",
    () =>
      "INSERT INTO idempotency_keys SELECT NULL, scope, 'half', fingerprint, NULL, 201, NULL, NULL, NULL, NULL, NULL, 0, NULL FROM idempotency_keys LIMIT 1",
    /idempotency_keys_outcome/,
  ],
  [
    "an outcome that is a text and a warrant",
    () =>
      "INSERT INTO idempotency_keys SELECT NULL, scope, 'both', fingerprint, NULL, 201, '{}', 1, 1, 1, NULL, 0, NULL FROM idempotency_keys LIMIT 1",
    /idempotency_keys_outcome/,
  ],
  [
    "an outcome that is a warrant at no version",
    () =>
      "INSERT INTO idempotency_keys SELECT NULL, scope, 'half', fingerprint, NULL, 201, NULL, 1, NULL, 1, NULL, 0, NULL FROM idempotency_keys LIMIT 1",
    /idempotency_keys_warrant/,
  ],
  ["a second outcome", () => "UPDATE idempotency_keys SET body = '{}'", /recorded once/],
  ["a key of another request", () => "UPDATE idempotency_keys SET fingerprint = x'00'", /one request/],
  ...["-1", "1.5"].map(
    (total): Wrong => [
      `a running total of ${total}`,
      () => `UPDATE session_totals SET total = ${total}`,
      /session_totals_total/,
      total === "1.5" ? null : undefined,
    ],
  ),
  [
    "content below nothing",
    () => "INSERT INTO content_sums SELECT position, 0, -1, NULL FROM scopes LIMIT 1",
    /content_sums_not_negative/,
  ],
  ["a count below nothing", () => "UPDATE warrant_counts SET count = -1", /warrant_counts_not_negative/],
  [
    "a score above all",
    () =>
      `INSERT INTO checks SELECT NULL, 'chk_new', warrant, source_url, http_status, bytes, duration_ms, 10001, passed, reason_codes, evidence_hash, details, outcome, band_label, evaluated_at, evaluator_version, signed_by, capsule_hash, NULL FROM checks LIMIT 1`,
    /checks_score/,
  ],
];

/** A sandbox purchase that is paid on Base Sepolia, with some columns changed. Its id says its phase. */
function purchase(columns: Record<string, string>): string {
  const phase = columns.phase ?? "'held'";
  const isEnded = phase === "'ended'";
  const values = {
    id: `'pur_' || ${phase}`,
    organisation_id: "id",
    mode: "'sandbox'",
    method: "'GET'",
    url: "'https://s.example'",
    max_amount: "100",
    phase,
    quoted_amount: "100",
    quoted_asset: "'USDC'",
    quoted_payee: "'0xa1'",
    timeout_seconds: "60",
    pays: `'{"kind":"exact"}'`,
    warrant_id: `'wrt_' || ${phase}`,
    payer: "'0xb2'",
    chain_id: "84532",
    contract: "'0xc3'",
    nonce: `'0x' || ${phase}`,
    valid_before: "60000",
    header: phase === "'held'" ? "NULL" : `'{"name":"X-PAYMENT"}'`,
    known: isEnded ? "'paid'" : "NULL",
    created_at: "0",
    ended_at: isEnded ? "1" : "NULL",
    ...columns,
  };
  return `INSERT INTO purchases (${Object.keys(values).join(", ")}) SELECT ${Object.values(values).join(", ")} FROM organisations LIMIT 1`;
}
const changed = (set: string, phase: string) => () => `UPDATE purchases SET ${set} WHERE id = 'pur_${phase}'`;
const back = (from: string, to: string): Wrong => [
  `a purchase that goes back from ${from} to ${to}`,
  changed(`phase = '${to}', ended_at = NULL`, from),
  /a purchase does not go back/,
];
const elsewhere = (mode: string, chainId: number): Wrong => [
  `a ${mode} purchase on chain ${chainId}`,
  () =>
    purchase({
      id: "'pur_new'",
      warrant_id: "'wrt_x'",
      nonce: "'0x'",
      mode: `'${mode}'`,
      chain_id: `${chainId}`,
    }),
  /purchases_network/,
];
const anotherValue = (columns: readonly string[], problem: RegExp) =>
  columns.flatMap((column): Wrong[] => [
    [`a purchase's other ${column}`, changed(`${column} = '7'`, "signed"), problem],
    [`a purchase's ${column} taken away`, changed(`${column} = NULL`, "signed"), problem],
  ]);

const PURCHASES: readonly Wrong[] = [
  back("held", "quoting"),
  back("signed", "held"),
  back("answered", "signed"),
  back("answered", "quoting"),
  back("ended", "answered"),
  back("ended", "held"),
  [
    "a payment that was known, and is another",
    changed("known = 'unpaid'", "ended"),
    /a purchase does not go back/,
  ],
  ...anotherValue(
    ["url", "method", "max_amount", "mode", "organisation_id", "agent_id", "created_at"],
    /fixed at the beginning/,
  ),
  ...anotherValue(
    [
      "warrant_id",
      "quoted_amount",
      "quoted_asset",
      "quoted_payee",
      "timeout_seconds",
      "pays",
      "payer",
      "chain_id",
      "contract",
      "nonce",
      "valid_before",
      "header",
    ],
    /fixed once they are settled|its warrant's/,
  ),
  elsewhere("sandbox", 8_453),
  elsewhere("sandbox", 1),
  elsewhere("live", 84_532),
  elsewhere("live", 31_337),
  [
    "what a chain said of a payment that no person attested",
    changed("chain_said = 'paid'", "ended"),
    /the chain answers once what a person has attested/,
  ],
  [
    "what a chain cannot say",
    changed("known_by = 'person', chain_said = 'unknown'", "ended"),
    /the chain answers once what a person has attested/,
  ],
  [
    "an acknowledged payment that no chain contradicts",
    changed("acknowledged_at = 1", "ended"),
    /only what a chain contradicts is acknowledged, and once/,
  ],
  ["a deleted purchase", () => "DELETE FROM purchases WHERE id = 'pur_held'", /purchases are kept/],
];

/** A copy of a row of a table with some columns changed. Its position is a new one. */
const copy =
  (table: string, columns: Record<string, string> = {}, where = "true") =>
  (): string => {
    const values = columnsOf(table).map(
      (name) => columns[name] ?? (name === "position" ? "NULL" : `"${name}"`),
    );
    return `INSERT INTO ${table} SELECT ${values.join(", ")} FROM ${table} WHERE ${where} LIMIT 1`;
  };
const twice = (table: string, column: string, columns?: Record<string, string>, where?: string): Wrong => [
  `another row of ${table} with the same ${column}`,
  copy(table, columns, where),
  new RegExp(`UNIQUE constraint failed: ${table}\\.${column.replaceAll(" ", `, ${table}\\.`)}$`),
];

const TWICE: readonly Wrong[] = [
  twice("accounts", "scope asset", {
    ...{ available: "0", held: "0", paid: "0", funding: "0", payable: "0", submitted: "0", posted: "0" },
  }),
  twice("agents", "id"),
  twice("api_keys", "id", { secret_hash: "'another'" }),
  twice("audit_entries", "id"),
  twice("auth_sessions", "token_hash"),
  twice("capsules", "id"),
  twice("capsule_parts", "hash part"),
  twice("contents", "hash"),
  [
    "two sums of the same content",
    () => "INSERT INTO content_sums VALUES (1, 0, 1, NULL), (1, 0, 2, NULL)",
    /UNIQUE constraint failed: content_sums.scope, content_sums.bought$/,
  ],
  twice("deposits", "id", { reference: "NULL" }),
  twice("escalations", "id", { status: "'resolved'", resolved_at: "1" }),
  twice("idempotency_keys", "scope key", { holder: "'another'" }, "status IS NULL"),
  twice("imported_tables", "name"),
  twice("instances", "id"),
  twice("messaging_accounts", "user_id", { chat_id: "'43'" }),
  twice("messaging_accounts", "chat_id", { user_id: "'usr_new'" }),
  twice("messaging_codes", "user_id", { code_hash: "'another'" }),
  twice("messaging_codes", "code_hash", { user_id: "'usr_new'" }),
  twice("notices", "id"),
  twice("notice_settings", "user_id"),
  twice("organisations", "id"),
  twice("passkey_approvals", "token_hash"),
  twice("passkeys", "id"),
  twice("password_resets", "token_hash"),
  twice("witnessed_logs", "origin"),
  twice("cosignatures", "size witness"),
  twice("chain_transactions", "chain_id wallet nonce"),
  twice("log_anchors", "chain_id wallet nonce"),
  twice("planned_notices", "id"),
  twice("policies", "id", { version: "99" }),
  twice("purchases", "id", { warrant_id: "'wrt_new'", nonce: "'new'" }),
  twice("purchases", "warrant_id", { id: "'pur_new'", nonce: "'new'" }),
  twice("purchases", "payer nonce", { id: "'pur_new'", warrant_id: "'wrt_new'" }),
  twice("push_subscriptions", "id", { endpoint: "'https://push.example.com/2'" }),
  twice("push_subscriptions", "endpoint", { id: "'psh_new'" }),
  twice("schemas", "id", { name: "'another'" }),
  twice("source_keys", "id"),
  twice("scopes", "organisation_id mode"),
  twice("session_totals", "session held_at"),
  twice("spend_sessions", "id"),
  twice("users", "id", { email: "'another@example.com'" }),
  twice("verifiers", "id"),
  twice("warrant_counts", "scope agent state"),
  twice("warrants", "id"),
  twice("webhook_deliveries", "id"),
  twice("webhooks", "id"),
  [
    "a second key in flight for one warrant or purchase",
    copy("idempotency_keys", { key: "'another'" }, "status IS NULL"),
    /UNIQUE constraint failed: idempotency_keys.holder$/,
  ],
];

const pending = (columns: Record<string, string>) =>
  copy("webhook_deliveries", { id: "'del_new'", ...columns }, "id = 'del_pending'");
const newPurchase = (columns: Record<string, string>) => () =>
  purchase({ id: "'pur_new'", warrant_id: "'wrt_new'", nonce: "'new'", ...columns });

const SHAPES: readonly Wrong[] = [
  [
    "a key in flight that nobody holds",
    copy("idempotency_keys", { key: "'k'", holder: "NULL", status: "NULL", body: "NULL" }),
    /idempotency_keys_holder/,
  ],
  [
    "an outcome that is still held",
    copy("idempotency_keys", { key: "'k'", holder: "'wrt_x'", status: "200", body: "'{}'" }),
    /idempotency_keys_holder/,
  ],
  ["a scope of no mode", copy("scopes", { mode: "'test'" }), /scopes_mode/],
  ["verifying, and no time", () => warrant({ state: "'verifying'" }), /warrants_verifying_since/],
  ["a time, and not verifying", () => warrant({ verifying_since: "1" }), /warrants_verifying_since/],
  ["a purchase in no mode", newPurchase({ mode: "'test'", chain_id: "NULL" }), /purchases_mode/],
  ["a purchase in no phase", newPurchase({ phase: "'paid'" }), /purchases_phase/],
  ["a purchase that is held without a warrant", newPurchase({ warrant_id: "NULL" }), /purchases_held/],
  [
    "a purchase that is signed without a header",
    newPurchase({ phase: "'signed'", header: "NULL" }),
    /purchases_signed/,
  ],
  [
    "a purchase that was answered without a header",
    newPurchase({ phase: "'answered'", header: "NULL" }),
    /purchases_signed/,
  ],
  [
    "a purchase that ended at no time",
    newPurchase({ phase: "'ended'", ended_at: "NULL" }),
    /purchases_ended/,
  ],
  ["a purchase that has not ended, and a time", newPurchase({ ended_at: "1" }), /purchases_ended/],
  [
    "a purchase that gets a warrant that is not there",
    () => "UPDATE purchases SET warrant_id = 'wrt_none' WHERE id = 'pur_quoting'",
    /a purchase has its warrant's organisation and mode/,
  ],
  [
    "a purchase that gets a warrant of the other mode",
    () => `UPDATE purchases SET warrant_id = ${one("held")} WHERE id = 'pur_quoting'`,
    /a purchase has its warrant's organisation and mode/,
  ],
  ["a changed capsule", () => "UPDATE capsules SET facts = '{}'", /a capsule is not changed/],
  [
    "a changed body in a capsule",
    () => "UPDATE capsule_parts SET bytes = x'00'",
    /the body in a capsule is not changed/,
  ],
  ...["id = 'x'", "organisation_id = 'x'", "origin = 'x'", "signer = 'x'", "created_at = 1"].map(
    (what): Wrong => [
      `a source key with another ${what}`,
      () => `UPDATE source_keys SET ${what} WHERE id = 'sky_used'`,
      /a source key is removed once, and not changed/,
    ],
  ),
  [
    "a source key that counts again",
    () => "UPDATE source_keys SET removed_at = NULL WHERE id = 'sky_removed'",
    /a source key is removed once, and not changed/,
  ],
  ["a deleted source key", () => "DELETE FROM source_keys WHERE id = 'sky_removed'", /source keys are kept/],
  ["a capsule in no mode", copy("capsules", { id: "'chk_new'", mode: "'test'" }), /capsules_mode/],
  ["a capsule that counts nothing", copy("capsules", { id: "'chk_new'", bytes: "0" }), /capsules_bytes/],
  ["a changed content", () => "UPDATE contents SET bytes = x'00'", /kept answers are not changed/],
  ["an endpoint in no mode", copy("webhooks", { id: "'whk_new'", mode: "'test'" }), /webhooks_mode/],
  [
    "a delivery in another mode than its endpoint",
    pending({ mode: "'sandbox'" }),
    /a delivery has its endpoint's/,
  ],
  [
    "a delivery of another organisation than its endpoint's",
    pending({ organisation_id: "'org_x'" }),
    /a delivery has its endpoint's/,
    /FOREIGN KEY/,
  ],
  [
    "a delivery to no endpoint",
    pending({ webhook_id: "'whk_none'" }),
    /a delivery has its endpoint's/,
    /FOREIGN KEY/,
  ],
  ["a notice in no mode", copy("notices", { id: "'new'", mode: "'test'" }), /notices_mode/],
  [
    "a planned notice in no mode",
    copy("planned_notices", { id: "'new'", mode: "'test'" }),
    /planned_notices_mode/,
  ],
  [
    "a notice that was attempted too often",
    copy("notices", { id: "'new'", attempts: "7" }),
    /notices_attempts/,
  ],
  [
    "a notice that waits for nothing",
    copy("notices", { id: "'new'", next_attempt_at: "NULL" }),
    /notices_work/,
  ],
  [
    "a notice that was delivered, and is due",
    copy("notices", { id: "'new'", status: "'delivered'" }),
    /notices_work/,
  ],
  [
    "a notice that is due, and under way",
    copy("notices", { id: "'new'", claimed_until: "1" }),
    /notices_work/,
  ],
  ["a delivery that was attempted too often", pending({ attempts: "5" }), /webhook_deliveries_attempts/],
  [
    "a delivery that was attempted less than never",
    pending({ attempts: "-1" }),
    /webhook_deliveries_attempts/,
  ],
  [
    "a delivery of a warrant, and of no entry",
    pending({ sequence: "NULL" }),
    /webhook_deliveries_of_an_entry/,
  ],
  [
    "a delivery of an entry, and of no warrant",
    pending({ warrant_id: "NULL" }),
    /webhook_deliveries_of_an_entry/,
  ],
  ["a delivery that waits for nothing", pending({ next_attempt_at: "NULL" }), /webhook_deliveries_work/],
  ["a delivery that waits and is under way", pending({ claimed_until: "1" }), /webhook_deliveries_work/],
  ["a delivery that ended and waits", pending({ status: "'exhausted'" }), /webhook_deliveries_work/],
  [
    "a delivery that was delivered, and refused",
    pending({ status: "'delivered'", response_code: "500", next_attempt_at: "NULL" }),
    /webhook_deliveries_delivered/,
  ],
  ...["delivered", "exhausted"].map(
    (status): Wrong => [
      `another try of a delivery that is ${status}`,
      () => `UPDATE webhook_deliveries SET status = 'failed', next_attempt_at = 1 WHERE id = 'del_${status}'`,
      /a delivery that ended is never tried again/,
    ],
  ),
];

/** What a trigger refuses already, and the tables still refuse without that trigger. */
const BEHIND: readonly Behind[] = [
  [
    "a negative balance",
    "accounts_follow_their_postings",
    () => "UPDATE accounts SET available = -1, funding = 1 - held - paid",
    /accounts_not_negative/,
  ],
  [
    "a negative hold",
    "accounts_follow_their_postings",
    () => "UPDATE accounts SET held = -1, funding = 1 - available - paid",
    /accounts_not_negative/,
  ],
  [
    "a negative payment",
    "accounts_follow_their_postings",
    () => "UPDATE accounts SET paid = -1, payable = 0, funding = 1 - available - held",
    /what is owed is a part of what is paid/,
  ],
  [
    "money out of nothing",
    "accounts_follow_their_postings",
    () => "UPDATE accounts SET available = available + 1",
    /accounts_sum_to_zero/,
  ],
  [
    "a balance of half a unit",
    "accounts_follow_their_postings",
    () => "UPDATE accounts SET available = available + 0.5, funding = funding - 0.5",
    /accounts_integers/,
    null,
  ],
  [
    "more owed than paid",
    "accounts_follow_their_postings",
    () => "UPDATE accounts SET payable = paid + 1",
    /what is owed is a part of what is paid/,
  ],
  [
    "a sandbox payout with real money",
    "payout_transactions_of_a_payout",
    () => payoutTransaction({ rail: "'sandbox_evm'" }),
    /payout_transactions_chain/,
  ],
  [
    "a live payout on a test network",
    "payout_transactions_are_signed",
    () => payoutTransaction({ chain_id: "84532" }),
    /payout_transactions_chain/,
  ],
  [
    "a payout on no rail of a chain",
    "payout_transactions_of_a_payout",
    () => payoutTransaction({ rail: "'live_book'" }),
    /payout_transactions_(rail|chain)/,
  ],
  [
    "a second payout of a transaction",
    "payout_transactions_of_a_payout",
    () => payoutTransaction({ nonce: "1" }),
    /UNIQUE constraint failed: payout_transactions.chain_id/,
  ],
  ["a payout of no version", "payouts_begin_submitted", () => payout({ version: "0" }), /payouts_version/],
  [
    "an account of another asset",
    "accounts_follow_their_postings",
    () => "UPDATE accounts SET asset = 'X'",
    /an account stays that of its scope and asset/,
  ],
  [
    "a key in no mode",
    "api_keys_are_of_their_agent",
    copy("api_keys", { id: "'key_new'", secret_hash: "'x'", mode: "'test'" }),
    /api_keys_mode/,
  ],
  [
    "a second entry of a leaf",
    "trace_gets_a_leaf_once",
    () => "UPDATE trace SET leaf_index = 0 WHERE position = 3",
    /UNIQUE constraint failed: trace.leaf_index/,
  ],
  [
    "a second statement of a leaf",
    "solvency_statements_get_a_leaf_once",
    () => "UPDATE solvency_statements SET leaf_index = 2 WHERE number = 2",
    /UNIQUE constraint failed: solvency_statements.leaf_index/,
  ],
  [
    "a second checkpoint of a size",
    "log_checkpoints_go_on",
    () => "INSERT INTO log_checkpoints VALUES (2, 1, zeroblob(32), '', NULL)",
    /UNIQUE constraint failed: log_checkpoints.size/,
  ],
  [
    "a delivery in no mode",
    "webhook_deliveries_are_of_their_endpoint",
    pending({ mode: "'test'" }),
    /webhook_deliveries_mode/,
  ],
];

const rewritten = (set: string) => () => `UPDATE chain_transactions SET ${set}`;
const KEPT = /what was signed is kept/;

/** What wallets have sent to chains. */
const CHAINS: readonly Wrong[] = [
  ...["chain_id = 2", "wallet = 'x'", "nonce = 7", "\"to\" = 'x'", "data = '0x01'", "gas = 2"].map(
    (set): Wrong => [`a transaction changed: ${set}`, rewritten(set), KEPT],
  ),
  ["a transaction made at another time", rewritten("created_at = 7"), KEPT],
  ["a signing taken back", rewritten("signings = '[{}]'"), KEPT],
  ["a signing changed", rewritten("signings = '[{},{\"a\":1},{}]'"), KEPT],
  ["a deleted transaction", () => "DELETE FROM chain_transactions", KEPT],
  ["a changed anchor", () => "UPDATE log_anchors SET size = 2", KEPT],
  ["a deleted anchor", () => "DELETE FROM log_anchors", KEPT],
  ["a transaction in no state", () => sentToChain({ nonce: "1", state: "'lost'" }), /_transactions_state/],
  ["a confirmed one in no block", rewritten("state = 'confirmed'"), /chain_transactions_confirmed/],
  ["an open one in a block", rewritten("block = 1, mined_hash = '0x1'"), /chain_transactions_confirmed/],
  ["a block without a hash", rewritten("state = 'confirmed', block = 1"), /chain_transactions_confirmed/],
  ["one that was never signed", () => sentToChain({ nonce: "1", signings: "'[]'" }), /_signed/],
  ["a nonce below zero", () => sentToChain({ nonce: "-1" }), /chain_transactions_numbers/],
  ["a transaction without gas", () => sentToChain({ nonce: "1", gas: "0" }), /chain_transactions_numbers/],
];

const onTransaction = (set: string) => () => `UPDATE payout_transactions SET ${set}`;
const onRail = (set: string) => () => `UPDATE rail_states SET ${set}`;
const FIXED = /which transaction pays a payout is fixed/;
const railState = (columns: Record<string, string>) => () => {
  const values = {
    ...{
      mode: "'sandbox'",
      asset: "'USDC'",
      chain_id: "84532",
      wallet: "'0xw'",
      token: "'0xto'",
      ...columns,
    },
  };
  return `INSERT INTO rail_states (${Object.keys(values).join(", ")}) VALUES (${Object.values(values).join(", ")})`;
};

/** Payouts that wallets send. */
const RAILS: readonly Wrong[] = [
  [
    "a hold on a chain's rail",
    () => posting(bare, holding, { rail: "'live_evm'" }),
    /a posting moves an account of the mode of its rail/,
  ],
  [
    "a payout on a chain that is posted and was never signed",
    () =>
      posting("payouts WHERE id = 'pay_unsent'", ["0", "0", "0", "0"], {
        ...{ kind: "'payout_submitted'", rail: "'live_evm'", payable: "-3", submitted: "3" },
      }),
    /a payout on a chain has its transaction/,
  ],
  [
    "a payout that fails while its transaction is open",
    onPayout("onchain", `status = 'failed', reason = 'x', ${ending}`),
    /does not end while its transaction may get into a block/,
  ],
  [
    "a live payout on a test network",
    () => payoutTransaction({ chain_id: "84532" }),
    /has a transaction of its own/,
  ],
  [
    "a payout on the rail of the other mode",
    () => payoutTransaction({ rail: "'sandbox_evm'" }),
    /that is submitted on its rail/,
  ],
  [
    "a payout on the rail of people",
    () => payoutTransaction({ rail: "'live_evm'" }, "pay_submitted"),
    /that is submitted on its rail/,
  ],
  [
    "a payout that is accounted for at once",
    () => payoutTransaction({ judged: "1" }),
    /that is submitted on its rail/,
  ],
  [
    "a second transaction of a payout",
    () => payoutTransaction({}, "pay_onchain"),
    /UNIQUE constraint failed: payout_transactions.payout/,
  ],
  [
    "a payout by a transaction that was not signed",
    () => payoutTransaction({ nonce: "7" }),
    /has a transaction of its own/,
  ],
  [
    "a payout by a transaction to another token",
    () => payoutTransaction({ token: "'0xother'" }),
    /has a transaction of its own/,
  ],
  [
    "a payout by an anchor's transaction",
    () => payoutTransaction({ nonce: "0" }),
    /has a transaction of its own/,
  ],
  [
    "an anchor by a payout's transaction",
    () => "INSERT INTO log_anchors VALUES (1, '0xw', 1, 1, 1, zeroblob(32), NULL)",
    /an anchor has a transaction of its own/,
  ],
  ...["nonce = 2", "payout = payout + 1", "token = 'x'", "by_person = 1", "recorded_at = 7"].map(
    (set): Wrong => [`which transaction pays, changed: ${set}`, onTransaction(set), FIXED],
  ),
  [
    "a payout's transaction that is forgotten",
    () => "DELETE FROM payout_transactions",
    /pays a payout is kept/,
  ],
  ["half accounted for", onTransaction("judged = 2"), /payout_transactions_flags/],
  [
    "a wait of nobody",
    () => "INSERT INTO payout_waits VALUES (7777, NULL, NULL, NULL, NULL, 0, NULL)",
    /a payee waits that there is/,
  ],
  ["a wait for nothing known", () => "UPDATE payout_waits SET code = 'x'", /payout_waits_code/],
  ["a release of nothing", () => "UPDATE payout_waits SET released = 0", /payout_waits_released/],
  ["a wait that is forgotten", () => "DELETE FROM payout_waits", /what a payee waits for is kept/],
  ["a nonce that is forgotten", onRail("accepted_nonce = 2"), /the nonce of a wallet never falls/],
  ["a token of another asset", onRail("asset = 'X'"), /the nonce of a wallet never falls/],
  ["a token that is forgotten", () => "DELETE FROM rail_states", /the state of a rail is kept/],
  ["a token that is kept by nothing known", onRail("code = 'x', since = 0"), /rail_states_code/],
  ["a token that is kept since never", onRail("code = 'away'"), /rail_states_since/],
  ["a live token on a test network", onRail("chain_id = 84532, wallet = 'x'"), /rail_states_chain/],
  ["a sandbox token with real money", railState({ chain_id: "8453" }), /rail_states_chain/],
  [
    "a second token of an asset",
    railState({ mode: "'live'", chain_id: "1" }),
    /UNIQUE constraint failed: rail_states.mode/,
  ],
];

const newEntry = (leaf: string) =>
  `INSERT INTO trace SELECT NULL, 7777, 0, NULL, 'held', 'user', 'x', 0, 1, NULL, NULL, x'00', NULL, ${leaf}, NULL`;
const aCheckpoint = (number: string, size: string) =>
  `INSERT INTO log_checkpoints VALUES (${number}, ${size}, zeroblob(32), '', NULL)`;
const aTile = (level: string, tile: string, bytes: number) =>
  `INSERT INTO log_tiles VALUES (${level}, ${tile}, zeroblob(${bytes}))`;
const nextLeaf = "(SELECT max(leaf_index) + 1 FROM solvency_statements)";

/** The log, of which two leaves and a checkpoint over one of them are there. */
const LOG: readonly Wrong[] = [
  [
    "another leaf of an entry",
    () => `UPDATE trace SET leaf_index = ${nextLeaf} WHERE leaf_index = 0`,
    /becomes the next leaf/,
  ],
  [
    "a leaf taken back",
    () => "UPDATE trace SET leaf_index = NULL WHERE leaf_index = 1",
    /becomes the next leaf/,
  ],
  [
    "a leaf that leaves one out",
    () => `UPDATE trace SET leaf_index = ${nextLeaf} + 1 WHERE position = 3`,
    /becomes the next leaf/,
  ],
  [
    "a leaf of another entry",
    () => "UPDATE trace SET leaf_index = 0 WHERE position = 3",
    /becomes the next leaf/,
    /UNIQUE constraint failed: trace.leaf_index/,
  ],
  [
    "an entry at the leaf of a statement",
    () => "UPDATE trace SET leaf_index = 2 WHERE position = 3",
    /becomes the next leaf/,
  ],
  [
    "a statement at the leaf of an entry",
    () => "UPDATE solvency_statements SET leaf_index = 1 WHERE number = 2",
    /a statement becomes the next leaf/,
  ],
  [
    "another leaf of a statement",
    () => `UPDATE solvency_statements SET leaf_index = ${nextLeaf} WHERE number = 1`,
    /a statement becomes the next leaf/,
  ],
  [
    "a statement that begins as a leaf",
    () => aStatement("3", nextLeaf),
    /a statement follows the one before it/,
  ],
  ["a statement after a gap", () => aStatement("4"), /a statement follows the one before it/],
  ...["number = 7", "note = 'x'", "seed = zeroblob(32)", "entry_hash = zeroblob(32)", "digest = 7"].map(
    (set): Wrong => [
      `a statement changed: ${set}`,
      () => `UPDATE solvency_statements SET ${set} WHERE number = 2`,
      KEPT,
    ],
  ),
  ["a deleted statement", () => "DELETE FROM solvency_statements", KEPT],
  ["an entry that begins as a leaf", () => newEntry(nextLeaf), /becomes a leaf of the log later/],
  [
    "a hash of the log that is changed",
    () => "UPDATE log_tiles SET hashes = zeroblob(96)",
    /the log only grows/,
  ],
  ["a tile that gets no longer", () => "UPDATE log_tiles SET hashes = hashes", /the log only grows/],
  ["a tile that shrinks", () => "UPDATE log_tiles SET hashes = substr(hashes, 1, 32)", /the log only grows/],
  [
    "a tile of another level",
    () => "UPDATE log_tiles SET level = 1, hashes = hashes || hashes",
    /the log only grows/,
  ],
  [
    "a tile of another place",
    () => "UPDATE log_tiles SET tile = 1, hashes = hashes || hashes",
    /the log only grows/,
  ],
  ["a deleted tile", () => "DELETE FROM log_tiles", /the log only grows/],
  ["a replaced tile", () => `INSERT OR REPLACE ${aTile("0", "0", 64).slice(6)}`, /the log only grows/, null],
  ["a second tile of a place", () => aTile("0", "0", 32), /UNIQUE constraint failed: log_tiles/],
  ["a tile of half a hash", () => aTile("1", "0", 48), /log_tiles_hashes/],
  ["an empty tile", () => aTile("1", "0", 0), /log_tiles_hashes/],
  ["a tile of 257 hashes", () => aTile("1", "0", 257 * 32), /log_tiles_hashes/],
  ["a tile below the first", () => aTile("0", "-1", 32), /log_tiles_place/],
  ["a tile below the lowest level", () => aTile("-1", "0", 32), /log_tiles_place/],
  ["a checkpoint that leaves a number out", () => aCheckpoint("3", "2"), /a checkpoint is of a longer log/],
  ["a checkpoint of a shorter log", () => aCheckpoint("2", "1"), /a checkpoint is of a longer log/],
  ["a checkpoint of more than the log", () => aCheckpoint("2", "4"), /a checkpoint is of a longer log/],
  ["a changed checkpoint", () => "UPDATE log_checkpoints SET note = 'x'", /what was signed is kept/],
  ["a deleted checkpoint", () => "DELETE FROM log_checkpoints", /what was signed is kept/],
];

export const WRONG: readonly Wrong[] = [
  ...MONEY,
  ...PAYOUTS,
  ...WARRANTS,
  ...HISTORY,
  ...LIMITS,
  ...PURCHASES,
  ...TWICE,
  ...SHAPES,
  ...LOG,
  ...CHAINS,
  ...RAILS,
  ...WRONG_TRANSFERS,
];

export const ALL_BEHIND: readonly Behind[] = [...BEHIND, ...BEHIND_TRANSFERS];
