import { Database, type Statement } from "bun:sqlite";
import { afterAll, beforeAll, expect, type Mock, spyOn, test } from "bun:test";
import { join } from "node:path";
import { MACHINE } from "../../src/services/admin/authority.ts";
import { createSession } from "../../src/services/admin/sessions.ts";
import { createVerifier } from "../../src/services/admin/verifiers.ts";
import { must, type TestOrganisation } from "../support/organisations.ts";
import { type ShellService, startTestShell } from "../support/server.ts";

/** How SQLite answers what people read back: by an index, however many warrants there are. */

/** The ways in which a statement is run. */
const WAYS = ["get", "all", "values", "iterate", "run"] as const;
/** Every statement that ran, its values written in. */
let ran: string[] = [];

/** The statement, which says so when it runs. */
function watched(statement: Statement): Statement {
  const real = Object.fromEntries(
    WAYS.map((way) => [way, statement[way] as (...given: unknown[]) => unknown]),
  );
  for (const way of WAYS) {
    Object.assign(statement, {
      [way]: (...given: unknown[]) => {
        const answer = Reflect.apply(real[way]!, statement, given);
        ran.push(statement.toString());
        return answer;
      },
    });
  }
  return statement;
}

let preparing: Mock<Database["prepare"]>;
let service: ShellService;
let home: TestOrganisation;
let database: Database;
beforeAll(async () => {
  // Before the store is opened, which prepares what it asks often.
  const prepare = Database.prototype.prepare;
  preparing = spyOn(Database.prototype, "prepare").mockImplementation(function (this: Database, ...given) {
    return watched(Reflect.apply(prepare, this, given));
  } as Database["prepare"]);
  service = startTestShell();
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
  preparing.mockRestore();
  database?.close();
  await service?.close();
});

const planOf = (sql: string): readonly string[] =>
  database
    .query<{ detail: string }, []>(`EXPLAIN QUERY PLAN ${sql}`)
    .all()
    .map(({ detail }) => detail);

test("what is watched is what runs: a scan of the warrants would be seen", async () => {
  ran = [];
  database.prepare("SELECT count(*) FROM warrants WHERE amount > ?1").get(5);
  expect(ran).toEqual(["SELECT count(*) FROM warrants WHERE amount > 5"]);
  expect(planOf(ran[0]!)).toEqual(["SCAN warrants"]);
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

/** The indexes that a read of deliveries goes by, in the plan's order; a scan without one is shown as it is. */
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
  const { webhooks, deliveries } = service.ctx.store.reader;
  const live = { organisationId: home.id, mode: "live" } as const;
  const now = service.clock.now;
  const byPrefix = (suffix: string) => `webhook_deliveries_${suffix}`;
  expect({
    withWork: indexesOf(() => webhooks.withWork(now)),
    due: indexesOf(() => deliveries.due("whk_1", now, 10)),
    list: indexesOf(() => deliveries.list(live, 10)),
    cutOff: indexesOf(() => deliveries.cutOff(now, 10)),
    beyond: indexesOf(() => deliveries.beyond(now, now, 10)),
    exhausted: indexesOf(() => deliveries.exhaustedSince("whk_1", now, 10)).slice(-1),
    waiting: indexesOf(() => deliveries.waiting()),
    next: indexesOf(() => deliveries.nextAttemptAt()),
  }).toEqual({
    withWork: [byPrefix("due")],
    due: ["due", "first"].map(byPrefix),
    list: [byPrefix("by_organisation")],
    cutOff: [byPrefix("claimed")],
    beyond: ["claimed", "next"].map(byPrefix),
    exhausted: [byPrefix("by_creation")],
    waiting: ["next", "claimed"].map(byPrefix),
    next: [byPrefix("next")],
  });
});

test("payments to look for, and purchases that have not ended, are read by their indexes", () => {
  const { purchases } = service.ctx.store.reader;
  ran = [];
  purchases.waiting();
  purchases.toCheck(service.clock.now, 10);
  purchases.unfinished("", 10);
  const indexes = ran.flatMap(planOf).map((detail) => / INDEX (\S+)/.exec(detail)?.[1] ?? detail);
  expect(indexes).toEqual([
    ...["purchases_unfinished", "purchases_to_check", "purchases_to_check", "purchases_unfinished"],
  ]);
});
