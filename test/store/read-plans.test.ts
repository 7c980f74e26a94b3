import { Database } from "bun:sqlite";
import { expect } from "bun:test";
import { join } from "node:path";
import { STATES } from "../../src/core/warrant.ts";
import { reconcilePurchases } from "../../src/jobs/purchases.ts";
import { countRunningTime, forgetOld } from "../../src/jobs/retention.ts";
import { MACHINE } from "../../src/services/admin/authority.ts";
import { createSession } from "../../src/services/admin/sessions.ts";
import { createVerifier } from "../../src/services/admin/verifiers.ts";
import type { WarrantFilter } from "../../src/store/reader.ts";
import { asksExact, delivers, type Market, openMarket, RECEIPT, SELLER_URL } from "../support/market.ts";
import { noContradiction, noFault } from "../support/no-fault.ts";
import { onlyEmbedded } from "../support/only-embedded.ts";
import { must, type TestOrganisation } from "../support/organisations.ts";
import { type ShellService, startTestShell } from "../support/server.ts";
import { watchStatements } from "../support/watched-statements.ts";

const { afterAll, beforeAll, test } = onlyEmbedded(import.meta.path);

/** SQLite must answer every list from an index, however many warrants there are. */

/** Every statement that ran, with its values written in. */
let ran: string[] = [];

let watching: { end(): void };
let service: ShellService;
let home: TestOrganisation;
let market: Market;
let database: Database;
beforeAll(async () => {
  // This comes before the store is opened, since the store prepares its frequent statements then.
  watching = watchStatements((sql) => ran.push(sql));
  market = openMarket();
  service = startTestShell({ x402: market.x402 });
  home = await service.organisation();
  await home.addPolicy({ bands: [{ minScore: 0, outcome: "escalate" }] });
  await home.addPolicy({ bands: [{ minScore: 0, outcome: "refund" }] }, { agent_id: home.live.id });
  const verifier = { type: "http.status", name: "up", config: { equals: 200 } } as const;
  must(await createVerifier(service.ctx, MACHINE, { organisation_id: home.id, ...verifier }));
  must(await createSession(service.ctx, MACHINE, { agent_id: home.live.id, amount_ceiling: "1000" }));
  for (let count = 0; count < 3; count++) await service.opened(home, { agent_id: home.live.id });
  database = new Database(join(service.folder, "holdfast.db"), { readonly: true });
});
afterAll(async () => {
  watching?.end();
  database?.close();
  await service?.close();
});

const planOf = (sql: string): readonly string[] =>
  database
    .query<{ detail: string }, []>(`EXPLAIN QUERY PLAN ${sql}`)
    .all()
    .map(({ detail }) => detail);

test("the watched statements are those that run: a scan of the warrants would be noticed", async () => {
  ran = [];
  database.prepare("SELECT count(*) FROM warrants WHERE amount > ?1").get(5);
  expect(ran).toEqual(["SELECT count(*) FROM warrants WHERE amount > 5"]);
  expect(planOf(ran[0]!)).toEqual(["SCAN warrants"]);
});

/** The plans of what ran and is about a table, with the statements. */
const plansAbout = (table: string) =>
  ran
    .filter((sql) => new RegExp(`^\\s*(select|delete) [^]*\\bfrom "?${table}\\b`, "i").test(sql))
    .map((sql) => [sql, planOf(sql)] as const);
const expectNoScan = (plans: readonly (readonly [sql: string, plan: readonly string[]])[]) => {
  expect(plans.length).toBeGreaterThan(0);
  for (const [sql, plan] of plans)
    expect([sql, plan.filter((detail) => /^SCAN (?!CONSTANT ROW)/.test(detail))]).toEqual([sql, []]);
};

const ORDER = {
  url: SELLER_URL,
  max_amount: "100",
  spec: { clauses: [{ kind: "json.jsonpath", path: "$.ok" }] },
};

