/** The engine on PostgreSQL, with one and with two instances of the service on one ledger: no move is lost, doubled or stuck. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import type { SQL } from "bun";
import { resultOf } from "../../src/core/clauses/evaluate.ts";
import { evidenceHashOf, summarise } from "../../src/core/clauses/evidence.ts";
import { isRefusal, type Refusal } from "../../src/core/errors.ts";
import type { KeyCaller } from "../../src/core/roles.ts";
import { MACHINE } from "../../src/services/admin/authority.ts";
import { fundBalance } from "../../src/services/admin/balances.ts";
import { markPaid, submitPayouts } from "../../src/services/admin/payouts.ts";
import { createSession } from "../../src/services/admin/sessions.ts";
import { createUser } from "../../src/services/admin/users.ts";
import type { Answer } from "../../src/services/idempotency.ts";
import { payForUrl } from "../../src/services/x402/pay.ts";
import type { Put } from "../../src/store/change.ts";
import type { Statement } from "../../src/store/postgres/client.ts";
import { createWriteBuffer } from "../../src/store/postgres/write-buffer.ts";
import type { SqlValue } from "../../src/store/sql/database.ts";
import { deletionOfUnkept } from "../../src/store/sql/kept-bodies.ts";
import { newCapsules } from "../support/context.ts";
import { asksExactOnBase, delivers, givesAway, openMarket, SELLER_URL } from "../support/market.ts";
import { type Postgres, startPostgres } from "../support/postgres-server.ts";
import {
  ALL_PASS,
  codeOf,
  createCaller,
  createStage,
  fresh,
  idempotencyOf,
  NONE_PASS,
  open,
  SCRIPTED,
  type Stage,
  settle,
  verify,
  warrantIn,
} from "../support/stage.ts";
import { until } from "../support/until.ts";
import { createConnections, through } from "./connections.ts";
import {
  type Instance,
  inOneBatch,
  lockOf,
  lockOutside,
  openInstance,
  waitingForLocks,
} from "./store-context.ts";

setDefaultTimeout(120_000);
const TOGETHER = 64;
const ROUND_TRIPS_MAX = 6;

let postgres: Postgres;
let one: Instance;
let other: Instance;
let sql: SQL;
let url: string;
let stage: Stage;
const { closing, connectTo, newProxy, closeAll } = createConnections(() => postgres.port);

beforeAll(async () => {
  postgres = await startPostgres();
  url = await postgres.createDatabase();
  [one, other] = [await instanceOf(url), await instanceOf(url)];
  sql = connectTo(url, { max: 4 });
  stage = await createStage(one.ctx, { funds: "100000000" });
});
afterAll(async () => {
  await closeAll();
  await postgres.close();
});

async function instanceOf(url: string, overrides = {}): Promise<Instance> {
  const instance = await openInstance(url, overrides);
  closing.push(instance.close);
  return instance;
}

/** The same organisation, as the other instance sees it. */
const atOther = (of: Stage): Stage => ({ ...of, ctx: other.ctx });

const valuesOf = <Value>(settled: readonly PromiseSettledResult<Value>[]): Value[] =>
  settled.map((result) => {
    if (result.status === "rejected") throw result.reason;
    return result.value;
  });

const counted = async (text: string): Promise<number> => Number((await sql.unsafe(text))[0].count);

