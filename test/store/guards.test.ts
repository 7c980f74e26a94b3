import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { cpSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { hashJson } from "../../src/core/canonical.ts";
import { AMOUNT_MAX } from "../../src/core/money.ts";
import { BUILT_IN_RULES_HASH } from "../../src/core/policy.ts";
import { deposit, hold, type Legs, settle } from "../../src/core/postings.ts";
import type { SpendSession } from "../../src/core/session.ts";
import { decide, openingOf, type Warrant } from "../../src/core/warrant.ts";
import { MACHINE } from "../../src/services/admin/authority.ts";
import { createSession } from "../../src/services/admin/sessions.ts";
import { changeOf } from "../../src/services/transition.ts";
import type { Change, Put } from "../../src/store/change.ts";
import type { From } from "../../src/store/needs.ts";
import type { Posting } from "../../src/store/rows.ts";
import type { Scope } from "../../src/store/scope.ts";
import { type Connection, openLedger } from "../../src/store/sqlite/open.ts";
import { createTestContext, type TestContext } from "../support/context.ts";
import { buildGoodLedger } from "../support/good-ledger.ts";
import {
  createCaller,
  createStage,
  must,
  open,
  SCRIPTED,
  type Stage,
  settle as settleByPerson,
  warrantIn,
} from "../support/stage.ts";

/** What a table says to raw SQL, with every guard in place. */
describe("raw SQL of a buggy caller", () => {
  let folder: string;
  let ledger: Connection;

  beforeAll(async () => {
    const ctx = createTestContext(SCRIPTED);
    await buildGoodLedger(ctx);
    await ctx.store.close();
    folder = mkdtempSync(join(tmpdir(), "holdfast-guards-"));
    cpSync(ctx.folder, folder, { recursive: true });
    rmSync(ctx.folder, { recursive: true });
    ledger = openLedger(folder, () => ({ id: "ins_none", createdAt: 0 }));
    ledger.raw.run("PRAGMA synchronous = OFF");
    // A warrant without its hold: what is refused of a posting for it is refused for one reason.
    ledger.raw.run(warrant({ id: "'wrt_bare'" }));
    for (const phase of ["held", "signed", "answered", "ended"])
      ledger.raw.run(purchase({ phase: `'${phase}'` }));
    const aPerson = "FROM users LIMIT 1";
    ledger.raw.run(`INSERT INTO password_resets SELECT 'used', id, 0, 2, 1 ${aPerson}`);
    ledger.raw.run(
      `INSERT INTO users SELECT 'usr_other', organisation_id, 'other@example.com', name, role, '', NULL, NULL, 0 ${aPerson}`,
    );
    ledger.raw.run(
      `INSERT INTO passkeys SELECT 'passkey', organisation_id, id, 'x', '', 0, '[]', 1, 0, NULL FROM users WHERE id <> 'usr_other' LIMIT 1`,
    );
    ledger.raw.run(
      `INSERT INTO passkey_approvals SELECT 'used', id, 'passkey', 'wrt_bare', 1, 'release', NULL, '{}', 0, 2, 1 ${aPerson}`,
    );
  });

  afterAll(() => {
    ledger.raw.close();
    rmSync(folder, { recursive: true });
  });

  /** Every row of every table. */
  function everything(): string {
    const { raw } = ledger;
    const tables = raw
      .query<{ name: string }, []>("SELECT name FROM sqlite_master WHERE type = 'table'")
      .all();
    return tables
      .map(({ name }) => JSON.stringify(raw.query(`SELECT * FROM ${name}`).values().map(String)))
      .join("\n");
  }

  const one = (state: string) =>
    `(SELECT id FROM warrants WHERE state = '${state}' AND mode = 'live' LIMIT 1)`;

  type Legs4 = readonly [available: bigint, held: bigint, paid: bigint, funding: bigint];
  /** A posting as `INSERT … SELECT` from the warrant or deposit that it is for, one value changed. */
  const posting = (
    from: string,
    legs: Legs4 | readonly string[],
    wrong: Record<string, string> = {},
  ): string => {
    const isWarrant = from.startsWith("warrants");
    const values = {
      id: "NULL",
      organisation_id: "organisation_id",
      mode: "mode",
      rail: "mode || '_book'",
      asset: "asset",
      warrant_id: isWarrant ? "id" : "NULL",
      deposit_id: isWarrant ? "NULL" : "id",
      available: legs[0],
      held: legs[1],
      paid: legs[2],
      funding: legs[3],
      payee: "NULL",
      recorded_at: "0",
      ...wrong,
    };
    return `INSERT INTO postings (${Object.keys(values).join(", ")}) SELECT ${Object.values(values).join(", ")} FROM ${from}`;
  };
  const held = `warrants WHERE id = ${one("held")}`;
  const bare = "warrants WHERE id = 'wrt_bare'";
  const released = `warrants WHERE id = ${one("released")}`;
  const aDeposit = "deposits WHERE reference = 'second'";
  const holding = ["-amount", "amount", "0", "0"] as const;
  const paying = ["0", "-amount", "amount", "0"] as const;
  const refunding = ["amount", "-amount", "0", "0"] as const;
  const funding = ["amount", "0", "0", "-amount"] as const;

  /** A warrant like one that is there, with some columns changed. */
  const warrant = (columns: Record<string, string>, verb = "INSERT"): string => {
    const names = ledger.raw
      .query<{ name: string }, []>("SELECT name FROM pragma_table_info('warrants')")
      .all()
      .map(({ name }) => name);
    const values = names.map((name) => columns[name] ?? (name === "id" ? "'wrt_new'" : name));
    return `${verb} INTO warrants SELECT ${values.join(", ")} FROM ${held}`;
  };

  const MONEY: readonly [string, () => string, RegExp][] = [
    [
      "a negative balance",
      () => "UPDATE balances SET available = -1, funding = 1 - held - paid",
      /balances_not_negative/,
    ],
    ["an unbalanced balance", () => "UPDATE balances SET available = available + 1", /balances_sum_to_zero/],
    [
      "a balance above 2^63",
      () => `UPDATE balances SET available = ${AMOUNT_MAX}, funding = -${AMOUNT_MAX} - held - paid`,
      /balances_/,
    ],
    [
      "a balance of half a unit",
      () => "UPDATE balances SET available = available + 0.5, funding = funding - 0.5",
      /balances_integers/,
    ],
    [
      "an unbalanced posting",
      () => posting(aDeposit, ["amount", "0", "0", "1 - amount"]),
      /postings_sum_to_zero/,
    ],
    [
      "a posting of half a unit",
      () => posting(bare, ["-amount - 0.5", "amount + 0.5", "0", "0"]),
      /holds its warrant's amount/,
    ],
    [
      "a sandbox posting on a live rail",
      () => posting("warrants WHERE mode = 'sandbox'", paying, { rail: "'live_book'" }),
      /postings_rail_of_mode|held once/,
    ],
    [
      "a deposit of the sandbox on a live rail",
      () => posting(aDeposit, funding, { rail: "'sandbox_book'" }),
      /postings_rail_of_mode/,
    ],
    [
      "a posting in another mode than its warrant's",
      () => posting(bare, holding, { mode: "'sandbox'", rail: "'sandbox_book'" }),
      /same organisation, mode and asset/,
    ],
    [
      "a posting of another organisation than its warrant's",
      () =>
        posting(bare, holding, {
          organisation_id: "(SELECT organisation_id FROM warrants WHERE mode = 'sandbox')",
        }),
      /same organisation, mode and asset/,
    ],
    [
      "a posting of another asset than its warrant's",
      () => posting(bare, holding, { asset: "'HUGE'" }),
      /same organisation, mode and asset/,
    ],
    [
      "a posting for no warrant at all",
      () => posting(bare, holding, { warrant_id: "'wrt_none'" }),
      /same organisation, mode and asset/,
    ],
    [
      "a posting without a cause",
      () => posting(bare, holding, { warrant_id: "NULL" }),
      /postings_of_one_cause/,
    ],
    [
      "a posting with two causes",
      () => posting(bare, holding, { deposit_id: `(SELECT id FROM ${aDeposit})` }),
      /postings_of_one_cause|deposit/,
    ],
    [
      "money for a warrant out of nothing",
      () => posting(bare, ["0", "amount", "0", "-amount"]),
      /postings_deposit_funds/,
    ],
    ["a second hold", () => posting(held, holding), /held once and settled once/],
    [
      "a settlement of what is not settled",
      () => posting(bare, refunding),
      /holds its warrant's amount, or settles it/,
    ],
    [
      "a second settlement",
      () => posting(released, paying, { payee: "payee" }),
      /held once and settled once/,
    ],
    ["a second hold of what is settled", () => posting(released, holding), /held once/],
    [
      "a second posting of a deposit",
      () => posting(aDeposit, funding),
      /UNIQUE constraint failed: postings.deposit_id/,
    ],
    [
      "a deposit that is held at once",
      () => posting(aDeposit, ["amount", "1", "0", "-amount - 1"]),
      /same organisation, mode, asset and amount/,
    ],
    [
      "a posting of more than its deposit",
      () => posting(aDeposit, ["amount + 1", "0", "0", "-amount - 1"]),
      /same organisation, mode, asset and amount/,
    ],
    ["a payment to nobody", () => posting(bare, paying), /postings_paid_to_somebody|settles it/],
    [
      "a payee of nothing",
      () => posting(aDeposit, funding, { payee: "'acme'" }),
      /postings_paid_to_somebody/,
    ],
    [
      "a changed posting",
      () => "UPDATE postings SET payee = 'mallory' WHERE paid > 0",
      /postings are append-only/,
    ],
    ["a deleted posting", () => "DELETE FROM postings WHERE id = 1", /postings are append-only/],
    ["a replaced posting", () => "INSERT OR REPLACE INTO postings SELECT * FROM postings WHERE id = 1", /./],
    ["a changed deposit", () => "UPDATE deposits SET amount = amount + 1", /deposits are append-only/],
    ["a deleted deposit", () => "DELETE FROM deposits", /deposits are append-only/],
    [
      "a deposit of nothing",
      () =>
        "INSERT INTO deposits SELECT 'dep_new', organisation_id, mode, asset, 0, NULL, 0 FROM deposits LIMIT 1",
      /deposits_amount/,
    ],
    [
      "a deposit in no mode",
      () =>
        "INSERT INTO deposits SELECT 'dep_new', organisation_id, 'test', asset, 1, NULL, 0 FROM deposits LIMIT 1",
      /deposits_mode/,
    ],
  ];

  const WARRANTS: readonly [string, () => string, RegExp][] = [
    ["a warrant of nothing", () => warrant({ amount: "0" }), /warrants_amount/],
    ["a warrant of less than nothing", () => warrant({ amount: "-1" }), /warrants_amount/],
    ["a warrant of 2^63", () => warrant({ amount: "9223372036854775808" }), /warrants_amount/],
    ["a warrant in no state", () => warrant({ state: "'paid'" }), /warrants_state|warrants_share/],
    ["a warrant in no mode", () => warrant({ mode: "'test'" }), /warrants_mode/],
    ["a warrant of version 0", () => warrant({ version: "0" }), /warrants_version/],
    ["a warrant of no organisation", () => warrant({ organisation_id: "'org_none'" }), /FOREIGN KEY/],
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
    ],
    ...[
      "id",
      "organisation_id",
      "mode",
      "amount",
      "asset",
      "payee",
      "spec",
      "spec_hash",
      "agent_id",
      "session_id",
      "verifier_id",
      "policy_id",
      "policy_version",
      "rules_hash",
      "deadline",
      "opened_at",
    ].map(
      (column) =>
        [
          `another ${column}`,
          () => `UPDATE warrants SET ${column} = ${column} WHERE id = ${one("held")}`,
          /the terms of a warrant are fixed/,
        ] as [string, () => string, RegExp],
    ),
  ];

  const HISTORY: readonly [string, () => string, RegExp][] = [
    ["a changed trace entry", () => "UPDATE trace SET payload = '{}'", /the trace is append-only/],
    ["a deleted trace entry", () => "DELETE FROM trace WHERE position = 1", /the trace is append-only/],
    [
      "a replaced trace entry",
      () => "INSERT OR REPLACE INTO trace SELECT * FROM trace WHERE position = 1",
      /the trace is append-only/,
    ],
    [
      "two entries of one sequence",
      () =>
        "INSERT INTO trace SELECT NULL, warrant_id, sequence, from_state, to_state, actor_kind, actor_id, recorded_at, payload, payload_hash, rules_hash, previous, entry_hash, event_id, event_type FROM trace WHERE position = 1",
      /UNIQUE constraint failed: trace/,
    ],
    [
      "a system with a name",
      () =>
        "INSERT INTO trace SELECT NULL, 'wrt_x', 0, NULL, 'held', 'system', 'x', 0, '', '', '', NULL, '', NULL, NULL",
      /trace_actor/,
    ],
    [
      "half an event",
      () =>
        "INSERT INTO trace SELECT NULL, 'wrt_x', 0, NULL, 'held', 'system', NULL, 0, '', '', '', NULL, '', 'evt_x', NULL",
      /trace_event/,
    ],
    [
      "an opening with a state before it",
      () =>
        "INSERT INTO trace SELECT NULL, 'wrt_x', 0, 'held', 'held', 'system', NULL, 0, '', '', '', NULL, '', NULL, NULL",
      /trace_opening/,
    ],
    [
      "a second entry without a link",
      () =>
        "INSERT INTO trace SELECT NULL, 'wrt_x', 1, 'held', 'held', 'system', NULL, 0, '', '', '', NULL, '', NULL, NULL",
      /trace_opening/,
    ],
    ["a changed check", () => "UPDATE checks SET score = 10000", /checks are append-only/],
    ["a deleted check", () => "DELETE FROM checks", /checks are append-only/],
    ["a changed policy", () => "UPDATE policies SET rules = '{}'", /a policy version is never edited/],
    ["a deleted policy", () => "DELETE FROM policies", /policies are kept/],
    [
      "a replaced policy",
      () =>
        "INSERT OR REPLACE INTO policies SELECT position, id, organisation_id, agent_id, name, version, '{}', rules_hash, created_at FROM policies",
      /policies are kept/,
    ],
    [
      "a policy version twice",
      () =>
        "INSERT INTO policies SELECT NULL, 'pol_new', organisation_id, agent_id, name, version, rules, rules_hash, created_at FROM policies WHERE agent_id IS NOT NULL",
      /UNIQUE constraint failed: policies.agent_id/,
    ],
    ["a changed schema", () => "UPDATE schemas SET schema = 'true'", /a named schema is immutable/],
    ["a deleted schema", () => "DELETE FROM schemas", /named schemas are kept/],
    [
      "a changed entry of the audit log",
      () => "UPDATE admin_acts SET action = 'user.created'",
      /the audit log is append-only/,
    ],
    ["a deleted entry of the audit log", () => "DELETE FROM admin_acts", /the audit log is append-only/],
    [
      "a replaced entry of the audit log",
      () =>
        "INSERT OR REPLACE INTO admin_acts SELECT id, organisation_id, actor_kind, actor_id, action, 'other', NULL, NULL, 0 FROM admin_acts",
      /the audit log is append-only/,
    ],
    [
      "a machine with a name in the audit log",
      () =>
        "INSERT INTO admin_acts SELECT 'act_new', organisation_id, 'machine', 'usr_x', action, subject, NULL, NULL, 0 FROM admin_acts LIMIT 1",
      /admin_acts_actor/,
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
        "INSERT INTO schemas SELECT 'sch_new', organisation_id, name, schema, schema_hash, created_at FROM schemas",
      /UNIQUE constraint failed: schemas/,
    ],
  ];

  const LIMITS: readonly [string, () => string, RegExp][] = [
    [
      "an agent in no mode",
      () =>
        "INSERT INTO agents SELECT 'agt_new', organisation_id, 'test', name, identity, status, 1, 0, 0, 0 FROM agents LIMIT 1",
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
      () => "INSERT INTO auth_sessions SELECT 'h', id, 'test', 0, 0 FROM users LIMIT 1",
      /auth_sessions_mode/,
    ],
    [
      "a saved clause of a ninth kind",
      () =>
        "INSERT INTO verifiers SELECT 'vrf_new', id, 'shell.exec', 'x', '{}', 0 FROM organisations LIMIT 1",
      /verifiers_type/,
    ],
    [
      "an organisation's policy version twice",
      () =>
        "INSERT INTO policies SELECT NULL, 'pol_new', organisation_id, agent_id, name, version, rules, rules_hash, 0 FROM policies WHERE agent_id IS NULL",
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
      () => "INSERT INTO spend_sessions SELECT NULL, 'ses_new', 'agt_none', 1, 0, NULL, 0, 1, 0, 0, NULL, 0",
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
        `INSERT INTO escalations SELECT 'esc_new', organisation_id, mode, warrant_id, check_id, score, reason_codes, 'open', NULL, NULL, NULL, NULL, NULL, 0, NULL FROM escalations WHERE warrant_id = ${one("escalated")}`,
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
        "INSERT INTO idempotency_keys SELECT organisation_id, mode, 'half', fingerprint, NULL, 201, NULL, NULL, 0 FROM idempotency_keys LIMIT 1",
      /idempotency_keys_outcome/,
    ],
    ["a second outcome", () => "UPDATE idempotency_keys SET body = '{}'", /recorded once/],
    ["a key of another request", () => "UPDATE idempotency_keys SET fingerprint = 'other'", /one request/],
    ["a count below nothing", () => "UPDATE warrant_counts SET count = -1", /warrant_counts_not_negative/],
    [
      "a score above all",
      () =>
        `INSERT INTO checks SELECT 'chk_new', warrant_id, source_url, http_status, bytes, duration_ms, 10001, passed, reason_codes, evidence_hash, details, outcome, band_label, evaluated_at FROM checks LIMIT 1`,
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
  const changed = (set: string, phase: string) => () =>
    `UPDATE purchases SET ${set} WHERE id = 'pur_${phase}'`;
  const back = (from: string, to: string): [string, () => string, RegExp] => [
    `a purchase that goes back from ${from} to ${to}`,
    changed(`phase = '${to}', ended_at = NULL`, from),
    /a purchase does not go back/,
  ];
  const elsewhere = (mode: string, chainId: number): [string, () => string, RegExp] => [
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
    columns.flatMap((column): [string, () => string, RegExp][] => [
      [`a purchase's other ${column}`, changed(`${column} = '7'`, "signed"), problem],
      [`a purchase's ${column} taken away`, changed(`${column} = NULL`, "signed"), problem],
    ]);

  const PURCHASES: readonly [string, () => string, RegExp][] = [
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
      ["url", "method", "max_amount", "mode", "organisation_id", "created_at"],
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
    ["a deleted purchase", () => "DELETE FROM purchases WHERE id = 'pur_held'", /purchases are kept/],
  ];

  for (const [name, sql, problem] of [...MONEY, ...WARRANTS, ...HISTORY, ...LIMITS, ...PURCHASES]) {
    test(`${name} is refused`, () => {
      const before = everything();
      expect(() => ledger.raw.run(sql())).toThrow(problem);
      expect(everything()).toBe(before);
    });
  }
});

/** A wrong Change is refused alone: what is in the batch with it commits. */
describe("a wrong Change", () => {
  let ctx: TestContext;
  let stage: Stage;
  let scope: Scope;

  beforeAll(async () => {
    ctx = createTestContext(SCRIPTED);
    stage = await createStage(ctx);
    scope = { organisationId: stage.organisationId, mode: "live" };
  });
  afterAll(() => ctx.close());

  /** A Change that is made of the rows that its command reads. */
  type Wrong = {
    readonly warrantId: string | null;
    readonly agentId?: string | null;
    readonly change: (found: {
      readonly warrant: Warrant | null;
      readonly session: SpendSession | null;
    }) => Change;
  };

  const agentNeeds = (agent: string | null) => ({ agent, agentSession: { from: "agent" } as From<"agent"> });
  const write = ({ warrantId, agentId = null, change }: Wrong, of = scope) =>
    ctx.store.execute({
      scope: of,
      needs: {
        warrant: warrantId ?? "wrt_none",
        ...agentNeeds(agentId),
      },
      decide: ({ warrant, agentSession }) => ({
        answer: true,
        change: change({ warrant, session: agentSession }),
      }),
    });
  const writing = (change: Change): Wrong => ({ warrantId: null, change: () => change });

  const spec = { clauses: [{ kind: "http.status", equals: 200 }] } as const;
  const newWarrant = (amount = 100n): Warrant => ({
    id: ctx.newId("warrant"),
    organisationId: stage.organisationId,
    mode: "live",
    state: "held",
    version: 1,
    amount,
    asset: "USDC",
    releasedBps: null,
    payee: "acme",
    spec,
    specHash: hashJson(spec),
    agentId: null,
    sessionId: null,
    verifierId: null,
    policyId: null,
    policyVersion: null,
    rulesHash: BUILT_IN_RULES_HASH,
    traceHead: null,
    deadline: ctx.now() + 1,
    openedAt: ctx.now(),
    verifyingSince: null,
    settledAt: null,
  });

  const opening = (warrant: Warrant): Change =>
    changeOf(
      openingOf(warrant),
      null,
      { recordedAt: ctx.now(), webhooks: [] },
      ctx.now(),
      { actor: { kind: "user", id: "usr_x" }, eventId: ctx.newId("event"), schemaHashes: {} },
      [],
    ).change;

  const rePosted = (change: Change, wrong: (posting: Posting) => Posting): Change => ({
    put: change.put.map((put): Put => (put.kind === "posting" ? { ...put, row: wrong(put.row) } : put)),
  });
  const withPosting = (warrant: Warrant, wrong: Partial<Posting>): Wrong =>
    writing(rePosted(opening(warrant), (posting) => ({ ...posting, ...wrong })));

  const WRONG: readonly [string, (warrant: Warrant) => Wrong | Promise<Wrong>, RegExp][] = [
    [
      "an unbalanced posting",
      (warrant) => withPosting(warrant, { legs: { ...hold(100n), available: -99n } }),
      /sum_to_zero/,
    ],
    [
      "a hold of more than its amount",
      (warrant) => withPosting(warrant, { legs: hold(101n) }),
      /holds its warrant's amount/,
    ],
    [
      "a hold of more than is available",
      () => writing(opening(newWarrant(1_000_001n))),
      /balances_not_negative/,
    ],
    [
      "a hold of an asset that was never funded",
      () => writing(opening({ ...newWarrant(), asset: "HUGE" })),
      /needs a balance/,
    ],
    [
      "a posting of another asset",
      (warrant) => withPosting(warrant, { asset: "HUGE" }),
      /same organisation, mode and asset/,
    ],
    [
      "a posting for another warrant",
      (warrant) => withPosting(warrant, { warrantId: "wrt_none" }),
      /same organisation/,
    ],
    ["an amount of 2^63", (warrant) => withPosting(warrant, { legs: hold(AMOUNT_MAX + 1n) }), /out of range/],
    ["a warrant of 2^63", () => writing(opening(newWarrant(AMOUNT_MAX + 1n))), /out of range/],
    [
      "a warrant without a trace",
      (warrant) => writing({ put: [{ kind: "warrant", before: null, row: warrant }] }),
      /moves with one trace entry/,
    ],
    [
      "a trace without its warrant",
      (warrant) => writing({ put: opening(warrant).put.filter(({ kind }) => kind !== "warrant") }),
      /moves with one trace entry/,
    ],
    [
      "a warrant twice",
      async (warrant) => {
        await write(writing(opening(warrant)));
        return writing(opening({ ...warrant, payee: "mallory" }));
      },
      /UNIQUE constraint failed: warrants.id/,
    ],
    [
      "a deposit that overflows the balance",
      () => writing(deposited(AMOUNT_MAX, deposit(AMOUNT_MAX))),
      /balances_/,
    ],
    [
      "a deposit that brings more than it says",
      () => writing(deposited(1n, deposit(2n))),
      /same organisation, mode, asset and amount/,
    ],
    [
      "an organisation that is not there",
      (warrant) => writing(opening({ ...warrant, organisationId: "org_none" })),
      /FOREIGN KEY/,
    ],
    [
      "a share that is not the warrant's",
      () => released((change) => rePosted(change, (posting) => ({ ...posting, legs: settle(100n, 9_999) }))),
      /settles it as the warrant says/,
    ],
    [
      "a payee that is not the warrant's",
      () => released((change) => rePosted(change, (posting) => ({ ...posting, payee: "mallory" }))),
      /settles it as the warrant says/,
    ],
    [
      "a row that changes another one than was read",
      async () => {
        const { warrantId } = await released();
        const stale = ctx.reader.warrants.find(warrantId!);
        return { warrantId, change: () => releasing(stale) };
      },
      /from another row than the one that was read/,
    ],
    [
      "a row that was not read at all",
      async () => {
        const { warrantId } = await released();
        return writing(releasing(ctx.reader.warrants.find(warrantId!)));
      },
      /from another row than the one that was read/,
    ],
    [
      "a settlement of what is settled",
      async () => {
        const wrong = await released();
        const held = ctx.reader.warrants.find(wrong.warrantId!);
        must(await settleByPerson(stage, stage.operator, wrong.warrantId!, "refund"));
        return {
          ...wrong,
          change: ({ warrant }) => ({
            put: releasing(held).put.map((put) =>
              put.kind === "warrant"
                ? { ...put, before: warrant, row: { ...put.row, version: warrant!.version + 1 } }
                : put,
            ),
          }),
        };
      },
      /a settled warrant is final/,
    ],
    [
      "a second settlement by itself",
      async () => {
        const wrong = await released();
        await write(wrong);
        const settlement = releasing({ ...ctx.reader.warrants.find(wrong.warrantId!)!, state: "held" });
        return writing({ put: settlement.put.filter(({ kind }) => kind === "posting") });
      },
      /held once and settled once/,
    ],
    [
      "a session spent over its ceiling",
      async () => {
        const { agentId } = await createCaller(stage);
        must(await createSession(ctx, MACHINE, { agent_id: agentId, amount_ceiling: "100" }));
        return {
          warrantId: null,
          agentId,
          change: ({ session: before }) => ({
            put: [{ kind: "spendSession", before, row: { ...before!, amountSpent: 101n } }],
          }),
        };
      },
      /spend_sessions_spent/,
    ],
    [
      "half an outcome of a key",
      () =>
        writing({
          put: [
            {
              kind: "idempotencyKey",
              before: null,
              row: {
                ...scope,
                key: "half",
                fingerprint: "f",
                holder: null,
                outcome: { status: 201, body: null as never, contentHash: null },
                createdAt: 0,
              },
            },
          ],
        }),
      /idempotency_keys_outcome/,
    ],
    [
      "a key in flight that nobody holds",
      () =>
        writing({
          put: [
            {
              kind: "idempotencyKey",
              before: null,
              row: { ...scope, key: "lost", fingerprint: "f", holder: null, outcome: null, createdAt: 0 },
            },
          ],
        }),
      /idempotency_keys_holder/,
    ],
  ];

  function deposited(amount: bigint, legs: Legs): Change {
    const id = ctx.newId("deposit");
    const row = { id, ...scope, asset: "USDC", amount, reference: null, createdAt: 0 };
    return {
      put: [
        { kind: "deposit", row },
        {
          kind: "posting",
          row: { ...scope, legs, asset: "USDC", warrantId: null, depositId: id, payee: null, recordedAt: 0 },
        },
      ],
    };
  }

  /** What releases a held warrant. */
  function releasing(before: Warrant | null): Change {
    if (!before) throw new Error("not opened");
    const time = { now: ctx.now(), recordedAt: ctx.now() };
    const transition = decide(before, { to: "released", by: "operator" }, time);
    if ("refused" in transition) throw new Error(transition.message);
    return changeOf(
      transition,
      before,
      { recordedAt: time.recordedAt, webhooks: [] },
      time.now,
      { actor: { kind: "user", id: "usr_x" }, eventId: ctx.newId("event") },
      [],
    ).change;
  }

  /** The release of a warrant that was just opened, with something wrong in it. */
  async function released(wrong: (change: Change) => Change = (change) => change): Promise<Wrong> {
    const { id } = warrantIn(await open(stage, stage.operator));
    return { warrantId: id, change: ({ warrant }) => wrong(releasing(warrant)) };
  }

  for (const [name, make, problem] of WRONG) {
    test(`${name} is refused, and its neighbours commit`, async () => {
      const [first, second, victim] = [newWarrant(), newWarrant(), newWarrant()];
      const wrong = await make(victim);
      const { warrants, trace, balances } = ctx.reader;
      const about = wrong.warrantId ?? victim.id;
      const traced = trace.of(about);
      const before = warrants.find(about);
      const [balance] = balances.list(scope);
      const answers = await Promise.allSettled([
        write(writing(opening(first))),
        write(wrong),
        write(writing(opening(second))),
      ]);
      expect(answers.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
      const refused = answers[1] as PromiseRejectedResult;
      expect(`${refused.reason} ${(refused.reason as Error).cause}`).toMatch(problem);
      // Nothing of the wrong one is there, and all of the others.
      for (const { id } of [first, second]) {
        expect(warrants.find(id)?.state).toBe("held");
        expect(trace.of(id)).toHaveLength(1);
      }
      const [after] = balances.list(scope);
      expect(after?.balance.available).toBe((balance?.balance.available ?? 0n) - 200n);
      expect(trace.of(about)).toEqual([...traced]);
      expect(warrants.find(about)).toEqual(before);
    });
  }
});
