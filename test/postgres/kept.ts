/** Rows that an instance keeps from one batch to the next: what another instance has committed is heeded by the next command. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import type { SQL } from "bun";
import { type KeyCaller, MODES } from "../../src/core/roles.ts";
import type { SpendSession } from "../../src/core/session.ts";
import { DAY_MS } from "../../src/core/time.ts";
import { setAgentStatus } from "../../src/services/admin/agents.ts";
import { MACHINE } from "../../src/services/admin/authority.ts";
import { revokeKey } from "../../src/services/admin/keys.ts";
import { createPolicy } from "../../src/services/admin/policies.ts";
import { createSchema } from "../../src/services/admin/schemas.ts";
import { createSession } from "../../src/services/admin/sessions.ts";
import { setKillSwitch, setPasskeyThreshold } from "../../src/services/admin/switches.ts";
import { createWebhook } from "../../src/services/admin/webhooks.ts";
import { lockStatements, locksOf } from "../../src/store/postgres/locks.ts";
import { migratePostgres, postgresMigrations } from "../../src/store/postgres/migrate.ts";
import type { Scope } from "../../src/store/scope.ts";
import { type Postgres, startPostgres } from "../support/postgres-server.ts";
import { codeOf, createCaller, createStage, must, open, type Stage, warrantIn } from "../support/stage.ts";
import { until } from "../support/until.ts";
import { createConnections } from "./connections.ts";
import { type Instance, lockOf, lockOutside, openInstance, waitingForLocks } from "./store-context.ts";

setDefaultTimeout(120_000);

let postgres: Postgres;
let url: string;
let sql: SQL;
let watching: SQL;
let here: Instance;
let there: Instance;
const { closing, connectTo, closeAll } = createConnections(() => postgres.port);

beforeAll(async () => {
  postgres = await startPostgres();
  url = await postgres.createDatabase();
  [here, there] = [await openInstance(url), await openInstance(url)];
  closing.push(here.close, there.close);
  [sql, watching] = [connectTo(url), connectTo(url)];
});
afterAll(async () => {
  await closeAll();
  await postgres.close();
});

type Setting = {
  readonly stage: Stage;
  readonly caller: KeyCaller;
  /** The other instance's. */
  readonly ctx: Instance["ctx"];
  readonly organisation: { readonly organisation_id: string };
};

const RULES = { bands: [{ minScore: 0, outcome: "escalate" }] };

const codeOfOpening =
  (input: Parameters<typeof open>[2] = {}) =>
  async ({ stage, caller }: Setting) =>
    codeOf(await open(stage, caller, input));

/** Something of a warrant that is opened now. */
const ofOpened =
  (read: (warrant: ReturnType<typeof warrantIn>) => unknown) =>
  async ({ stage, caller }: Setting) =>
    read(warrantIn(await open(stage, caller, { agent_id: caller.agentId })));

/** A session that lets an agent spend nothing. */
const sessionOf = (agentId: string, now: number): SpendSession => ({
  ...{ id: "ses_of_another_scope", agentId, createdAt: now, expiresAt: now + DAY_MS, revokedAt: null },
  ...{ amountCeiling: 1n, amountSpent: 0n, amountHeld: 0n, heldAt: null },
  ...{ warrantLimit: null, warrantCount: 0, failureBudget: 3, failureCount: 0 },
  ...{ perWarrantMax: null, hourlyMax: null, dailyMax: null, payees: null, sourceOrigins: null },
});

const SCHEMA_CLAUSE = { kind: "json.schema", schema: "weather" };