/** Everything that follows from something else, and does not agree with it. */
async function disagreements(): Promise<unknown[]> {
  const queries = [
    `SELECT position FROM accounts WHERE (available, held, paid, payable, submitted) IS DISTINCT FROM (
      SELECT (coalesce(sum(available), 0)::int8, coalesce(sum(held), 0)::int8, coalesce(sum(paid), 0)::int8, coalesce(sum(payable), 0)::int8,
        coalesce(sum(submitted), 0)::int8) FROM postings WHERE account = accounts.position)`,
    "SELECT position FROM accounts WHERE available < 0 OR held < 0 OR payable < 0 OR submitted < 0",
    `SELECT a.position FROM accounts a WHERE posted <> (SELECT coalesce(max(position), 0) FROM postings WHERE account = a.position)`,
    `SELECT * FROM warrant_counts c WHERE count <> (
      SELECT count(*) FROM warrants w WHERE w.scope = c.scope AND coalesce(w.agent, 0) = c.agent AND w.state = c.state)`,
    `SELECT w.id FROM warrants w WHERE NOT EXISTS (
      SELECT 1 FROM warrant_counts c WHERE w.scope = c.scope AND coalesce(w.agent, 0) = c.agent AND w.state = c.state)`,
    "SELECT w.id FROM warrants w WHERE version <> (SELECT count(*) FROM trace WHERE warrant = w.position)",
    `SELECT w.id FROM warrants w WHERE (SELECT count(*) FROM postings WHERE cause = w.position AND kind = 'hold') <> 1
      OR (SELECT count(*) FROM postings WHERE cause = w.position AND kind = 'settlement') <> (settled_at IS NOT NULL)::int`,
    `SELECT * FROM (
      SELECT t.position, t.recorded_at, lag(t.recorded_at) OVER (PARTITION BY w.scope ORDER BY t.position) AS earlier
      FROM trace t JOIN warrants w ON w.position = t.warrant) AS entries WHERE recorded_at < earlier`,
    `SELECT session FROM warrants WHERE session IS NOT NULL AND NOT EXISTS (
      SELECT 1 FROM spend_sessions s WHERE s.position = warrants.session)`,
  ];
  const found = await Promise.all(queries.map(async (text) => [...(await sql.unsafe(text))]));
  return found.flat();
}

/** A proxy, and an instance behind it. */
async function proxied(overrides = {}) {
  const proxy = await newProxy();
  return { proxy, instance: await instanceOf(through(proxy, url), overrides) };
}

/** What the batch of verbs that are started together costs until it is committed, and the batches that follow it. */
async function costsOf(
  { instance: { store }, instance, proxy }: Awaited<ReturnType<typeof proxied>>,
  starts: readonly (() => Promise<unknown>)[],
  { each = 1, batches = 1 } = {},
) {
  const now = () => ({ roundTrips: proxy.roundTrips, commands: store.figures().commands });
  const marks: ReturnType<typeof now>[] = [];
  const onBegin = () => {
    marks.push(now());
    const end = store.watch(() => {
      marks.push(now());
      if (marks.length > batches) end();
    });
  };
  // What is kept of rows that every command needs, such as policies, has to be read too: another instance has changed them.
  await sql`UPDATE scopes SET revision = revision + 1`;
  const settled = await inOneBatch(instance, sql, stage.organisationId, starts, { each, onBegin });
  const costs = Array.from({ length: batches }, (_, at) => {
    const [before, after] = [marks[at] ?? now(), marks[at + 1] ?? now()];
    return {
      roundTrips: after.roundTrips - before.roundTrips,
      commands: after.commands - before.commands,
    };
  });
  return { costs, answers: valuesOf(settled) };
}

const times = <Result>(work: (at: number) => Promise<Result>) =>
  Array.from({ length: TOGETHER }, (_, at) => () => work(at));

const LOOKS_MAX = 4;
type Cost = Awaited<ReturnType<typeof costsOf>>["costs"][number];

/** Looks at what batches of 64 commands cost, by what these do: at most 6 round trips each. */
async function expectFewRoundTrips(look: () => Promise<Readonly<Record<string, Cost | undefined>>>) {
  // What a connection has not prepared yet costs a round trip of its own.
  await look();
  // Once a second the store asks what others have committed, by the same proxy. So one of several looks is enough.
  const found = { ...(await look()) };
  const isDear = (cost: Cost | undefined) => (cost?.roundTrips ?? 0) > ROUND_TRIPS_MAX;
  for (let looks = 1; looks < LOOKS_MAX && Object.values(found).some(isDear); looks++) {
    for (const [verb, cost] of Object.entries(await look())) if (isDear(found[verb])) found[verb] = cost;
  }
  const shown = Object.entries(found).map(([verb, cost]) => ({
    verb,
    commands: cost?.commands,
    isCheap: !isDear(cost) || cost?.roundTrips,
  }));
  expect(shown).toEqual(
    Object.keys(found).map((verb) => ({ verb, commands: TOGETHER, isCheap: true as const })),
  );
}

/** Holds up what many verbs do at once, until all of them do it. */
function createGate() {
  let opened = Promise.withResolvers<void>();
  let waiting = 0;
  return {
    async pass(): Promise<void> {
      waiting += 1;
      await opened.promise;
    },
    close(): void {
      opened = Promise.withResolvers();
      waiting = 0;
    },
    open: () => opened.resolve(),
    isFull: () => waiting === TOGETHER,
  };
}

