/** Reads that may go to replicas: which do, what is right whatever a replica lacks, and which servers are none. */
import { afterAll, beforeAll, expect, setDefaultTimeout, spyOn, test } from "bun:test";
import { createPublicKey, type JsonWebKeyInput } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { SQL } from "bun";
import { startServer } from "../../src/app.ts";
import { readConfig, readSecrets } from "../../src/config.ts";
import { BUILT_IN_RULES } from "../../src/core/policy.ts";
import type { KeyCaller } from "../../src/core/roles.ts";
import { MACHINE } from "../../src/services/admin/authority.ts";
import { fundBalance } from "../../src/services/admin/balances.ts";
import { createKey } from "../../src/services/admin/keys.ts";
import { pagesOfPayouts } from "../../src/services/admin/payouts.ts";
import { statementOf } from "../../src/services/admin/statements.ts";
import { setReceiptSpecs } from "../../src/services/admin/switches.ts";
import { auditInstance } from "../../src/services/audit.ts";
import { exportCheck } from "../../src/services/checks/export.ts";
import { createBackTests } from "../../src/services/console/back-test.ts";
import type { Context } from "../../src/services/context.ts";
import { ledgerFigures } from "../../src/services/figures.ts";
import { fromCopy } from "../../src/services/from-copy.ts";
import { anchor } from "../../src/services/log/anchor.ts";
import { readTile } from "../../src/services/log/read.ts";
import { fromOneSnapshot } from "../../src/services/one-snapshot.ts";
import { showSolvency } from "../../src/services/solvency/figures.ts";
import { proveSolvency } from "../../src/services/solvency/prove.ts";
import { readStatementNote } from "../../src/services/solvency/read.ts";
import { signStatement } from "../../src/services/solvency/sign.ts";
import { readReceipt } from "../../src/services/warrants/read.ts";
import { problemOfReplica } from "../../src/store/postgres/server.ts";
import type { PostgresStoreOptions } from "../../src/store/postgres/store.ts";
import type { Json } from "../support/client.ts";
import type { FaultyProxy } from "../support/faulty-proxy.ts";
import { type Postgres, startPostgres } from "../support/postgres-server.ts";
import { postgresSettings } from "../support/postgres-settings.ts";
import { startTestShell } from "../support/server.ts";
import { createCaller, createStage, must, open, type Stage, verify, warrantIn } from "../support/stage.ts";
import { until } from "../support/until.ts";
import { createConnections, through } from "./connections.ts";
import { addressOf, type Instance, lockOutside, openInstance } from "./store-context.ts";

setDefaultTimeout(120_000);

let primary: Postgres;
let replica: Postgres;
let url: string;
let replicaUrl: string;
let instance: Instance;
let stage: Stage;
let caller: KeyCaller;
/** Before the replica. */
let proxy: FaultyProxy;
/** How far the instance's clock is ahead of this process's. */
let aheadMs = 0;
const states: string[] = [];
const { closing, connectTo, newProxy, closeAll } = createConnections(() => replica.port);

beforeAll(async () => {
  primary = await startPostgres();
  closing.push(primary.close);
  // The replica begins with a copy of the settings.
  await primary.run("ALTER SYSTEM SET log_statement = 'all'");
  await primary.run("SELECT pg_reload_conf()");
  url = await primary.createDatabase();
  replica = await primary.addReplica();
  closing.push(replica.close);
  replicaUrl = replica.url(new URL(url).pathname.slice(1));
  proxy = await newProxy();
  instance = await follow(through(proxy, replicaUrl), (state) => states.push(state));
  stage = await createStage(instance.ctx, { funds: "100000000" });
  caller = await createCaller(stage);
});
afterAll(closeAll);

/** An instance that reads from a replica. */
async function follow(
  replicas: string,
  onState: (state: string) => void = () => {},
  options: Partial<PostgresStoreOptions> = {},
): Promise<Instance> {
  const following = await openInstance(
    url,
    {},
    {
      replicas: [addressOf(replicas)],
      steadyNow: () => performance.now() + aheadMs,
      onReplica: (_, state) => onState(state),
      ...options,
    },
  );
  closing.push(following.close);
  await following.store.followReplicas();
  return following;
}

const figures = () => {
  const { readReplicas, fallbacks } = instance.store.figures();
  const [{ state, lagMs, reads } = { state: null, lagMs: null, reads: 0 }] = readReplicas;
  return { state, lagMs, reads, fallbacks };
};
const inUse = () => until("reads go to the replica", () => figures().state === "in_use");