/** A verb of the other instance, and what this one answers before and after it. */
const CHANGES: readonly {
  readonly name: string;
  readonly ask: (setting: Setting) => Promise<unknown>;
  readonly change: (setting: Setting) => Promise<unknown>;
  readonly before: unknown;
  readonly after: unknown;
}[] = [
  {
    name: "the kill switch",
    ask: codeOfOpening(),
    change: ({ ctx, organisation }) => setKillSwitch(ctx, MACHINE, { ...organisation, on: true }),
    before: 201,
    after: "kill_switch_active",
  },
  {
    name: "an agent is killed",
    ask: codeOfOpening(),
    change: ({ ctx, caller }) => setAgentStatus(ctx, MACHINE, { agent_id: caller.agentId, status: "killed" }),
    before: 201,
    after: "agent_not_active",
  },
  {
    name: "an API key is revoked",
    ask: codeOfOpening(),
    change: ({ ctx, caller }) => revokeKey(ctx, MACHINE, { key_id: caller.keyId }),
    before: 201,
    after: "not_authenticated",
  },
  {
    name: "the organisation's policy",
    ask: ofOpened(({ policy_version: version }) => version),
    change: ({ ctx, organisation }) =>
      createPolicy(ctx, MACHINE, { ...organisation, name: "P", rules: RULES }),
    before: null,
    after: 1,
  },
  {
    name: "an agent's policy",
    ask: ofOpened(({ policy_version: version }) => version),
    change: ({ ctx, caller, organisation }) =>
      createPolicy(ctx, MACHINE, { ...organisation, agent_id: caller.agentId, name: "P", rules: RULES }),
    before: null,
    after: 1,
  },
  {
    name: "a session",
    ask: async ({ stage, caller }) => codeOf(await open(stage, caller, { agent_id: caller.agentId })),
    change: ({ ctx, caller }) =>
      createSession(ctx, MACHINE, { agent_id: caller.agentId, amount_ceiling: "99" }),
    before: 201,
    after: "session_ceiling_exceeded",
  },
  {
    name: "a schema",
    ask: codeOfOpening({ spec: { clauses: [SCHEMA_CLAUSE] } }),
    change: ({ ctx, organisation }) =>
      createSchema(ctx, MACHINE, { ...organisation, name: "weather", schema: { type: "object" } }),
    before: "validation_failed",
    after: 201,
  },
  {
    name: "the passkey threshold",
    ask: codeOfOpening(),
    change: ({ ctx, organisation }) => setPasskeyThreshold(ctx, MACHINE, { ...organisation, amount: "1" }),
    before: 201,
    after: "passkey_unavailable",
  },
  {
    name: "a webhook",
    ask: async ({ stage, caller }) => {
      const { id } = warrantIn(await open(stage, caller));
      return (await sql`SELECT count(*)::int4 AS n FROM webhook_deliveries WHERE warrant_id = ${id}`)[0].n;
    },
    change: ({ ctx, organisation }) =>
      createWebhook(ctx, MACHINE, { ...organisation, mode: "live", url: "https://hooks.example/" }),
    before: 0,
    after: 1,
  },
];

async function settingOf(): Promise<Setting> {
  const stage = await createStage(here.ctx);
  const caller = await createCaller(stage);
  return { stage, caller, ctx: there.ctx, organisation: { organisation_id: stage.organisationId } };
}

test.each(CHANGES)("of another instance: $name", async ({ ask, change, before, after }) => {
  const setting = await settingOf();
  // The second time it is answered from what was kept.
  for (let times = 0; times < 2; times++) expect(await ask(setting)).toEqual(before);
  must((await change(setting)) as never);
  expect(await ask(setting)).toEqual(after);
});

test("a read of this instance sees what another has committed, also while it reads all the time", async () => {
  const { ctx, organisation } = await settingOf();
  const isOn = () =>
    here.store.read(
      async ({ organisations }) => (await organisations.get(organisation.organisation_id))?.killSwitch,
    );
  let reading = true;
  const readers = Array.from({ length: 16 }, async () => {
    for (; reading; await Bun.sleep(1)) await isOn();
  });
  const seen: unknown[] = [];
  for (let round = 0; round < 40; round++) {
    must(await setKillSwitch(ctx, MACHINE, { ...organisation, on: round % 2 === 0 }));
    seen.push(await isOn());
  }
  reading = false;
  await Promise.all(readers);
  expect(seen).toEqual(seen.map((_, round) => round % 2 === 0));
});

