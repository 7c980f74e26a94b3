import type { Database } from "bun:sqlite";
import { expect } from "bun:test";
import { cpSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { hashJson, sha256 } from "../../src/core/canonical.ts";
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
import type { IdempotencyKey, Posting } from "../../src/store/rows.ts";
import type { Scope } from "../../src/store/scope.ts";
import { type Connection, openLedger } from "../../src/store/sqlite/open.ts";
import { createTestContext, type TestContext } from "../support/context.ts";
import { buildGoodLedger } from "../support/good-ledger.ts";
import { ALL_BEHIND, guardedRows, newTables, WRONG } from "../support/guard-cases.ts";
import { onlyEmbedded } from "../support/only-embedded.ts";
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
import { tableGuards } from "../support/table-guards.ts";

const { afterAll, beforeAll, describe, test } = onlyEmbedded(import.meta.path);

/** How the tables react to raw SQL, with every guard in place. */
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
    ledger = openLedger(folder, "0.1.0", () => ({ id: "ins_none", createdAt: 0 }));
    ledger.raw.run("PRAGMA synchronous = OFF");
    for (const sql of guardedRows()) ledger.raw.run(sql);
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

  for (const [name, sql, problem] of WRONG) {
    test(`${name} is refused`, () => {
      const before = everything();
      expect(() => ledger.raw.run(sql())).toThrow(problem);
      expect(everything()).toBe(before);
    });
  }

  /** SQLite's message on a statement in these tables as `prepare` leaves them, or empty. Nothing of it stays. */
  function messageOn(sql: string, prepare: (raw: Database) => void): string {
    const { raw } = ledger;
    raw.run("BEGIN");
    try {
      prepare(raw);
      raw.run(sql);
      return "";
    } catch (error) {
      return (error as Error).message;
    } finally {
      if (raw.inTransaction) raw.run("ROLLBACK");
    }
  }

  const without = (trigger: string) => (raw: Database) => void raw.run(`DROP TRIGGER ${trigger}`);
  for (const [name, trigger, sql, problem] of ALL_BEHIND) {
    test(`${name} is refused without ${trigger} too`, () => {
      expect(messageOn(sql(), without(trigger))).toMatch(problem);
    });
  }

  type Refused = {
    readonly sql: string;
    readonly problem: RegExp;
    readonly prepare: (raw: Database) => void;
    readonly message: string;
  };
  let refusedOnes: readonly Refused[] | null = null;
  const refused = (): readonly Refused[] => {
    refusedOnes ??= [
      ...WRONG.map(([, sql, problem]) => ({ sql: sql(), problem, prepare: () => {} })),
      ...ALL_BEHIND.map(([, trigger, sql, problem]) => ({
        sql: sql(),
        problem,
        prepare: without(trigger),
      })),
    ].map((one) => ({ ...one, message: messageOn(one.sql, one.prepare) }));
    return refusedOnes;
  };

  for (const guard of tableGuards(newTables())) {
    test(`one of these tests fails without ${guard.name}`, () => {
      const meets = refused().filter(({ message }) => guard.refusedWith(message));
      expect(meets.length).toBeGreaterThan(0);
      const { remove } = guard;
      if (remove === null) return;
      const failing = meets.filter(({ sql, problem, prepare }) => {
        const message = messageOn(sql, (raw) => {
          prepare(raw);
          remove(raw);
        });
        return !problem.test(message);
      });
      expect(failing.length).toBeGreaterThan(0);
    });
  }
});