/** Opens a warrant and has it settled. The log does not have it yet. */
async function settled(): Promise<string> {
  const { id } = warrantIn(await open(stage, caller));
  must(await verify(stage, caller, id));
  return id;
}

/** The tables of the ledger that statements were about which a server has logged. */
const TABLES =
  /\b(?:FROM|JOIN)\s+"?(warrants|trace|checks|capsules|postings|accounts|log_tiles|log_checkpoints|solvency_statements|organisations|escalations|agents)\b/gi;

/** What makes tables and guards is not prepared. */
const tablesIn = (log: string): ReadonlySet<string> =>
  new Set(
    log
      .split(/^(?=\d{4}-\d\d-\d\d )/m)
      .filter((entry) => entry.includes("LOG:  execute "))
      .flatMap((entry) => [...entry.matchAll(TABLES)].map(([, table = ""]) => table.toLowerCase())),
  );

/** The tables that work has read on each of the servers. */
async function readDuring(work: () => Promise<unknown>) {
  const before = { primary: (await primary.log()).length, replica: (await replica.log()).length };
  const { reads } = figures();
  await work();
  return {
    reads: figures().reads - reads,
    onReplica: tablesIn((await replica.log()).slice(before.replica)),
    onPrimary: tablesIn((await primary.log()).slice(before.primary)),
  };
}

/** Holds the replay of what was committed, as where a standby is busy. */
async function paused(work: () => Promise<void>): Promise<void> {
  await replica.run("SELECT pg_wal_replay_pause()");
  await until("the replay is paused", async () => {
    const [found] = await replica.run("SELECT pg_get_wal_replay_pause_state() AS state");
    return found?.state === "paused";
  });
  try {
    await work();
  } finally {
    await replica.run("SELECT pg_wal_replay_resume()");
    await until("the replica has caught up", () => figures().state === "in_use" && figures().lagMs === 0);
  }
}

const allOf = async (): Promise<readonly unknown[]> => {
  const asked = { organisation_id: stage.organisationId, mode: "live" } as const;
  return (await Array.fromAsync(must(await statementOf(instance.ctx, MACHINE, asked)))).flat();
};

/** A time after everything. */
const FAR = Number.MAX_SAFE_INTEGER;

let receiptId: string;
let checkId: string;

test("a receipt, what the log has published, statements, proofs, exports and figures are read from the replica", async () => {
  receiptId = await settled();
  [checkId = ""] = (await instance.store.read(({ checks }) => checks.of(receiptId))).map(({ id }) => id);
  must(await signStatement(instance.ctx));
  await until("the replica has the receipt", async () => {
    const { reads } = await readDuring(() => readReceipt(instance.ctx, receiptId));
    return reads === 1;
  });
  const { ctx } = instance;
  const proof = { organisation_id: stage.organisationId, mode: "live" } as const;
  for (const [name, work, onPrimary] of [
    ["receipt", () => readReceipt(ctx, receiptId), ["organisations"]],
    [
      "receipt for whoever is signed in",
      () =>
        fromOneSnapshot(ctx, async (reading) => {
          await reading.store.read((reader) => reader.instance.get());
          return readReceipt(reading, receiptId);
        }),
      ["organisations"],
    ],
    ["tile", () => readTile(ctx, { level: 0, index: 0, width: 1 }), []],
    ["statement", () => readStatementNote(ctx, 1), []],
    ["postings", allOf, []],
    ["payouts", () => pagesOfPayouts(ctx, MACHINE, proof)(null), []],
    ["proof", () => proveSolvency(ctx, MACHINE, proof), []],
    ["solvency", () => showSolvency(ctx, MACHINE), []],
    ["check", () => exportCheck(ctx, { check_id: checkId }), []],
    ["figures", () => ledgerFigures(ctx), []],
    [
      "back-test",
      () =>
        createBackTests().run(
          ctx,
          stage.admin,
          { rules: BUILT_IN_RULES, agentId: null, offset: 0 },
          new AbortController().signal,
        ),
      [],
    ],
  ] as const) {
    const found = await readDuring(work);
    expect([name, found.reads > 0, found.onReplica.size > 0]).toEqual([name, true, true]);
    expect([name, ...found.onPrimary]).toEqual([name, ...onPrimary]);
  }
});

test("the audit copies the rows of the replica, and reads its signatures and receipts there", async () => {
  const found = await readDuring(async () => {
    expect(await auditInstance(instance.ctx, 200, () => {})).toEqual([]);
  });
  expect(found.onReplica).toContain("postings");
  expect(found.onReplica).toContain("capsules");
  expect([...found.onPrimary]).toEqual([]);
});

