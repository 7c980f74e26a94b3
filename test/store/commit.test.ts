import { Database } from "bun:sqlite";
import { expect, spyOn } from "bun:test";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { isRefusal } from "../../src/core/errors.ts";
import type { Organisation } from "../../src/core/organisation.ts";
import { DAY_MS } from "../../src/core/time.ts";
import { createOrganisation } from "../../src/services/admin/organisations.ts";
import type { Change } from "../../src/store/change.ts";
import { createRowCache } from "../../src/store/row-cache.ts";
import type { Scope } from "../../src/store/scope.ts";
import { createCommitQueue } from "../../src/store/sqlite/commit.ts";
import { openSqliteStore } from "../../src/store/sqlite/store.ts";
import type { InstanceCommand } from "../../src/store/store.ts";
import { createTestContext, type TestContext } from "../support/context.ts";
import { onlyEmbedded } from "../support/only-embedded.ts";
import { must } from "../support/stage.ts";

const { afterAll, beforeAll, beforeEach, describe, test } = onlyEmbedded(import.meta.path);

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
    killSwitch: false,
    passkeyThreshold: null,
    hidesSpecs: false,
    secondFactor: false,
    messagingDecisions: false,
    createdAt: 0,
  });
  const scopeOf = ({ id }: Organisation): Scope => ({ organisationId: id, mode: "live" });
  const making = (row: Organisation): Change => ({ put: [{ kind: "organisation", before: null, row }] });
  const create = (row: Organisation) =>
    ctx.store.execute({ scope: null, needs: {}, decide: () => ({ answer: row.id, change: making(row) }) });
  /** Whether an organisation is committed, asked by another connection, which sees nothing else. */
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
        needs: {},
        decide: (snapshot) => {
          seen.push([snapshot.organisation.name, committed(row.id)]);
          return { answer: true };
        },
      });
    const [before] = await Promise.all([look(), create(row), look()]);
    // The third command saw what the second wrote, and no other connection did: they share a transaction.
    expect(isRefusal(before) && before.refused).toBe("organisation_not_found");
    expect(seen).toEqual([["gathered", false]]);
    expect(committed(row.id)).toBe(true);
  });

  test("a decide that throws undoes only itself", async () => {
    const [first, last] = [organisation("first"), organisation("last")];
    const answers = await Promise.allSettled([
      create(first),
      ctx.store.execute({
        scope: null,
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
        scope: null,
        needs: {},
        decide: () => ({
          answer: true,
          change: {
            put: [
              { kind: "organisation", before: null, row: half },
              // The user's organisation does not exist, so the reference is refused.
              {
                kind: "user",
                before: null,
                row: {
                  id: "usr_1",
                  organisationId: "org_unknown",
                  email: "half@example.com",
                  name: "half",
                  role: "owner",
                  passwordHash: "",
                  passwordResetAt: null,
                  removedAt: null,
                  createdAt: 0,
                },
              },
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
    const refused = (change?: Change) =>
      ctx.store.execute({
        scope: null,
        needs: {},
        decide: () => ({ answer: refusal, ...(change && { change }) }),
      });
    expect(await refused()).toEqual(refusal);
    expect(committed(row.id)).toBe(false);
    expect(await refused(making(row))).toEqual(refusal);
    expect(committed(row.id)).toBe(true);
  });

  test("a decide that returns a promise is refused, and nothing of it is written", async () => {
    const [first, row] = [organisation("first"), organisation("promised")];
    const decide = (async () => ({
      answer: true,
      change: making(row),
    })) as unknown as InstanceCommand<Record<never, never>, boolean>["decide"];
    const answers = await Promise.allSettled([
      create(first),
      ctx.store.execute({ scope: null, needs: {}, decide }),
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
          scope: null,
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

  test("while another process has the ledger locked, the event loop goes on, however many commands wait", async () => {
    const locker = new Database(join(ctx.folder, "holdfast.db"));
    locker.run("BEGIN IMMEDIATE");
    const waiting = Array.from({ length: 2_000 }, (_, index) =>
      ctx.store.execute({ scope: null, needs: {}, decide: () => ({ answer: index }) }),
    );
    const begunAt = performance.now();
    for (let tick = 0; tick < 20; tick++) await Bun.sleep(1);
    // Each tick may wait for one try. Where each failed try made two more, these 20 took half a minute.
    expect(performance.now() - begunAt).toBeLessThan(2_000);
    locker.run("ROLLBACK");
    locker.close();
    expect(await Promise.all(waiting)).toEqual(waiting.map((_, index) => index));
  });

  test("a commit that records nothing moves no recorded time ahead", async () => {
    const recordedAt = () =>
      ctx.store.execute({ scope: null, needs: {}, decide: (snapshot) => ({ answer: snapshot.recordedAt }) });
    await create(organisation("recorded"));
    const before = ctx.store.lastRecordedAt();
    const now = ctx.clock.now;
    ctx.clock.now += 365 * DAY_MS;
    await ctx.store.probe();
    await recordedAt();
    expect(ctx.store.lastRecordedAt()).toBe(before);
    ctx.clock.now = now + 1;
    expect(await recordedAt()).toBe(now + 1);
    ctx.clock.now = now;
  });

  test("the time of the newest record is known since the ledger was opened: to ask reads nothing", async () => {
    const name = {
      name: "known",
      owner_email: "o@known.example",
      owner_password: "a long passphrase of mine",
    };
    must(await createOrganisation(ctx, name));
    const { now } = ctx;
    const knownAt = now();
    const later = openSqliteStore(ctx.folder, {
      freeBytes: () => null,
      version: "0.1.0",
      ...{ now, steadyNow: now, newInstanceId: () => "ins_none" },
    });
    ctx.clock.now += DAY_MS;
    must(await createOrganisation(ctx, { ...name, owner_email: "o@newer.example" }));
    ctx.clock.now -= DAY_MS;
    expect([later.lastRecordedAt(), ctx.store.lastRecordedAt()]).toEqual([knownAt, knownAt + DAY_MS]);
    await later.close();
  });

  test("close commits what is queued, and refuses what comes later", async () => {
    const closing = createTestContext();
    const row = organisation("queued");
    const command: InstanceCommand<Record<never, never>, string> = {
      scope: null,
      needs: {},
      decide: () => ({ answer: row.id, change: making(row) }),
    };
    const queued = closing.store.execute(command);
    await closing.store.close();
    expect(await queued).toBe(row.id);
    await expect(closing.store.execute(command)).rejects.toThrow("the store is closed");
    // The flush that was scheduled before has nothing to do and must not fail.
    for (let turn = 0; turn < 3; turn++) await new Promise(setImmediate);
    const file = new Database(join(closing.folder, "holdfast.db"));
    expect(file.query("SELECT name FROM organisations").get()).toEqual({ name: "queued" });
    file.close();
    rmSync(closing.folder, { recursive: true });
  });
});

/** Failures of the transaction itself, over a database whose statements can be made to fail. */
describe("the commit queue", () => {
  let database: Database;
  /** Which statements fail from now on; a count of one is a fault that passes. */
  let failing: { sql: string; times: number };
  let statements: string[];

  beforeEach(() => {
    database = new Database(":memory:");
    database.run("CREATE TABLE facts (name TEXT)");
    failing = { sql: "", times: 0 };
    statements = [];
  });

  /** Writes a name, and answers it; `fault` happens after the write. */
  function createQueue() {
    const query = database.query.bind(database);
    const watched = new Proxy(database, {
      get(target, name) {
        if (name === "query") {
          return (sql: string) => ({
            run: () => {
              statements.push(sql);
              if (failing.sql !== sql || failing.times-- <= 0) return query(sql).run();
              throw new Error(`${sql} failed`);
            },
          });
        }
        const value = Reflect.get(target, name) as unknown;
        return typeof value === "function" ? value.bind(target) : value;
      },
    });
    const faults = new Map<string, () => void>();
    const cache = createRowCache();
    const queue = createCommitQueue({
      database: watched,
      cache,
      undone: cache.clear,
      load: (missing) => {
        // These commands need only the instance.
        for (const [kind, keys] of missing.rows)
          for (const key of keys) cache.loadRow(kind, key, { id: "ins" } as never);
      },
      apply: (writes) => {
        for (const write of writes) {
          if (write.kind !== "put") continue;
          const { name } = write.put.row as { readonly name: string };
          database.run("INSERT INTO facts VALUES (?)", [name]);
          faults.get(name)?.();
        }
      },
      begun: () => ({ now: 0, recordedAt: 0, steadyAt: 0 }),
      committed: () => statements.push("committed"),
    });
    const write = (name: string, fault?: () => void) => {
      if (fault) faults.set(name, fault);
      return queue.execute({
        scope: null,
        needs: {},
        decide: () => ({
          answer: name,
          change: { put: [{ kind: "auditEntry", row: { name } as never }] },
        }),
      });
    };
    const beside = (name: string, fault?: () => void) =>
      queue.runBeside(() => {
        database.run("INSERT INTO facts VALUES (?)", [name]);
        fault?.();
        return name;
      });
    return Object.assign(write, { beside, close: queue.close });
  }

  const facts = () => database.query("SELECT name FROM facts ORDER BY name").values().flat();
  const outcomes = async (promises: Promise<unknown>[]) =>
    (await Promise.allSettled(promises)).map((answer) =>
      answer.status === "fulfilled" ? answer.value : String(answer.reason),
    );
  const fault = (problem: string) => () => {
    throw new Error(problem);
  };

  test("uses one transaction for a batch, and says that it is on disk before it answers", async () => {
    const write = createQueue();
    const first = write("a").then(() => statements.push("answered"));
    await Promise.all([first, write("b")]);
    expect(statements).toEqual(["BEGIN IMMEDIATE", "COMMIT", "committed", "answered"]);
  });

  describe("work in no hurry", () => {
    const TRANSACTION = ["BEGIN IMMEDIATE", "COMMIT", "committed"];
    const turns = async (count = 5) => {
      for (let turn = 0; turn < count; turn++) await new Promise(setImmediate);
    };
    /** A queue that has just committed many commands at once. */
    async function createBusyQueue() {
      const write = createQueue();
      await Promise.all([..."abcdefgh"].map((name) => write(name)));
      statements.splice(0);
      return write;
    }

    test("joins the commands that come next while many are committed, one at a time", async () => {
      const write = await createBusyQueue();
      const later = spyOn(globalThis, "setTimeout").mockReturnValue(0 as never);
      const waiting = [write.beside("first"), write.beside("second")];
      later.mockRestore();
      await turns();
      expect(statements).toEqual([]);
      await Promise.all([write("next"), waiting[0]]);
      expect([facts().includes("first"), facts().includes("second")]).toEqual([true, false]);
      await Promise.all([write("the one after"), waiting[1]]);
      expect(statements).toEqual([...TRANSACTION, ...TRANSACTION]);
      expect(await Promise.all(waiting)).toEqual(["first", "second"]);
    });

    test("leaves no timer behind that would cut short how long the next one waits", async () => {
      const write = await createBusyQueue();
      const [set, cleared] = [spyOn(globalThis, "setTimeout"), spyOn(globalThis, "clearTimeout")];
      try {
        await Promise.all([write.beside("joins"), write("next")]);
        const timers = set.mock.results.map(({ value }) => value);
        expect(timers).toHaveLength(1);
        expect(cleared.mock.calls.map(([timer]): unknown => timer)).toEqual(timers);
      } finally {
        set.mockRestore();
        cleared.mockRestore();
      }
    });

    test("has a transaction of its own soon where no more commands come", async () => {
      const write = await createBusyQueue();
      expect(await write.beside("alone")).toBe("alone");
      expect(statements).toEqual(TRANSACTION);
    });

    test("waits for nothing while few are committed", async () => {
      const write = createQueue();
      await write("a");
      const done = [write.beside("one"), write.beside("two"), write.beside("three")];
      await turns(20);
      expect(facts()).toEqual(["a", "one", "three", "two"]);
      expect(await Promise.all(done)).toEqual(["one", "two", "three"]);
    });

    test("fails alone, and the commands that it joined are committed", async () => {
      const write = await createBusyQueue();
      const waiting = write.beside("faulty", fault("a fault"));
      expect(await outcomes([write("next"), write("another"), waiting])).toEqual([
        "next",
        "another",
        "Error: a fault",
      ]);
      expect(facts()).toEqual([..."abcdefgh", "another", "next"].sort());
    });

    test("is committed by close, and refused afterwards", async () => {
      const write = await createBusyQueue();
      const waiting = [write.beside("first"), write.beside("second")];
      write.close();
      expect(facts()).toEqual([..."abcdefgh", "first", "second"].sort());
      expect(await Promise.all(waiting)).toEqual(["first", "second"]);
      await expect(write.beside("late")).rejects.toThrow("the store is closed");
    });
  });

  test("waits for the next turn of the event loop while turns bring more commands, and for no other", async () => {
    const write = createQueue();
    const inNextTurn = (name: string) => new Promise((resolve) => setImmediate(() => resolve(write(name))));
    await Promise.all([write("a"), write("b"), inNextTurn("c")]);
    expect(statements).toEqual(["BEGIN IMMEDIATE", "COMMIT", "committed"]);
    statements = [];
    await Promise.all([write("d"), inNextTurn("e")]);
    expect(statements.filter((statement) => statement === "COMMIT")).toHaveLength(2);
  });

  test("waits a limited time, also where every turn brings one more command", async () => {
    const write = createQueue();
    let isAnswered = false;
    const first = write("first").finally(() => {
      isAnswered = true;
    });
    const later: Promise<unknown>[] = [];
    for (let turn = 0; !isAnswered && turn < 250; turn++) {
      later.push(write(`later ${turn}`));
      const until = performance.now() + 1;
      while (performance.now() < until);
      await new Promise(setImmediate);
    }
    expect(later.length).toBeLessThan(50);
    expect(await first).toBe("first");
    await Promise.all(later);
  });

  test("a COMMIT that fails fails every command, and nothing is written", async () => {
    const write = createQueue();
    failing = { sql: "COMMIT", times: Number.POSITIVE_INFINITY };
    expect(await outcomes([write("a"), write("b"), write("c")])).toEqual(
      Array(3).fill("Error: COMMIT failed"),
    );
    expect(facts()).toEqual([]);
    expect(statements).not.toContain("committed");
    expect(database.inTransaction).toBe(false);
    failing.times = 0;
    expect(await outcomes([write("d")])).toEqual(["d"]);
    expect(facts()).toEqual(["d"]);
  });

  test("a BEGIN that fails fails every command", async () => {
    const write = createQueue();
    failing = { sql: "BEGIN IMMEDIATE", times: Number.POSITIVE_INFINITY };
    expect(await outcomes([write("a"), write("b")])).toEqual(Array(2).fill("Error: BEGIN IMMEDIATE failed"));
    failing.times = 0;
    expect(await outcomes([write("a")])).toEqual(["a"]);
  });

  test("a COMMIT that fails once writes every command once", async () => {
    const write = createQueue();
    failing = { sql: "COMMIT", times: 1 };
    expect(await outcomes([write("a"), write("b"), write("c")])).toEqual(["a", "b", "c"]);
    expect(facts()).toEqual(["a", "b", "c"]);
  });

  test("a command that fails half written is undone alone: the others are written once", async () => {
    const write = createQueue();
    const answers = [write("a"), write("b", fault("a bug")), write("c"), write("d", fault("another"))];
    expect(await outcomes(answers)).toEqual(["a", "Error: a bug", "c", "Error: another"]);
    expect(facts()).toEqual(["a", "c"]);
    expect(database.inTransaction).toBe(false);
  });

  test("the same where the fault ends the whole transaction, as a full disk does", async () => {
    const write = createQueue();
    const endsAll = () => {
      database.run("ROLLBACK");
      throw new Error("disk full");
    };
    expect(await outcomes([write("a"), write("b", endsAll), write("c")])).toEqual([
      "a",
      "Error: disk full",
      "c",
    ]);
    expect(facts()).toEqual(["a", "c"]);
  });
});