test("a batch of 64 commands takes at most 6 round trips", async () => {
  const judging = createGate();
  const evaluate: Instance["ctx"]["evaluate"] = async (asked) => {
    await judging.pass();
    return SCRIPTED.evaluate(asked);
  };
  const capsules = { ...newCapsules() };
  const parts = await proxied({ evaluate, capsules });
  const here = { ...stage, ctx: { ...parts.instance.ctx } };
  const caller = await createCaller(stage);
  const opening = times(() => open(here, caller));
  const idsIn = (answers: readonly unknown[]) => answers.map((answer) => warrantIn(answer as Answer).id);
  const costsOfChecks = async (ids: readonly string[]) => {
    judging.close();
    const verified = ids.map((id) => verify(here, caller, id));
    await until("all checks are judged", judging.isFull);
    const end = () => {
      judging.open();
      return Promise.all(verified);
    };
    const { costs } = await costsOf(parts, [end], { each: TOGETHER, batches: 2 });
    expect(new Set((await Promise.all(verified)).map(codeOf))).toEqual(new Set([200]));
    return costs;
  };
  const opened = async () => idsIn(await Promise.all(opening.map((start) => start())));
  const keptBytes = `SELECT coalesce(sum(bytes), 0) AS count FROM capsules WHERE organisation_id = '${stage.organisationId}'`;
  await expectFewRoundTrips(async () => {
    const { costs, answers } = await costsOf(parts, opening);
    capsules.bytesMax = Number.MAX_SAFE_INTEGER;
    const [kept, ended] = await costsOfChecks(idsIn(answers));
    // From now on each capsule replaces the oldest one.
    capsules.bytesMax = await counted(keptBytes);
    const [replaced, endedThen] = await costsOfChecks(await opened());
    expect(await counted(keptBytes)).toBe(capsules.bytesMax);
    const ids = await opened();
    const decisions = ["release", "refund"] as const;
    const settling = times((at) =>
      settle(here, stage.owner, ids[at] as string, decisions[at % 2] as "refund"),
    );
    const [settled] = (await costsOf(parts, settling)).costs;
    return { opened: costs[0], kept, ended, replaced, endedThen, settled };
  });
});

test("so does each batch of 64 purchases", async () => {
  const [asking, paying, judging] = [createGate(), createGate(), createGate()];
  const gates = [asking, paying, judging];
  const market = openMarket();
  const x402 = {
    ...market.x402,
    async ask(...asked: Parameters<typeof market.x402.ask>) {
      await asking.pass();
      return market.x402.ask(...asked);
    },
  };
  market.paid = async () => {
    await paying.pass();
    return delivers({});
  };
  const evaluate: Instance["ctx"]["evaluate"] = async (asked) => {
    await judging.pass();
    const details = asked.clauses.map((clause) => resultOf(clause, null));
    return summarise(details, evidenceHashOf(asked.evidence), asked.now);
  };
  const parts = await proxied({ evaluate, x402 });
  const { ctx } = parts.instance;
  market.balance = 10n ** 12n;
  market.blockTime = ctx.now();
  market.findings = ["used"];
  const caller = await createCaller(stage, { failure_budget: 1_000 });
  const order = { max_amount: "100", spec: { clauses: [{ kind: "http.status", equals: 200 }] } };
  const buy = (at: number) =>
    payForUrl(ctx, caller, { ...order, url: `${SELLER_URL}/${at}` }, idempotencyOf());
  const bought = async () => {
    for (const gate of gates) gate.close();
    const buying: ReturnType<typeof buy>[] = [];
    const until64 = (gate: typeof asking) => until("all of them wait", gate.isFull);
    const begin = async () => {
      for (let at = 0; at < TOGETHER; at++) buying.push(buy(at));
      await until64(asking);
    };
    const { costs: begun } = await costsOf(parts, [begin], { each: TOGETHER });
    const goOn = async (from: typeof asking, to: () => Promise<unknown>, batches: number) => {
      const start = () => {
        from.open();
        return to();
      };
      return (await costsOf(parts, [start], { each: TOGETHER, batches })).costs;
    };
    return { buying, begun, goOn, until64 };
  };
  await expectFewRoundTrips(async () => {
    market.first = asksExactOnBase("100");
    const { buying, begun, goOn, until64 } = await bought();
    const [held, signed] = await goOn(asking, () => until64(paying), 2);
    const [answered] = await goOn(paying, () => until64(judging), 1);
    const [kept, ended] = await goOn(judging, () => Promise.all(buying), 2);
    expect(new Set((await Promise.all(buying)).map(codeOf))).toEqual(new Set([200]));
    market.first = givesAway("{}");
    const free = await bought();
    const [passed] = await free.goOn(asking, () => Promise.all(free.buying), 1);
    expect(new Set((await Promise.all(free.buying)).map(codeOf))).toEqual(new Set([200]));
    return { begun: begun[0], held, signed, answered, kept, ended, passed };
  });
});