test("what an agent, a person or a command reads of its own writes is read from the primary", async () => {
  const key = must(await createKey(instance.ctx, MACHINE, { agent_id: caller.agentId }));
  const shell = startTestShell({ ...instance.ctx });
  const as = { Authorization: `Bearer ${key.secret}` };
  const { id } = warrantIn(await open(stage, caller));
  const found = await readDuring(async () => {
    for (const path of [
      `/v1/warrants/${id}`,
      `/v1/warrants/${id}/trace`,
      `/v1/warrants/${id}/checks`,
      "/v1/warrants",
      "/.well-known/holdfast/checkpoint",
      "/.well-known/holdfast/solvency",
    ])
      expect([path, (await shell.ask(path, as)).status]).toEqual([path, 200]);
  });
  expect(found.reads).toBe(0);
  expect([...found.onReplica]).toEqual([]);
  expect(found.onPrimary).toContain("warrants");
});

test("a receipt that was just made is found although the replica lacks it, and is complete", async () => {
  await paused(async () => {
    const id = await settled();
    await anchor(instance.ctx);
    const before = figures();
    const receipt = must(await readReceipt(instance.ctx, id));
    expect(receipt.warrant.id).toBe(id);
    expect(receipt.anchor).not.toBeNull();
    expect(figures().fallbacks.not_found).toBe(before.fallbacks.not_found + 1);
    expect(figures().state).toBe("in_use");
  });
});

test("specs are hidden from a receipt at once, although the replica does not know it", async () => {
  const set = (hidden: boolean) =>
    setReceiptSpecs(instance.ctx, MACHINE, { organisation_id: stage.organisationId, hidden });
  await paused(async () => {
    must(await set(true));
    const before = figures().reads;
    expect(must(await readReceipt(instance.ctx, receiptId)).warrant.spec).toBeNull();
    expect(figures().reads).toBe(before + 1);
  });
  must(await set(false));
});

test("a statement has the posting that was made before it was asked for, although the replica lacks it", async () => {
  const funding = { organisation_id: stage.organisationId, mode: "live", amount: "5" } as const;
  const fund = async () => must(await fundBalance(instance.ctx, MACHINE, funding));
  await paused(async () => {
    const { length } = await allOf();
    await fund();
    expect(await allOf()).toHaveLength(length + 1);
  });
  const before = figures().fallbacks;
  const { length } = await allOf();
  await fund();
  expect(await allOf()).toHaveLength(length + 1);
  expect(figures().fallbacks).toEqual(before);
});

test("a piece of work for whoever is signed in never sees less than before, although its replica fails amid it", async () => {
  await inUse();
  const funding = { organisation_id: stage.organisationId, mode: "live", amount: "5" } as const;
  const known = await fromOneSnapshot(instance.ctx, async (reading) => {
    const count = (from: Context) => from.store.read((reader) => reader.history.postingsSince(FAR));
    const work = fromCopy(reading);
    const last = [await count(reading)];
    must(await fundBalance(instance.ctx, MACHINE, funding));
    const { reads } = figures();
    last.push(await count(work));
    expect(figures().reads).toBe(reads + 1);
    proxy.drop();
    last.push(await count(work), await count(reading));
    return last;
  });
  proxy.pass();
  const [first = 0, then = 0] = known;
  expect(then).toBeGreaterThan(first);
  expect(known).toEqual([first, then, then, then]);
  await inUse();
});

test("a replica that lacks more than the bound is left, and is used again when it has caught up", async () => {
  await inUse();
  states.length = 0;
  await paused(async () => {
    // Its newest beat is then older than the bound.
    aheadMs += 6_000;
    const before = figures();
    must(await readReceipt(instance.ctx, receiptId));
    expect(figures().reads).toBe(before.reads);
    expect(figures().fallbacks.no_replica).toBe(before.fallbacks.no_replica + 1);
    await until("it is late", () => figures().state === "late");
    expect(figures().lagMs).toBeGreaterThan(0);
    await until("later beats are missing too", () => (figures().lagMs ?? 0) > 1_500);
    expect(states).toEqual(["late"]);
  });
  expect(states).toEqual(["late", "in_use"]);
  expect((await readDuring(() => readReceipt(instance.ctx, receiptId))).reads).toBe(1);
});

test("the snapshot itself is judged: a replica that fell back after it was asked gives nothing", async () => {
  await inUse();
  const before = figures();
  const found = instance.store.read(
    async ({ organisations }) => {
      const listed = await organisations.list();
      aheadMs += 6_000;
      return listed;
    },
    { suffices: () => true },
  );
  expect(await found).not.toEqual([]);
  expect(figures().fallbacks.failed).toBe(before.fallbacks.failed + 1);
  expect(figures().reads).toBe(before.reads);
});