test("a change of this instance is heeded by its next command too", async () => {
  const { stage, caller, organisation } = await settingOf();
  const codeNow = async () => codeOf(await open(stage, caller));
  const switched = (on: boolean) => setKillSwitch(here.ctx, MACHINE, { ...organisation, on });
  expect(await codeNow()).toBe(201);
  await switched(true);
  expect(await codeNow()).toBe("kill_switch_active");
  await switched(false);
  expect(await codeNow()).toBe(201);
});

test("what is kept is read again when the revision of its scope is another, and not before", async () => {
  const { stage, caller } = await settingOf();
  const codeNow = async () => codeOf(await open(stage, caller));
  expect(await codeNow()).toBe(201);
  await sql`UPDATE organisations SET kill_switch = 1 WHERE id = ${stage.organisationId}`;
  expect(await codeNow()).toBe(201);
  await sql`UPDATE scopes SET revision = revision + 1 WHERE organisation_id = ${stage.organisationId} AND mode = 'sandbox'`;
  expect(await codeNow()).toBe(201);
  await sql`UPDATE scopes SET revision = revision + 1 WHERE organisation_id = ${stage.organisationId} AND mode = 'live'`;
  expect(await codeNow()).toBe("kill_switch_active");
});

/** Writes a session of an agent by a command of the other mode, and of another instance. */
const writeSession = (
  { stage: { organisationId }, caller: { agentId } }: Setting,
  needs: { readonly agent: string } | Record<string, never>,
): Promise<unknown> =>
  there.store.execute({
    scope: { organisationId, mode: "sandbox" },
    needs,
    decide: (_, now) => ({
      answer: null,
      change: { put: [{ kind: "spendSession", before: null, row: sessionOf(agentId, now) }] },
    }),
  });

test("a session has its agent's rows read again, whatever the scope of its command; of an agent that was not read it is not written", async () => {
  const setting = await settingOf();
  const { stage, caller } = setting;
  const codeNow = async () => codeOf(await open(stage, caller, { agent_id: caller.agentId }));
  for (let times = 0; times < 2; times++) expect(await codeNow()).toBe(201);
  await expect(writeSession(setting, {})).rejects.toThrow(
    "a spendSession is written whose agent was not read: others would keep what was before it",
  );
  expect(await codeNow()).toBe(201);
  expect(await writeSession(setting, { agent: caller.agentId })).toBeNull();
  expect(await codeNow()).toBe("session_ceiling_exceeded");
});

test("a change of the tables by a newer executable has everything read again", async () => {
  const { stage } = await settingOf();
  const revisions = async () =>
    (
      await sql`SELECT revision FROM scopes WHERE organisation_id = ${stage.organisationId} ORDER BY mode`
    ).map(({ revision }: { revision: bigint }) => revision);
  const before: readonly bigint[] = await revisions();
  await changeTables("next");
  expect(await revisions()).toEqual(before.map((revision) => revision + 1n));
});

/** Changes the tables as a newer executable would that has one change more. */
function changeTables(table: string): Promise<void> {
  const pending = { name: `9999_${table}`, sql: `CREATE TABLE ${table} (n int8)`, hash: "ff" };
  const newInstance = () => ({ id: "ins_2", createdAt: 1 });
  return migratePostgres(sql, { version: "0.1.0", newInstance }, [...postgresMigrations(), pending]);
}

/** How often a statement was ended since others were in its way. */
const endedSoFar = async () =>
  (await postgres.log()).match(/deadlock detected|due to lock timeout/g)?.length ?? 0;
const lockScope = (position: bigint) => `SELECT 1 FROM scopes WHERE position = ${position} FOR NO KEY UPDATE`;