/** While an open waits for a lock, another one is answered. */
async function opensBeside(
  caller: KeyCaller,
  lock: string,
  other: () => Promise<Answer | Refusal>,
): Promise<void> {
  const letGo = await lockOutside(sql, lock);
  const held = open(stage, caller);
  await until("it waits for the lock", async () => (await waitingForLocks(sql)) > 0);
  expect(codeOf(await other())).toBe(201);
  expect(Bun.peek.status(held)).toBe("pending");
  await letGo();
  expect(codeOf(await held)).toBe(201);
}

test("two organisations commit at once on two instances", async () => {
  const second = await createStage(one.ctx);
  const callers = [await createCaller(stage), await createCaller(second)] as const;
  await opensBeside(callers[0], lockOf(stage.organisationId), () => open(atOther(second), callers[1]));
});

test("live and sandbox of one organisation commit at once on two instances", async () => {
  const sandbox = { ...stage, mode: "sandbox" } as const;
  const callers = [await createCaller(stage), await createCaller(sandbox)] as const;
  await fundBalance(one.ctx, MACHINE, {
    organisation_id: stage.organisationId,
    mode: "sandbox",
    asset: "USDC",
    amount: "1000",
    reference: fresh("reference"),
  });
  const lock = `SELECT 1 FROM scopes WHERE organisation_id = '${stage.organisationId}' AND mode = 'live' FOR UPDATE`;
  await opensBeside(callers[0], lock, () => open(atOther(sandbox), callers[1]));
});

test("a transaction that the server could not serialize is done again", async () => {
  const caller = await createCaller(stage);
  const before = one.store.figures().retries;
  // What a sequence counted stays when the transaction is undone.
  await sql.unsafe("CREATE SEQUENCE failures").simple();
  await sql
    .unsafe(
      `CREATE FUNCTION fail_once() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        IF nextval('failures') = 1 THEN RAISE EXCEPTION 'could not serialize access' USING ERRCODE = '40001'; END IF;
        RETURN NEW; END $$`,
    )
    .simple();
  await sql.unsafe(
    "CREATE TRIGGER fail_once BEFORE INSERT ON commits FOR EACH ROW EXECUTE FUNCTION fail_once()",
  );
  try {
    expect(codeOf(await open(stage, caller))).toBe(201);
    expect(one.store.figures().retries).toBe(before + 1);
  } finally {
    await sql
      .unsafe("DROP TRIGGER fail_once ON commits; DROP FUNCTION fail_once; DROP SEQUENCE failures")
      .simple();
  }
  expect(await disagreements()).toEqual([]);
});

test("batches of many organisations at two instances never wait for each other in a circle", async () => {
  const stages = await Promise.all(Array.from({ length: 12 }, () => createStage(one.ctx)));
  const callers = await Promise.all(stages.map((each) => createCaller(each)));
  const retries = () => one.store.figures().retries + other.store.figures().retries;
  const before = retries();
  for (let round = 0; round < 12; round++) {
    const { organisationId } = stages[round]!;
    const letGo = await lockOutside(
      sql,
      `SELECT 1 FROM scopes WHERE organisation_id = '${organisationId}' AND mode = 'live' FOR UPDATE`,
    );
    const opened = stages.flatMap((each, at) => [
      open(each, callers[at]!),
      open(atOther(each), callers[at]!),
    ]);
    await until("a batch of each waits", async () => (await waitingForLocks(sql)) === 2);
    await letGo();
    expect(new Set((await Promise.all(opened)).map(codeOf))).toEqual(new Set([201]));
  }
  // A deadlock would be ended by the server, and tried again.
  expect(retries()).toBe(before);
});