test("a replica that answers nothing any more is left, and its reads go to the primary", async () => {
  await inUse();
  states.length = 0;
  proxy.hold("to client");
  const begun = performance.now();
  const [receipt, statement] = await Promise.all([readReceipt(instance.ctx, receiptId), allOf()]);
  expect(must(receipt).warrant.id).toBe(receiptId);
  expect(statement.length).toBeGreaterThan(0);
  // The server itself would end their transactions after 5 s.
  expect(performance.now() - begun).toBeLessThan(4_500);
  await until("it is away", () => figures().state === "away");
  proxy.pass();
  await inUse();
  expect(states).toEqual(["away", "in_use"]);
});

const isLocked = async (on: SQL, table: string): Promise<boolean> => {
  const locks = await on`SELECT 1 FROM pg_locks
    WHERE mode = 'AccessExclusiveLock' AND granted AND relation = ${table}::regclass`;
  return locks.length > 0;
};

test("a replica whose work waits for long is left for a while, although it says which beat it has", async () => {
  const own = await newProxy();
  const patience = { replicaMs: 300, replicaAuditMs: 300 };
  const { store } = await follow(through(own, replicaUrl), undefined, { patience });
  const [sql, onReplica] = [connectTo(url), connectTo(replicaUrl)];
  const stateIs = (state: string) => store.figures().readReplicas[0]?.state === state;

  async function expectLeft(work: () => Promise<unknown>, letGo: () => unknown): Promise<void> {
    const { failed } = store.figures().fallbacks;
    const answer = work();
    await until("it is left", () => stateIs("away"), 1_500).finally(letGo);
    expect(await answer).toEqual([]);
    expect(store.figures().fallbacks.failed).toBe(failed + 1);
    // Each second it says which beat it has, and nothing else is heard of that.
    await Bun.sleep(2_500);
    expect(stateIs("away")).toBe(true);
    aheadMs += 30_000;
    await until("reads go to it again", () => stateIs("in_use"));
  }

  const unlock = await lockOutside(sql, "LOCK TABLE checks IN ACCESS EXCLUSIVE MODE");
  await until("the replica has the lock too", () => isLocked(onReplica, "checks"));
  await expectLeft(
    () => store.read(({ history }) => history.failures(FAR, 1), { suffices: () => true }),
    unlock,
  );
  let held = false;
  const hold = () => {
    if (!held) own.hold("to client");
    held = true;
  };
  await expectLeft(() => store.audit(hold), own.pass);
});

test("a replica that is killed is left, also amid an audit, and used again when it is back", async () => {
  states.length = 0;
  let killed: Promise<void> | null = null;
  const problems = await auditInstance(instance.ctx, 200, () => {
    killed ??= replica.kill();
  });
  expect(problems).toEqual([]);
  await killed;
  expect(must(await readReceipt(instance.ctx, receiptId)).warrant.id).toBe(receiptId);
  expect(await readTile(instance.ctx, { level: 0, index: 0, width: 1 })).not.toBeNull();
  expect(await auditInstance(instance.ctx, 200, () => {})).toEqual([]);
  expect(await allOf()).not.toEqual([]);
  await until("it is left", () => figures().state === "away");
  await replica.start();
  await inUse();
  // It may lack much when it is back.
  expect(states.filter((state) => state !== "late")).toEqual(["away", "in_use"]);
});

test("while the primary commits nothing, reads go to it, and do not wait for long", async () => {
  await primary.run("ALTER SYSTEM SET synchronous_standby_names = 'nobody'");
  await primary.run("SELECT pg_reload_conf()");
  try {
    await until("commits wait", async () => {
      const [waiting] = await primary.run("SELECT 1 FROM pg_stat_activity WHERE wait_event = 'SyncRep'");
      return waiting !== undefined;
    });
    const begun = performance.now();
    expect(await allOf()).not.toEqual([]);
    expect(performance.now() - begun).toBeLessThan(8_000);
  } finally {
    await primary.run("ALTER SYSTEM RESET synchronous_standby_names");
    await primary.run("SELECT pg_reload_conf()");
  }
  await inUse();
});