test("a wallet's open authorizations are found however much it has paid", async () => {
  market.first = asksExact("100");
  market.findings = ["used"];
  market.balance = 1_000n;
  market.paid = () => delivers({ ok: 1 }, RECEIPT);
  ran = [];
  expect((await service.post("/v1/x402/pay", ORDER, { as: home.sandbox.as })).status).toBe(200);
  expectNoScan(plansAbout("purchases"));
  const sums = plansAbout("purchases").filter(([sql]) => sql.includes("sum("));
  expect(sums.map(([, plan]) => plan)).toEqual([
    ["SEARCH purchases USING INDEX purchases_open_of_wallet (payer=? AND chain_id=? AND contract=?)"],
    [
      "SEARCH purchases USING INDEX purchases_paid_of_wallet (payer=? AND chain_id=? AND contract=? AND answered_at>?)",
    ],
  ]);
});

test("payments to ask for, and what is forgotten, are found by an index", async () => {
  const old = startTestShell({ x402: openMarket().x402 });
  const buyer = await old.organisation();
  await old.post("/v1/x402/pay", ORDER, { as: buyer.sandbox.as });
  ran = [];
  await reconcilePurchases(old.ctx, noFault, noContradiction);
  const monthMs = 31 * 24 * 3_600_000;
  for (const ms of [1, monthMs]) {
    old.clock.now += ms;
    await countRunningTime(old.ctx, ms, 30);
  }
  expect(await forgetOld(old.ctx)).toBeGreaterThan(0);
  await old.close();
  for (const table of ["purchases", "contents", "idempotency_keys"]) expectNoScan(plansAbout(table));
});