test.each([
  ["of_scopes", (first: bigint) => lockScope(first), (_: bigint, second: bigint) => lockScope(second)],
  [
    "of_a_whole_organisation",
    (first: bigint, second: bigint) => `${lockScope(first)}; ${lockScope(second)}`,
    (_first: bigint, _second: bigint, id: string) =>
      `SELECT 1 FROM organisations WHERE id = '${id}' FOR NO KEY UPDATE`,
  ],
])("a change of the tables locks in the order of batches %s", async (name, begin, goOn) => {
  const { stage } = await settingOf();
  const [{ first, second }] = await sql`SELECT min(position) AS first, max(position) AS second FROM scopes
    WHERE organisation_id = ${stage.organisationId}`;
  const isTurned = async () => {
    // An update moves the row in its table.
    await sql`UPDATE scopes SET revision = revision WHERE position = ${first}`;
    const [row] = await sql`SELECT a.ctid > b.ctid AS turned FROM scopes a, scopes b
      WHERE a.position = ${first} AND b.position = ${second}`;
    return row.turned === true;
  };
  await until("the second scope comes before the first in the table", isTurned);
  const ended = await endedSoFar();
  const batch = await connectTo(url).reserve();
  await batch`BEGIN`;
  await batch.unsafe(begin(first, second)).simple();
  const changed = changeTables(name);
  await until("it waits for the batch", async () => (await waitingForLocks(watching)) > 0);
  await batch.unsafe(goOn(first, second, stage.organisationId)).simple();
  await batch`COMMIT`;
  batch.release();
  await changed;
  // Else it would have been tried again.
  expect(await endedSoFar()).toBe(ended);
});

test("commands that come while a batch waits for its locks join it", async () => {
  const { stage, caller } = await settingOf();
  await open(stage, caller);
  const before = { ...here.store.figures() };
  const letGo = await lockOutside(sql, lockOf(stage.organisationId));
  const first = open(stage, caller);
  await until("it waits for the lock", async () => (await waitingForLocks(watching)) > 0);
  const joined = Promise.all([1, 2, 3].map(() => open(stage, caller)));
  await until("they wait too", () => here.store.figures().waiting === 3);
  await letGo();
  for (const answer of [await first, ...(await joined)]) must(answer);
  const { batches, commands } = here.store.figures();
  expect({ batches: batches - before.batches, commands: commands - before.commands }).toEqual({
    batches: 1,
    commands: 4,
  });
});

/** Takes the locks of a batch again and again, as an instance does that always has something to do. */
async function keepBusy(scope: Scope, isOver: () => boolean): Promise<void> {
  const batch = await connectTo(url).reserve();
  const locks = lockStatements(locksOf([{ scope, needs: {}, decide: () => ({ answer: null }) }]));
  while (!isOver()) {
    await batch`BEGIN`;
    for (const { text, params } of locks) await batch.unsafe(text, [...params]);
    // It works, while the other of its scope waits.
    await Bun.sleep(5);
    await batch`COMMIT`;
  }
  batch.release();
}

test("the kill switch does not wait for as long as instances take turns, in both modes", async () => {
  const { stage, organisation } = await settingOf();
  let isOver = false;
  const busy = [...MODES, ...MODES].map((mode) =>
    keepBusy({ organisationId: stage.organisationId, mode }, () => isOver),
  );
  await until("one of each mode waits", async () => (await waitingForLocks(watching)) === 2);
  const before = here.store.figures().retries;
  const switched = await setKillSwitch(here.ctx, MACHINE, { ...organisation, on: true }).finally(() => {
    isOver = true;
  });
  await Promise.all(busy);
  must(switched as never);
  expect(here.store.figures().retries).toBe(before);
});

test.each(MODES)(
  "the kill switch waits for a batch of the mode %s before it keeps others from the organisation",
  async (mode) => {
    const { stage, organisation } = await settingOf();
    const letGo = await lockOutside(
      sql,
      `SELECT 1 FROM scopes WHERE organisation_id = '${stage.organisationId}' AND mode = '${mode}' FOR NO KEY UPDATE`,
    );
    const switched = setKillSwitch(here.ctx, MACHINE, { ...organisation, on: true });
    await until("it waits", async () => (await waitingForLocks(watching)) > 0);
    const share = `SELECT 1 FROM organisations WHERE id = '${stage.organisationId}' FOR SHARE NOWAIT`;
    await (await lockOutside(watching, share))();
    await letGo();
    must((await switched) as never);
  },
);