test("a server is ready without its replica, and says so; one that names another server as its replica is refused", async () => {
  const folder = mkdtempSync(join(tmpdir(), "holdfast-replicas-"));
  const config = must(readConfig({ DATA: folder, PORT: "0" }, {}));
  const settings: Record<string, string> = {
    ...postgresSettings(url),
    HOLDFAST_METRICS_TOKEN: "the-token-of-a-prometheus",
  };
  const [published] = instance.ctx.tokens.jwks.keys;
  const signed = createPublicKey({ key: published, format: "jwk" } as JsonWebKeyInput);
  settings.HOLDFAST_SIGNING_KEY += `\n${signed.export({ type: "spki", format: "pem" })}`;
  const secretsWith = (replicas: string) =>
    must(readSecrets({ ...settings, HOLDFAST_DATABASE_REPLICAS: replicas }));
  await expect(startServer(config, secretsWith(`${replicaUrl},${url}`))).rejects.toMatchObject({
    message: expect.stringMatching(
      /^HOLDFAST_DATABASE_REPLICAS: test_1 at 127\.0\.0\.1:\d+: the server takes writes/,
    ),
  });
  let told: readonly string[] = [];
  const printed = spyOn(process.stderr, "write").mockReturnValue(true);
  const server = must(await startServer(config, secretsWith(through(proxy, replicaUrl))));
  const said = async () => {
    const readiness: Json = await (await fetch(`${server.url}/readyz`)).json();
    const { ok, message } = readiness.checks.find(({ name }: Json) => name === "database");
    return `${ok}: ${message.replace(/.*made again\. /, "").replaceAll(/\d+ ms/g, "… ms")}`;
  };
  try {
    await until(
      "it reads from its replica",
      async () =>
        (await said()) ===
        "true: It reports 1 replicas, the latest of them by … ms. Reads go to 1 of 1 replicas, the latest of them by … ms.",
    );
    await fetch(`${server.url}/t/${receiptId}`);
    const headers = { Authorization: `Bearer ${settings.HOLDFAST_METRICS_TOKEN}` };
    const metrics = await (await fetch(`${server.url}/metrics`, { headers })).text();
    expect(metrics).toMatch(
      /^holdfast_database_read_replica_reads_total\{replica="test_1 at 127[^}]*"\} [1-9]/m,
    );
    proxy.drop();
    await until("it knows", async () => (await said()).endsWith(" Reads go to 0 of 1 replicas."));
    expect((await fetch(`${server.url}/t/${receiptId}`)).status).toBe(200);
  } finally {
    proxy.pass();
    await server.stop();
    rmSync(folder, { recursive: true, force: true });
    const lines = printed.mock.calls.map(([line]) => String(line));
    printed.mockRestore();
    told = lines.filter((line) => line.includes("this replica")).map((line) => JSON.parse(line).message);
  }
  expect(told).toEqual(["reads go to this replica", "reads do not go to this replica: it does not answer"]);
  await inUse();
});

test("a server that takes writes, or is of another ledger, or not of this server, is refused by name; one that is away is not", async () => {
  const problem = (of: string) => problemOfReplica(addressOf(of), addressOf(url), "0.1.0");
  expect(await problem(replicaUrl)).toBeNull();
  expect(await problem(url)).toStartWith("the server takes writes, and so is no replica: name a standby of");
  const other = await primary.createDatabase();
  const otherOnReplica = replica.url(new URL(other).pathname.slice(1));
  await (await openInstance(other)).close();
  await until(
    "the replica has the other ledger",
    async () => (await problem(otherOnReplica))?.startsWith("the server has another ledger, ") ?? false,
  );
  const wrong = addressOf(replicaUrl);
  expect(await problemOfReplica({ ...wrong, password: "wrong" }, addressOf(url), "0.1.0")).toStartWith(
    "the server refuses the user or the password",
  );
  await primary.run("CREATE ROLE reader LOGIN PASSWORD 'of-reader'");
  const reader = { ...wrong, user: "reader", password: "of-reader" };
  const problemOfReader = () => problemOfReplica(reader, addressOf(url), "0.1.0");
  await until(
    "a user who may not read is told so",
    async () =>
      (await problemOfReader())?.startsWith("the user may not read the ledger there: name one that may") ??
      false,
  );
  await primary.run("GRANT pg_read_all_data TO reader");
  await until("a user who may read is taken", async () => (await problemOfReader()) === null);
  expect(await problemOfReplica({ ...wrong, port: 1 }, addressOf(url), "0.1.0")).toBeNull();
});

test("what an audit finds in the rows of a replica names it", async () => {
  const sql = connectTo(url);
  await sql.unsafe("ALTER TABLE accounts DISABLE TRIGGER USER");
  await sql.unsafe("UPDATE accounts SET available = available + 1, paid = paid - 1");
  await sql.unsafe("ALTER TABLE accounts ENABLE TRIGGER USER");
  const problems = await auditInstance(instance.ctx, 0, () => {});
  expect(problems).toContainEqual(expect.stringMatching(/ \(in the replica test_1 at 127\.0\.0\.1:\d+\)$/));
});