test("commands of all kinds share a batch, whatever their guards look at", async () => {
  const { organisationId, ctx } = stage;
  const caller = await createCaller(stage);
  const opened = await Promise.all([1, 2, 3].map(async () => warrantIn(await open(stage, caller)).id));
  const settling = (at: number) => () => settle(stage, stage.owner, opened[at] as string, "release");
  const funding = (asset: string) => () =>
    fundBalance(ctx, MACHINE, { organisation_id: organisationId, mode: "live", amount: "500", asset });
  const [asset, payee] = ["TOKEN", fresh("payee")];
  let before = 0;
  const onBegin = () => {
    before = one.store.figures().batches;
  };
  const settled = await inOneBatch<unknown>(
    one,
    sql,
    organisationId,
    [
      ...[() => open(stage, caller), settling(0), () => open(stage, caller, { payee }), settling(1)],
      ...[funding("USDC"), funding(asset), () => open(stage, caller, { asset }), settling(2)],
      () => createSession(ctx, MACHINE, { agent_id: caller.agentId, amount_ceiling: "1000" }),
      () => open(stage, stage.operator, { agent_id: caller.agentId }),
    ],
    { onBegin },
  );
  expect(valuesOf(settled).filter((value) => isRefusal(value as Answer))).toEqual([]);
  expect(one.store.figures().batches - before).toBe(1);
  expect(await disagreements()).toEqual([]);
});

test("the same Idempotency-Key at two instances is one warrant, or another fingerprint's refusal", async () => {
  const caller = await createCaller(stage);
  for (let round = 0; round < 20; round++) {
    const key = fresh("twice");
    const before = await counted("SELECT count(*) FROM warrants");
    const answers = await Promise.all([
      open(stage, caller, {}, idempotencyOf(key)),
      open(atOther(stage), caller, {}, idempotencyOf(key)),
    ]);
    expect(await counted("SELECT count(*) FROM warrants")).toBe(before + 1);
    const ids = new Set(answers.flatMap((answer) => (isRefusal(answer) ? [] : [warrantIn(answer).id])));
    expect(ids.size).toBe(1);
    for (const answer of answers)
      expect([201, "idempotency_in_flight", "idempotency_conflict"]).toContain(codeOf(answer));
    expect(codeOf(await open(atOther(stage), caller, {}, idempotencyOf(key)))).toBe(201);
    const others = await Promise.all([
      open(stage, caller, {}, idempotencyOf(key, "another")),
      open(atOther(stage), caller, {}, idempotencyOf(key, "another")),
    ]);
    expect(others.map(codeOf)).toEqual(["idempotency_key_reused", "idempotency_key_reused"]);
  }
});

/** A row of a key, as somebody inserts it who does not hold the lock of its scope. */
const claim = (key: string, organisationId: string) => `
  INSERT INTO idempotency_keys (position, scope, key, fingerprint, holder, created_at)
  SELECT nextval('positions'), position, '${key}', '\\x00', '${fresh("holder")}', 1
  FROM scopes WHERE organisation_id = '${organisationId}' AND mode = 'live'`;

test("a key that another instance claims at the same moment is idempotency_conflict, and nothing moved", async () => {
  const caller = await createCaller(stage);
  const key = fresh("claimed");
  const before = await counted("SELECT count(*) FROM postings");
  const claiming = await sql.reserve();
  await claiming`BEGIN`;
  await claiming.unsafe(claim(key, stage.organisationId)).simple();
  const [racing, free] = [open(stage, caller, {}, idempotencyOf(key)), fresh("free")];
  await until("it waits for the other's row", async () => (await waitingForLocks(sql)) > 0);
  const beside = open(stage, caller, {}, idempotencyOf(free));
  await claiming`COMMIT`;
  claiming.release();
  expect(codeOf(await racing)).toBe("idempotency_conflict");
  expect(codeOf(await beside)).toBe(201);
  expect(await counted("SELECT count(*) FROM postings")).toBe(before + 1);
  expect(codeOf(await open(stage, caller, {}, idempotencyOf(key)))).toBe("idempotency_key_reused");
});