/** A wrong Change is refused alone: the rest of its batch commits. */
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
    /** An Idempotency-Key that is there, and must be there afterwards. */
    readonly key?: string;
    readonly change: (found: {
      readonly warrant: Warrant | null;
      readonly session: SpendSession | null;
      readonly key: IdempotencyKey | null;
    }) => Change;
  };

  const agentNeeds = (agent: string | null) => ({ agent, agentSession: { from: "agent" } as From<"agent"> });
  const write = ({ warrantId, agentId = null, key = "none", change }: Wrong, of = scope) =>
    ctx.store.execute({
      scope: of,
      needs: {
        warrant: warrantId ?? "wrt_none",
        ...agentNeeds(agentId),
        idempotencyKey: key,
      },
      decide: ({ warrant, agentSession, idempotencyKey }) => ({
        answer: true,
        change: change({ warrant, session: agentSession, key: idempotencyKey }),
      }),
    });
  const keyOf = (key: string) =>
    ctx.store.execute({
      scope,
      needs: { idempotencyKey: key },
      decide: ({ idempotencyKey }) => ({ answer: idempotencyKey }),
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
    openedBy: null,
    sessionId: null,
    verifierId: null,
    policyId: null,
    policyVersion: null,
    rulesHash: BUILT_IN_RULES_HASH,
    traceHead: null,
    deadline: ctx.now() + 1,
    openedAt: ctx.now(),
    verifyingSince: null,
    graceUntil: null,
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
      /a hold is the amount of a warrant/,
    ],
    [
      "a hold of more than is available",
      () => writing(opening(newWarrant(1_000_001n))),
      /accounts_not_negative/,
    ],
    [
      "a hold of an asset that was never funded",
      () => writing(opening({ ...newWarrant(), asset: "HUGE" })),
      /there is no account of HUGE to hold/,
    ],
    [
      "a posting of another asset",
      (warrant) => withPosting(warrant, { asset: "HUGE" }),
      /needs an account of HUGE/,
    ],
    [
      "a posting for another warrant",
      (warrant) => withPosting(warrant, { causeId: "wrt_none" }),
      /the ledger has no warrant wrt_none/,
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
      /accounts_|integer|out of range|sum of its postings/,
    ],
    [
      "a deposit that brings more than it says",
      () => writing(deposited(1n, deposit(2n))),
      /brings the amount of a deposit of the same account/,
    ],
    [
      "an organisation that is not there",
      (warrant) => writing(opening({ ...warrant, organisationId: "org_none" })),
      /the ledger has no scope org_none live/,
    ],
    [
      "a share that is not the warrant's",
      () => released((change) => rePosted(change, (posting) => ({ ...posting, legs: settle(100n, 9_999) }))),
      /a settlement is what its warrant says/,
    ],
    [
      "a settlement that is called a hold",
      () => released((change) => rePosted(change, (posting) => ({ ...posting, kind: "hold" }))),
      /UNIQUE constraint failed: postings/,
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
      "a deletion of another row than was read",
      async () => {
        const row = await usedKey("another");
        return { warrantId: null, key: row.key, change: () => deleting({ ...row }) };
      },
      /from another row than the one that was read/,
    ],
    [
      "a deletion of a row that has changed since it was read",
      async () => {
        const row = await usedKey("changed");
        const changed = { ...row, fingerprint: sha256("g") };
        return {
          warrantId: null,
          key: row.key,
          change: ({ key }) => ({
            put: [{ kind: "idempotencyKey", before: key, row: changed }],
            deleted: [{ kind: "idempotencyKey", row: key! }],
          }),
        };
      },
      /from another row than the one that was read/,
    ],
    [
      "a deletion of a row that was not read at all",
      async () => {
        const row = await usedKey("unread");
        return writing(deleting(row));
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
      /UNIQUE constraint failed: postings/,
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
                fingerprint: sha256("f"),
                holder: null,
                outcome: { kind: "body", status: 201, body: null as never, contentHash: null },
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
              row: {
                ...scope,
                key: "lost",
                fingerprint: sha256("f"),
                holder: null,
                outcome: null,
                createdAt: 0,
              },
            },
          ],
        }),
      /idempotency_keys_holder/,
    ],
  ];

  /** A key under which a request was answered. */
  async function usedKey(key: string): Promise<IdempotencyKey> {
    const outcome = { kind: "body", status: 200, body: "{}", contentHash: null } as const;
    const row = { ...scope, key, fingerprint: sha256("f"), holder: null, outcome, createdAt: 0 };
    await write(writing({ put: [{ kind: "idempotencyKey", before: null, row }] }));
    return row;
  }

  const deleting = (row: IdempotencyKey): Change => ({ put: [], deleted: [{ kind: "idempotencyKey", row }] });

  function deposited(amount: bigint, legs: Legs): Change {
    const id = ctx.newId("deposit");
    const row = { id, ...scope, asset: "USDC", amount, reference: null, createdAt: 0 };
    return {
      put: [
        { kind: "deposit", row },
        {
          kind: "posting",
          row: { ...scope, legs, asset: "USDC", kind: "deposit", causeId: id, payee: null, recordedAt: 0 },
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
      // Nothing of the wrong Change is stored, and all of the others is.
      for (const { id } of [first, second]) {
        expect(warrants.find(id)?.state).toBe("held");
        expect(trace.of(id)).toHaveLength(1);
      }
      const [after] = balances.list(scope);
      expect(after?.balance.available).toBe((balance?.balance.available ?? 0n) - 200n);
      expect(trace.of(about)).toEqual([...traced]);
      expect(warrants.find(about)).toEqual(before);
      if (wrong.key) expect(await keyOf(wrong.key)).toMatchObject({ fingerprint: sha256("f") });
    });
  }
});
