import { Database } from "bun:sqlite";
import assert from "node:assert/strict";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import type { Mode } from "../../src/core/roles.ts";
import { until } from "../support/until.ts";
import { type Acknowledged, isFinal, type Knowledge, type KnownWarrant } from "./knowledge.ts";
import { readWarrant, send } from "./load.ts";
import type { Market } from "./market.ts";
import type { Receiver } from "./outside.ts";
import type { Parties } from "./parties.ts";
import type { Json, Program } from "./program.ts";

/** What must be true after a crash, once every unanswered request was sent again. */

const AT_ONCE = 12;
/** An attempt may fail, may be cut off by the next kill, and may wait 25 s for its last try. */
const DELIVERED_MS = 60_000;
const GONE_MS = 5_000;
/** A purchase that was cut off waits for the job that ends it, and for the chain. */
const ENDED_MS = 30_000;
const BALANCED_MS = 10_000;

/** Runs `each` for every item, several at a time. */
async function forAll<Item>(items: Iterable<Item>, each: (item: Item) => Promise<unknown>): Promise<void> {
  const rest = [...items].reverse();
  const work = async () => {
    for (let item = rest.pop(); item !== undefined; item = rest.pop()) await each(item);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
}

/** The same request must get the same answer, byte for byte. */
export const checkReplays = (url: string, acknowledged: Iterable<Acknowledged>): Promise<void> =>
  forAll(acknowledged, async ({ sent, answer }) => {
    const { status, text, replayed } = await send(url, sent);
    assert.deepEqual(
      { status, text, replayed },
      { status: answer.status, text: answer.text, replayed: true },
      `the replay of ${sent.key}`,
    );
  });

const idIn = (body: Json): string => body.warrant_id ?? (body.warrant ?? body).id;

/**
 * No warrant may be older than the newest answer about it, and overdue warrants must expire.
 *
 * @param sweptMs how long it may take until deadlines are swept again
 */
export async function checkWarrants(
  url: string,
  knowledge: Knowledge,
  acknowledged: readonly Acknowledged[],
  { now, sweptMs }: { readonly now: () => number; readonly sweptMs: number },
): Promise<void> {
  const touched = new Set(acknowledged.map(({ answer }) => idIn(JSON.parse(answer.text))));
  const reread = [...knowledge.warrants.values()].filter(
    (warrant) => !isFinal(warrant) || touched.has(warrant.id),
  );
  const readBack = async (known: KnownWarrant) => {
    const body = await readWarrant(url, known);
    assert.ok(
      body.version >= known.version,
      `${known.id} was at ${known.version}, and is at ${body.version}`,
    );
    knowledge.learn(body);
  };
  await forAll(reread, readBack);
  const soon = [...knowledge.warrants.values()].filter(
    ({ state, deadline }) => state === "held" && deadline < now() + 60_000,
  );
  await forAll(soon, ({ id }) =>
    until(
      `${id} has expired`,
      async () => {
        const known = knowledge.warrants.get(id);
        assert.ok(known);
        await readBack(known);
        return isFinal(knowledge.warrants.get(id) ?? known);
      },
      sweptMs,
    ),
  );
}

export type Counts = {
  /** How many purchases there are of each kind of end: paid, unpaid, or not known yet. */
  readonly purchases: Readonly<Record<string, number>>;
  readonly states: Readonly<Record<string, number>>;
  readonly events: number;
  /** The number of events that were received more than once. */
  readonly duplicates: number;
};

/** The ledger's file: one warrant for each key, nothing half done, every event received. */
export async function checkLedger(
  folder: string,
  { warrants, done }: Knowledge,
  receiver: Receiver,
  market: Market,
): Promise<Counts> {
  const database = new Database(join(folder, "data", "holdfast.db"), { readonly: true });
  try {
    const column = (sql: string) => database.query(sql).values().flat() as (string | number)[];
    await until(
      "all purchases have ended",
      () => column("SELECT id FROM purchases WHERE phase <> 'ended'").length === 0,
      ENDED_MS,
    );
    const ids = column("SELECT id FROM warrants");
    assert.deepEqual(
      ids.filter((id) => !warrants.has(String(id))),
      [],
      "warrants that no acknowledged open made",
    );
    assert.equal(ids.length, warrants.size, "warrants in the ledger, and acknowledged opens");
    // Every request has an answer by now. If a key had been lost, more would be done than was acknowledged.
    const [checks, decisions] = column(
      `SELECT count(*) FROM checks WHERE warrant NOT IN (${BOUGHT})
       UNION ALL SELECT count(*) FROM trace WHERE actor_kind = 'user'`,
    );
    assert.deepEqual(
      { checks, decisions },
      { checks: done.check.size, decisions: done.decision.size },
      "checks and people's decisions in the ledger, and acknowledged ones",
    );
    assert.deepEqual(column("SELECT id FROM warrants WHERE state = 'verifying'"), [], "stuck in verifying");
    assert.deepEqual(
      column("SELECT key FROM idempotency_keys WHERE status IS NULL"),
      [],
      "keys in flight while nothing runs",
    );
    checkTimes(column);
    const purchases = checkPurchases(database, market, done.purchase.size);
    const keys = Object.values(done).reduce((sum, { size }) => sum + size, 0);
    assert.deepEqual(column("SELECT count(*) FROM idempotency_keys"), [keys], "keys that are remembered");
    const events = column("SELECT event_id FROM trace WHERE event_id IS NOT NULL").map(String);
    await until(
      "all events were received",
      () => events.every((id) => receiver.acceptedOf(id) > 0),
      DELIVERED_MS,
    );
    await until(
      "all deliveries are recorded",
      () => {
        const statuses = column("SELECT DISTINCT status FROM webhook_deliveries");
        return statuses.every((status) => status === "delivered");
      },
      DELIVERED_MS,
    );
    const states = database
      .query<{ state: string; count: number }, []>(
        "SELECT state, count(*) AS count FROM warrants GROUP BY state",
      )
      .all();
    return {
      purchases,
      states: Object.fromEntries(states.map(({ state, count }) => [state, count])),
      events: events.length,
      duplicates: events.filter((id) => receiver.acceptedOf(id) > 1).length,
    };
  } finally {
    database.close();
  }
}

/** The warrants of purchases. */
const BOUGHT = "SELECT warrants.position FROM warrants JOIN purchases ON purchases.warrant_id = warrants.id";

/** What the entries of a table belong to: an organisation in a mode. */
const SCOPED = [
  ["trace", "warrants ON warrants.position = warrant"],
  ["postings", "accounts ON accounts.position = account"],
] as const;

/** Within an organisation and mode the times of records never run back, whatever the clocks do. */
function checkTimes(column: (sql: string) => (string | number)[]): void {
  for (const [table, scoped] of SCOPED) {
    const back = column(
      `SELECT position FROM (
         SELECT ${table}.position, recorded_at < lag(recorded_at) OVER (PARTITION BY scope ORDER BY ${table}.position) AS back
         FROM ${table} JOIN ${scoped})
       WHERE back`,
    );
    assert.deepEqual(back, [], `entries of ${table} whose time is before that of the entry before`);
  }
}

type PurchaseRow = {
  readonly url: string;
  readonly nonce: string | null;
  readonly known: string | null;
  readonly state: string;
  readonly checks: number;
};

/** Every purchase has one warrant, whose money went where the chain says that the seller was paid, or is held. */
function checkPurchases(database: Database, market: Market, answered: number): Record<string, number> {
  const rows = database
    .query<PurchaseRow, []>(
      `SELECT url, nonce, known, state, (SELECT count(*) FROM checks WHERE warrant = warrants.position) AS checks
       FROM purchases LEFT JOIN warrants ON warrants.id = warrant_id`,
    )
    .all();
  assert.equal(rows.length, answered, "purchases in the ledger, and acknowledged ones");
  assert.deepEqual(market.wrong, [], "payments that must not come");
  const ends: Record<string, number> = {};
  for (const { url, nonce, known, state, checks } of rows) {
    assert.ok(checks <= 1, `${url} was checked ${checks} times`);
    const end = nonce === null ? "by voucher" : `${known}`;
    ends[end] = (ends[end] ?? 0) + 1;
    if (nonce === null) continue;
    const isSettled = market.isSettled(nonce);
    const paid = state === "released" || state === "partially_released";
    const what = `${url} is ${known} and ${state}, and the chain has ${isSettled ? "settled it" : "not settled it"}`;
    assert.ok(known === "unknown" ? state === "escalated" : (known === "paid") === isSettled, what);
    assert.ok(state === "escalated" || paid === isSettled, what);
  }
  return ends;
}

/** The chain may have said meanwhile whether a seller was paid. */
export const learnRest = (url: string, knowledge: Knowledge): Promise<void> =>
  forAll(
    [...knowledge.warrants.values()].filter((warrant) => !warrant.mayMove && !isFinal(warrant)),
    async (warrant) => knowledge.learn(await readWarrant(url, warrant)),
  );

/** The balances follow from the answers. */
export async function checkBalances(
  program: Program,
  { organisationId }: Parties,
  knowledge: Knowledge,
  learn: () => Promise<void>,
): Promise<void> {
  for (const mode of ["live", "sandbox"] as const satisfies readonly Mode[]) {
    const own = ["--organisation", organisationId, "--mode", mode];
    let shown: unknown;
    let expected: unknown;
    await until(
      `the ${mode} balance follows from the warrants`,
      async () => {
        await learn();
        const { available, held, paid } = knowledge.balance(mode);
        shown = (await program.command("balances", "show", ...own)).balances;
        expected = [{ asset: "USDC", available: `${available}`, held: `${held}`, paid: `${paid}` }];
        return isDeepStrictEqual(shown, expected);
      },
      BALANCED_MS,
    ).catch(() => assert.deepEqual(shown, expected, `the ${mode} balance`));
  }
}

/** The audit finds nothing: not in the ledger, nor in the log beside what the witness has signed of it. */
export async function checkAudit(program: Program, witness: string): Promise<void> {
  const { ok, problems } = await program.command("audit", "--witness", witness);
  assert.deepEqual({ ok, problems }, { ok: true, problems: [] });
}

/** The ledger that a kill left. The first to open it puts its log right, and meanwhile others wait. */
export function openLeft(folder: string): Database {
  const database = new Database(join(folder, "data", "holdfast.db"), { readonly: true });
  database.run("PRAGMA busy_timeout = 10000");
  return database;
}

/** What a server left when it was killed with its clock ahead: no sweep may have believed it. */
export function checkHeld(folder: string, ids: readonly string[]): void {
  const database = openLeft(folder);
  try {
    for (const id of ids) {
      const row = database.query("SELECT state FROM warrants WHERE id = ?").get(id);
      assert.deepEqual(row, { state: "held" }, `${id}, whose deadline only the wrong clock had passed`);
    }
  } finally {
    database.close();
  }
}

/** When the server has ended, the processes that it started must end too. */
export const untilGone = (program: Program): Promise<unknown> =>
  until("no process runs in the folder", () => program.processes().length === 0, GONE_MS);