test("what stays locked is rate_limit_exceeded, and the other organisations of its lane go on", async () => {
  const stages = [stage, ...(await Promise.all(Array.from({ length: 8 }, () => createStage(one.ctx))))];
  const callers = await Promise.all(stages.map((each) => createCaller(each)));
  const before = await counted("SELECT count(*) FROM postings");
  const letGo = await lockOutside(sql, lockOf(stage.organisationId));
  const begunAt = performance.now();
  const locked = Array.from({ length: TOGETHER }, () => open(stage, callers[0]!));
  const free = stages.slice(1).map((each, at) => open(each, callers[at + 1]!));
  expect((await Promise.all(free)).map(codeOf)).toEqual(free.map(() => 201));
  expect(new Set((await Promise.all(locked)).map(codeOf))).toEqual(new Set(["rate_limit_exceeded"]));
  expect(performance.now() - begunAt).toBeLessThan(30_000);
  await letGo();
  expect(await counted("SELECT count(*) FROM postings")).toBe(before + free.length);
  expect(codeOf(await open(stage, callers[0]!))).toBe(201);
});

test("two instances move one hot balance for some seconds, and everything adds up", async () => {
  const callers = [await createCaller(stage), await createCaller(stage)];
  const endsAt = performance.now() + 4_000;
  const codes = new Map<unknown, number>();
  const note = (value: Answer | Parameters<typeof codeOf>[0] | object) => {
    const code = isRefusal(value as Answer) || "status" in value ? codeOf(value as Answer) : "done";
    codes.set(code, (codes.get(code) ?? 0) + 1);
  };
  async function work(at: Stage, worker: number): Promise<void> {
    const { ctx, organisationId } = at;
    const { clock } = worker % 2 === 0 ? one.ctx : other.ctx;
    const caller = callers[worker % callers.length]!;
    const scope = { organisation_id: organisationId, mode: "live" } as const;
    for (let round = worker; performance.now() < endsAt; round++) {
      // Neither clock is right, and they disagree.
      clock.aheadMs = Math.round(Math.random() * 2_000);
      const opened = await open(at, caller, { payee: `payee ${round % 3}` });
      note(opened);
      if (isRefusal(opened)) continue;
      const { id } = warrantIn(opened);
      // What no person does writes nothing of the whole organisation, so both instances do it at once.
      if (performance.now() < endsAt - 2_000) continue;
      if (round % 3 === 0) note(await verify(at, caller, id, round % 2 === 0 ? ALL_PASS : NONE_PASS));
      else note(await settle(at, at.owner, id, round % 2 === 0 ? "release" : "refund"));
      if (round % 7 === 0) note(await fundBalance(ctx, MACHINE, { ...scope, amount: "10" }));
      if (round % 11 === 0) {
        const paid = await submitPayouts(ctx, MACHINE, { ...scope, asset: "USDC" });
        note(paid);
        for (const { id: payout_id } of isRefusal(paid) ? [] : paid.data) {
          if (payout_id === null) continue;
          note(await markPaid(ctx, MACHINE, { payout_id, reference: fresh("transfer") }));
        }
      }
    }
  }
  const [here, there] = [{ ...stage }, atOther(stage)];
  await Promise.all(Array.from({ length: 24 }, (_, worker) => work(worker % 2 === 0 ? here : there, worker)));
  expect(codes.get(201)).toBeGreaterThan(50);
  expect(await disagreements()).toEqual([]);
});

test("an e-mail that is taken at two instances at once is one person's", async () => {
  for (let round = 0; round < 10; round++) {
    const email = `${fresh("both")}@example.com`;
    const input = {
      organisation_id: stage.organisationId,
      email,
      password: "correct horse battery staple",
      role: "viewer",
    } as const;
    const second = await createStage(other.ctx, { funds: "0" });
    const made = await Promise.all([
      createUser(one.ctx, MACHINE, input),
      createUser(other.ctx, MACHINE, { ...input, organisation_id: second.organisationId }),
    ]);
    expect(made.map((user) => (isRefusal(user) ? user.refused : "made")).sort()).toEqual([
      "already_exists",
      "made",
    ]);
  }
});

