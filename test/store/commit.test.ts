import { Database } from "bun:sqlite";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { rmSync } from "node:fs";
import { join } from "node:path";
import type { Organisation } from "../../src/core/directory.ts";
import { createCommitQueue } from "../../src/store/sqlite/commit.ts";
import type { Command, Decision, Scope } from "../../src/store/store.ts";
import { createTestContext, type TestContext } from "../support/context.ts";

/** Group commit through the store: what one tick gathers is one transaction. */
describe("the store", () => {
  let ctx: TestContext;
  let other: Database;
  beforeAll(() => {
    ctx = createTestContext();
    other = new Database(join(ctx.folder, "holdfast.db"), { readonly: true });
  });
  afterAll(async () => {
    other.close();
    await ctx.close();
  });

  const organisation = (name: string): Organisation => ({
    id: ctx.newId("organisation"),
    name,
    createdAt: 0,
  });
  const scopeOf = ({ id }: Organisation): Scope => ({ organisationId: id, mode: "live" });
  const create = (row: Organisation) =>
    ctx.store.execute({
      scope: scopeOf(row),
      needs: {},
      decide: () => ({ answer: row.id, change: { rows: [{ kind: "organisation", row }] } }),
    });
  /** Through another connection, which sees what is committed and nothing else. */
  const committed = (id: string) => other.query("SELECT 1 FROM organisations WHERE id = ?").get(id) !== null;

  test("answers only what is on disk", async () => {
    const rows = Array.from({ length: 50 }, (_, index) => organisation(`durable ${index}`));
    const answers = rows.map(async (row) => {
      const id = await create(row);
      // The first thing that happens after the answer.
      return committed(String(id));
    });
    expect(rows.some(({ id }) => committed(id))).toBe(false);
    expect(await Promise.all(answers)).toEqual(rows.map(() => true));
  });

  test("gathers the commands of one tick into one transaction, and they see each other in order", async () => {
    const row = organisation("gathered");
    const seen: unknown[] = [];
    const look = () =>
      ctx.store.execute({
        scope: scopeOf(row),
        needs: { organisation: true },
        decide: (snapshot) => {
          seen.push([snapshot.organisation?.name ?? null, committed(row.id)]);
          return { answer: true };
        },
      });
    await Promise.all([look(), create(row), look()]);
    // The third saw what the second wrote, and nobody outside did: it is one transaction.
    expect(seen).toEqual([
      [null, false],
      ["gathered", false],
    ]);
    expect(committed(row.id)).toBe(true);
  });

  test("a decide that throws undoes only itself", async () => {
    const [first, last] = [organisation("first"), organisation("last")];
    const answers = await Promise.allSettled([
      create(first),
      ctx.store.execute({
        scope: scopeOf(first),
        needs: {},
        decide: () => {
          throw new Error("a bug in decide");
        },
      }),
      create(last),
    ]);
    expect(answers.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
    expect((answers[1] as PromiseRejectedResult).reason.message).toBe("a bug in decide");
    expect([committed(first.id), committed(last.id)]).toEqual([true, true]);
  });

  test("a Change that is half applied when it fails leaves nothing", async () => {
    const [good, half, last] = [organisation("good"), organisation("half"), organisation("last")];
    const answers = await Promise.allSettled([
      create(good),
      ctx.store.execute({
        scope: scopeOf(half),
        needs: {},
        decide: () => ({
          answer: true,
          change: {
            rows: [
              { kind: "organisation", row: half },
              { kind: "organisation", row: { ...half } },
            ],
          },
        }),
      }),
      // The name of a failed command is free again in the same batch.
      create(last),
    ]);
    expect(answers.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
    expect([good, half, last].map(({ id }) => committed(id))).toEqual([true, false, true]);
  });

  test("a refusal is an answer: it writes nothing, unless it brings a Change", async () => {
    const row = organisation("refused");
    const refusal = { refused: "agent_not_found", message: "none" } as const;
    const refused = (change?: Decision<never>["change"]) =>
      ctx.store.execute({
        scope: scopeOf(row),
        needs: {},
        decide: () => ({ answer: refusal, ...(change && { change }) }),
      });
    expect(await refused()).toEqual(refusal);
    expect(committed(row.id)).toBe(false);
    expect(await refused({ rows: [{ kind: "organisation", row }] })).toEqual(refusal);
    expect(committed(row.id)).toBe(true);
  });

  test("a decide that returns a promise is refused, and nothing of it is written", async () => {
    const [first, row] = [organisation("first"), organisation("promised")];
    const decide = (async () => ({
      answer: true,
      change: { rows: [{ kind: "organisation", row }] },
    })) as unknown as Command<boolean>["decide"];
    const answers = await Promise.allSettled([
      create(first),
      ctx.store.execute({ scope: scopeOf(row), needs: {}, decide }),
    ]);
    expect(answers.map(({ status }) => status)).toEqual(["fulfilled", "rejected"]);
    expect((answers[1] as PromiseRejectedResult).reason).toBeInstanceOf(TypeError);
    expect([committed(first.id), committed(row.id)]).toEqual([true, false]);
  });

  test("more commands than a batch holds all commit, in order", async () => {
    const order: number[] = [];
    const answers = await Promise.all(
      Array.from({ length: 600 }, (_, index) =>
        ctx.store.execute({
          scope: { organisationId: "org_none", mode: "live" },
          needs: {},
          decide: () => {
            order.push(index);
            return { answer: index };
          },
        }),
      ),
    );
    expect(answers).toEqual(Array.from({ length: 600 }, (_, index) => index));
    expect(order).toEqual(answers as number[]);
  });

  test("close commits what is queued, and refuses what comes later", async () => {
    const closing = createTestContext();
    const row = organisation("queued");
    const command: Command<string> = {
      scope: scopeOf(row),
      needs: {},
      decide: () => ({ answer: row.id, change: { rows: [{ kind: "organisation", row }] } }),
    };
    const queued = closing.store.execute(command);
    await closing.store.close();
    expect(await queued).toBe(row.id);
    await expect(closing.store.execute(command)).rejects.toThrow("the store is closed");
    // The flush that was scheduled before has nothing to do, and does no harm.
    await Bun.sleep(1);
    const file = new Database(join(closing.folder, "holdfast.db"));
    expect(file.query("SELECT name FROM organisations").get()).toEqual({ name: "queued" });
    file.close();
    rmSync(closing.folder, { recursive: true });
  });
});

/** Failures of the transaction itself, over a database whose COMMIT can be made to fail. */
describe("the commit queue", () => {
  let database: Database;
  let failing: { sql: string; before: () => void } | null;
  let statements: string[];

  beforeEach(() => {
    database = new Database(":memory:");
    database.run("CREATE TABLE facts (name TEXT PRIMARY KEY)");
    failing = null;
    statements = [];
  });

  function createQueue() {
    const query = database.query.bind(database);
    const watched = new Proxy(database, {
      get(target, name) {
        if (name === "query") {
          return (sql: string) => ({
            run: () => {
              statements.push(sql);
              if (failing?.sql === sql) {
                failing.before();
                throw new Error(`${sql} failed`);
              }
              return query(sql).run();
            },
          });
        }
        const value = Reflect.get(target, name) as unknown;
        return typeof value === "function" ? value.bind(target) : value;
      },
    });
    const queue = createCommitQueue(
      watched,
      () => ({}) as never,
      (_, change) => {
        for (const { row } of change.rows ?? []) database.run("INSERT INTO facts VALUES (?)", [row as never]);
      },
      () => statements.push("committed"),
    );
    return (name: string) =>
      queue.execute({
        scope: { organisationId: "org", mode: "live" },
        needs: {},
        decide: () => ({ answer: name, change: { rows: [{ kind: "organisation", row: name as never }] } }),
      });
  }

  const facts = () => database.query("SELECT name FROM facts ORDER BY name").values().flat();
  const outcomes = async (promises: Promise<unknown>[]) =>
    (await Promise.allSettled(promises)).map((answer) =>
      answer.status === "fulfilled" ? answer.value : String(answer.reason),
    );

  test("uses one transaction for a batch, a savepoint for each", async () => {
    const write = createQueue();
    expect(await outcomes([write("a"), write("b")])).toEqual(["a", "b"]);
    expect(statements).toEqual([
      "BEGIN IMMEDIATE",
      ...["SAVEPOINT command", "RELEASE command", "SAVEPOINT command", "RELEASE command"],
      ...["COMMIT", "committed"],
    ]);
  });

  test("a COMMIT that fails fails every command, and nothing is written", async () => {
    const write = createQueue();
    failing = { sql: "COMMIT", before: () => {} };
    expect(await outcomes([write("a"), write("b"), write("a")])).toEqual(
      Array(3).fill("Error: COMMIT failed"),
    );
    expect(facts()).toEqual([]);
    expect(statements).not.toContain("committed");
    expect(database.inTransaction).toBe(false);
    failing = null;
    expect(await outcomes([write("c")])).toEqual(["c"]);
    expect(facts()).toEqual(["c"]);
  });

  test("a BEGIN that fails fails every command", async () => {
    const write = createQueue();
    failing = { sql: "BEGIN IMMEDIATE", before: () => {} };
    expect(await outcomes([write("a"), write("b")])).toEqual(Array(2).fill("Error: BEGIN IMMEDIATE failed"));
    failing = null;
    expect(await outcomes([write("a")])).toEqual(["a"]);
  });

  test("an error that ended the whole transaction fails the whole batch, also what seemed done", async () => {
    const write = createQueue();
    let releases = 0;
    // As a full disk does: SQLite rolls everything back by itself.
    failing = {
      sql: "RELEASE command",
      before: () => {
        releases += 1;
        database.run("ROLLBACK");
      },
    };
    expect(await outcomes([write("a"), write("b"), write("c")])).toEqual(
      Array(3).fill("Error: RELEASE command failed"),
    );
    expect(releases).toBe(1);
    failing = null;
    expect(facts()).toEqual([]);
    expect(await outcomes([write("d")])).toEqual(["d"]);
  });
});