for (const [list, tables] of [
  ["verifiers", ["verifiers"]],
  ["policies", ["policies"]],
  ["agents", ["agents", "policies", "spend_sessions", "warrant_counts"]],
] as const) {
  test(`GET /v1/console/${list} asks ${tables.join(", ")} by an index, and never the warrants`, async () => {
    const as = home.people.viewer.as;
    ran = [];
    const { body } = await service.get(`/v1/console/${list}`, { as });
    expect(body.data.length).toBeGreaterThan(0);
    const statements = ran.filter((sql) => /^\s*select\b/i.test(sql));
    const asked = new Set<string>();
    for (const sql of statements) {
      const plan = planOf(sql);
      expect([sql, plan.filter((detail) => /^SCAN (?!CONSTANT ROW)/.test(detail))]).toEqual([sql, []]);
      for (const detail of plan) {
        const table = /^SEARCH (\w+) USING (COVERING )?(INDEX|PRIMARY KEY)/.exec(detail)?.[1];
        if (table) asked.add(table);
      }
      expect(sql).not.toMatch(/\bfrom "?(warrants|trace)\b/i);
    }
    expect([...asked]).toEqual(expect.arrayContaining([...tables]));
  });
}

for (const [list, table] of [
  ["verifiers", "verifiers"],
  ["policies", "policies"],
  ["agents", "agents"],
  ["keys", "api_keys"],
  ["users", "users"],
  ["webhooks", "webhooks"],
  ["escalations", "escalations"],
] as const) {
  test(`a page of GET /v1/console/${list} reads as many rows as it shows, and one more`, async () => {
    const as = home.people.owner.as;
    const { body: first } = await service.get(`/v1/console/${list}?limit=1`, { as });
    for (const cursor of ["", ...(first.next_cursor ? [`&starting_after=${first.next_cursor}`] : [])]) {
      ran = [];
      expect((await service.get(`/v1/console/${list}?limit=2${cursor}`, { as })).status).toBe(200);
      const listing = ran.filter((sql) => new RegExp(`from "?${table}"?[^]* order by`, "i").test(sql));
      expect(listing.length).toBeGreaterThan(0);
      for (const sql of listing) expect(sql).toMatch(/limit 3\b/i);
      expectNoScan(listing.map((sql) => [sql, planOf(sql)] as const));
    }
  });
}

test("every list of warrants, with every filter and order, is read from the index that is meant for it", () => {
  const { warrants } = service.ctx.reader;
  const live = { organisationId: home.id, mode: "live" } as const;
  const agentId = home.live.id;
  const id = warrants.byCreation(live, {}, {}, 1)[0]!.id;
  const states = STATES.length;
  const ways = (
    of: string,
    filter: WarrantFilter,
    lists: number,
  ): [string, string, number, () => unknown][] => [
    [`${of} by deadline`, `${of}_by_deadline`, lists, () => warrants.byDeadline(live, filter, 5, 10)],
    [`${of}, newest`, `${of}_by_state`, lists, () => warrants.byCreation(live, filter, {}, 10)],
    [`${of}, older`, `${of}_by_state`, lists, () => warrants.byCreation(live, filter, { olderThan: id }, 10)],
    [`${of}, newer`, `${of}_by_state`, lists, () => warrants.byCreation(live, filter, { newerThan: id }, 10)],
  ];
  for (const [what, index, lists, read] of [
    ...ways("warrants", {}, states),
    ...ways("warrants", { state: "held" }, 1),
    ...ways("warrants_of_agent", { agentId }, states),
    ...ways("warrants_of_agent", { agentId, state: "expired" }, 1),
    ["overdue", "warrants_overdue", 1, () => warrants.overdue(service.clock.now, 10)] as const,
    ["how many are overdue", "warrants_overdue", 1, () => warrants.overdueCount(service.clock.now)] as const,
    ["verifying", "warrants_verifying", 1, () => warrants.verifying(id, 10)] as const,
  ]) {
    ran = [];
    read();
    const plans = ran.filter((sql) => /\bwarrants\b/.test(sql)).flatMap(planOf);
    const used = plans.flatMap((detail) => /^(?:SEARCH|SCAN) warrants .*INDEX (\S+)/.exec(detail)?.[1] ?? []);
    const found = used.filter((name) => name !== "warrants_id_unique");
    expect([what, found]).toEqual([what, Array.from({ length: lists }, () => index)]);
    expect([
      what,
      plans.filter((detail) => /^SCAN (?!page$|warrants USING INDEX warrants_verifying)/.test(detail)),
    ]).toEqual([what, []]);
  }
});

test("the warrants that a kill or its end moves are found by indexes, named or not", () => {
  const { warrants, agents } = service.ctx.reader;
  ran = [];
  warrants.ofAgent(home.live.id, "held", 0, 10);
  warrants.ofAgent(home.live.id, "frozen", 0, 10);
  const ofAgent = ["warrants_of_agent_by_deadline", "warrants_opened_by_agent"];
  expect(indexesOfWarrants()).toEqual([...ofAgent, ...ofAgent, "warrants_frozen_in_grace"]);
  ran = [];
  agents.withStatusToFollow(service.clock.now, 10);
  expect(indexesOfWarrants()).toEqual([...ofAgent, ...ofAgent, "warrants_frozen_in_grace"]);
});

/** The indexes of the warrants that ran, in the plans' order. What goes by none is shown as it is. */
const indexesOfWarrants = (): string[] =>
  ran
    .flatMap(planOf)
    .filter((detail) => /^(SCAN|SEARCH) warrants (?!USING INTEGER PRIMARY KEY)/.test(detail))
    .map((detail) => / INDEX (\S+)/.exec(detail)?.[1] ?? detail);

/**
 * The indexes that a read of deliveries uses, in the plan's order. A scan without an index is shown as it is.
 */
function indexesOf(read: () => unknown): string[] {
  ran = [];
  read();
  return ran
    .filter((sql) => sql.includes("webhook_deliveries"))
    .flatMap(planOf)
    .filter((detail) => /^(SCAN|SEARCH) (webhook_deliveries|earlier)\b/.test(detail))
    .map((detail) => / INDEX (\S+)/.exec(detail)?.[1] ?? detail);
}

test("every read of deliveries goes by the index that is meant for it", () => {
  const { webhooks, deliveries } = service.ctx.reader;
  const live = { organisationId: home.id, mode: "live" } as const;
  const now = service.clock.now;
  const byPrefix = (suffix: string) => `webhook_deliveries_${suffix}`;
  expect({
    withWork: indexesOf(() => webhooks.withWork(now)),
    due: indexesOf(() => deliveries.due("whk_1", now, 10)),
    list: indexesOf(() => deliveries.list(live, 10)),
    ofMoves: indexesOf(() => deliveries.ofMoves(live, [{ warrantId: "wrt_1", recordedAt: now }], 10)),
    cutOff: indexesOf(() => deliveries.cutOff(now, 10)),
    beyond: indexesOf(() => deliveries.beyond(now, now, 10)),
    exhausted: indexesOf(() => deliveries.exhaustedSince("whk_1", now, 10)).slice(-1),
    waiting: indexesOf(() => deliveries.waiting()),
    next: indexesOf(() => deliveries.nextAttemptAt()),
  }).toEqual({
    withWork: [byPrefix("due")],
    due: ["due", "first"].map(byPrefix),
    list: [byPrefix("by_organisation")],
    ofMoves: [byPrefix("by_organisation")],
    cutOff: [byPrefix("claimed")],
    beyond: ["claimed", "next"].map(byPrefix),
    exhausted: [byPrefix("by_creation")],
    waiting: ["next", "claimed"].map(byPrefix),
    next: [byPrefix("next")],
  });
});

test("payments to look for, and purchases that have not ended, are read by their indexes", () => {
  const { purchases } = service.ctx.reader;
  ran = [];
  purchases.waiting();
  purchases.toCheck(service.clock.now, service.clock.now + 1, 10);
  purchases.unfinished("", 10);
  const indexes = ran.flatMap(planOf).map((detail) => / INDEX (\S+)/.exec(detail)?.[1] ?? detail);
  expect(indexes).toEqual([
    ...["purchases_unfinished", "purchases_to_check", "purchases_that_chains_confirm"],
    ...["purchases_to_check", "purchases_unfinished"],
  ]);
});

test("what the console draws is read on from a position, and neither postings nor checks are scanned", async () => {
  ran = [];
  await service.ctx.store.read(async ({ history, escalations }) => {
    await escalations.waitingOf("wrt_none");
    await history.postingsSince(1);
    await history.checksSince(1);
    for (const { account } of await history.accounts({ organisationId: home.id, mode: "live" }))
      await history.movements(account, 0, 10);
    await history.failures(0, 10);
  });
  const plans = ran.map((sql) => [sql, planOf(sql)] as const);
  expect(plans.length).toBeGreaterThan(4);
  for (const [sql, plan] of plans)
    expect([sql, plan.filter((detail) => /^SCAN (?!CONSTANT ROW|step$|c$)/.test(detail))]).toEqual([sql, []]);
});

test("a page of payees, payouts and corrections is read in its index's order, and nothing is sorted", () => {
  const { payees, payouts, corrections, deposits } = service.ctx.reader;
  const live = { organisationId: home.id, mode: "live" } as const;
  ran = [];
  payees.list(live, 0, 10);
  payees.owed(live, 0, 10);
  payouts.list(live, null, null, 10);
  corrections.list(live, null, 10);
  deposits.list(live, null, 10);
  const plans = ran.filter((sql) => / limit /i.test(sql)).map((sql) => [sql, planOf(sql)] as const);
  expect(plans).toHaveLength(8);
  for (const [sql, plan] of plans)
    expect([sql, plan.filter((detail) => !/^SEARCH .* INDEX .*rowid/.test(detail))]).toEqual([sql, []]);
});