test("transactions of a wallet get their nonces one by one, whichever instance signs", async () => {
  const wallet = { chainId: 8453, wallet: "0x00000000000000000000000000000000000000a1" };
  const next = ({ store }: Instance) =>
    store.execute({
      scope: null,
      needs: { newestTransaction: wallet },
      decide({ newestTransaction: newest, recordedAt: createdAt }) {
        const nonce = (newest?.nonce ?? -1) + 1;
        const row = {
          ...{
            ...wallet,
            nonce,
            to: "0x",
            data: "0x",
            gas: 1n,
            state: "open" as const,
            block: null,
            minedHash: null,
            createdAt,
          },
          signings: [{ hash: "0x1", raw: "0x", fees: { max: 2n, priority: 1n }, signedAtBlock: 1 }],
        } as const;
        return { answer: nonce, change: { put: [{ kind: "chainTransaction", before: null, row }] } };
      },
    });
  const nonces = await Promise.all(Array.from({ length: 20 }, (_, at) => next(at % 2 === 0 ? one : other)));
  expect(nonces.map(Number).sort((a, b) => a - b)).toEqual(nonces.map((_, at) => at));
});

test("a command that belongs to no organisation locks those that it posts into", async () => {
  const deposit = (scope: { organisationId: string; mode: "live" }, id: string, at: number) => {
    const row = { ...scope, id, asset: "USDC", amount: 7n, reference: null, createdAt: at };
    const legs = { available: 7n, held: 0n, paid: 0n, funding: -7n, payable: 0n, submitted: 0n };
    const posting = {
      ...scope,
      asset: "USDC",
      kind: "deposit",
      legs,
      causeId: id,
      payee: null,
      recordedAt: at,
    };
    return [
      { kind: "deposit", row },
      { kind: "posting", row: posting },
    ] as unknown as Put[];
  };
  const scope = { organisationId: stage.organisationId, mode: "live" } as const;
  const letGo = await lockOutside(sql, lockOf(stage.organisationId));
  const id = one.ctx.newId("deposit");
  const posted = one.store.execute({
    scope: null,
    needs: {},
    decide: ({ recordedAt }) => ({ answer: "posted", change: { put: deposit(scope, id, recordedAt) } }),
  });
  await until("it waits for the organisation", async () => (await waitingForLocks(sql)) > 0);
  await letGo();
  expect(await posted).toBe("posted");
  expect(await disagreements()).toEqual([]);
});

test("a command that throws fails alone", async () => {
  const caller = await createCaller(stage);
  const faulty = () =>
    one.store.execute({
      scope: { organisationId: stage.organisationId, mode: "live" },
      needs: {},
      decide: () => {
        throw new Error("a fault");
      },
    });
  const starts = Array.from({ length: 8 }, (_, at) => (at === 3 ? faulty : () => open(stage, caller)));
  const settled = await inOneBatch<unknown>(one, sql, stage.organisationId, starts);
  expect(settled.map(({ status }) => status)).toEqual(
    starts.map((_, at) => (at === 3 ? "rejected" : "fulfilled")),
  );
  expect(await disagreements()).toEqual([]);
});

test("a batch may write more rows than its first block has positions", async () => {
  const rows = 3_000;
  const before = await counted("SELECT count(*) FROM audit_entries");
  const { organisationId } = stage;
  await one.store.execute({
    scope: { organisationId, mode: "live" },
    needs: {},
    decide: ({ recordedAt }) => {
      const entry = {
        organisationId,
        mode: null,
        actor: { kind: "machine", id: null },
        action: "test",
        subject: "x",
      };
      const put = Array.from({ length: rows }, (_, at) => ({
        kind: "auditEntry",
        row: { ...entry, id: one.ctx.newId("auditEntry"), before: null, after: { at }, recordedAt },
      }));
      return { answer: null, change: { put: put as unknown as Put[] } };
    },
  });
  expect(await counted("SELECT count(*) FROM audit_entries")).toBe(before + rows);
  expect(await counted("SELECT count(DISTINCT rowid) FROM audit_entries")).toBe(before + rows);
});

test("a job whose locks are not free gives its connection back as it was", async () => {
  const letGo = await lockOutside(
    sql,
    "INSERT INTO locks (name) VALUES ('log') ON CONFLICT (name) DO UPDATE SET name = excluded.name",
  );
  await expect(one.store.extendLog(1)).rejects.toThrow("lock timeout");
  await letGo();
  expect(await counted("SELECT count(*) FROM pg_stat_activity WHERE state LIKE 'idle in transaction%'")).toBe(
    0,
  );
  expect(await one.store.extendLog(1)).toBe(1);
});

/** What a batch sends that relies on some contents, and gives up others, or the same ones. */
function ofContents(relied: readonly string[], givenUp: readonly string[]): readonly Statement[] {
  const rely = 'insert or rollback into "contents" ("hash", "bytes") values (?, ?) on conflict do nothing';
  const buffer = createWriteBuffer(relied.map((_, at) => lastContent - at));
  lastContent -= relied.length;
  for (const hash of relied) buffer.add(rely, [hash, new Uint8Array([1])]);
  const run = (text: string) => ({ run: (...values: SqlValue[]) => buffer.add(text, values) });
  for (const hash of givenUp) deletionOfUnkept({ prepare: run } as never)(hash);
  return buffer.take();
}
/** A position that no content has yet; nor has one below it. */
let lastContent = -1;

const send = async (connection: Pick<SQL, "unsafe">, statements: readonly Statement[]) => {
  for (const { text, params } of statements) await connection.unsafe(text, params as unknown[]);
};

test("a content is not deleted while another instance begins to rely on it", async () => {
  const isThere = async (hash: string) =>
    (await counted(`SELECT count(*) FROM contents WHERE hash = '${hash}'`)) === 1;
  const [relier, deleter] = [await sql.reserve(), await sql.reserve()];
  const isWaiting = () => until("one waits for the other", async () => (await waitingForLocks(sql)) > 0);

  await send(sql, ofContents(["first"], []));
  await deleter`BEGIN`;
  await send(deleter, ofContents([], ["first"]));
  const relied = send(relier, ofContents(["first"], []));
  await isWaiting();
  await deleter`COMMIT`;
  await relied;
  expect(await isThere("first")).toBe(true);

  await relier`BEGIN`;
  await send(relier, ofContents(["first"], []));
  const deleted = send(deleter, ofContents([], ["first"]));
  await isWaiting();
  await relier`COMMIT`;
  await deleted;
  for (const connection of [relier, deleter]) connection.release();
});

test("two batches that rely on a content and give it up too do not wait for each other", async () => {
  await send(sql, ofContents(["hot"], []));
  const connections = [await sql.reserve(), await sql.reserve()];
  for (let round = 0; round < 5; round++)
    await Promise.all(
      connections.map(async (connection) => {
        await connection`BEGIN`;
        await send(connection, ofContents(["hot"], ["hot"]));
        await connection`ROLLBACK`;
      }),
    );
  for (const connection of connections) connection.release();
});

test("what belongs to a whole organisation is changed by one mode at a time", async () => {
  const change = (
    { store }: Instance,
    mode: "live" | "sandbox",
    field: "name" | "killSwitch",
    value: unknown,
  ) =>
    store.execute({
      scope: { organisationId: stage.organisationId, mode },
      needs: {},
      decide({ organisation: before }) {
        const row = { ...before, [field]: value };
        return { answer: null, change: { put: [{ kind: "organisation", before, row }] } };
      },
    });
  const retries = () => one.store.figures().retries + other.store.figures().retries;
  const before = retries();
  for (let round = 0; round < 20; round++) {
    const name = fresh("name");
    await Promise.all([
      change(one, "live", "name", name),
      change(other, "sandbox", "killSwitch", round % 2 === 0),
    ]);
    const [found] =
      await sql`SELECT name, kill_switch::int AS stopped FROM organisations WHERE id = ${stage.organisationId}`;
    expect(found).toEqual({ name, stopped: round % 2 === 0 ? 1 : 0 });
  }
  // Two that both share it and then both write it would end each other.
  expect(retries()).toBe(before);
});

test("a command of a batch sees what the one before it wrote, although it was asked for before", async () => {
  const email = `${fresh("same")}@example.com`;
  const input = { organisation_id: stage.organisationId, email, password: "correct horse battery staple" };
  const make = () => createUser(one.ctx, MACHINE, { ...input, role: "viewer" });
  const { retries } = one.store.figures();
  const made = valuesOf(await inOneBatch<unknown>(one, sql, stage.organisationId, [make, make]));
  expect(made.map((user) => isRefusal(user as Answer))).toEqual([false, true]);
  expect(one.store.figures().retries).toBe(retries);
});
