import { Database } from "bun:sqlite";
import assert from "node:assert/strict";
import { join } from "node:path";
import type { Mode } from "../../src/core/roles.ts";
import { until } from "../support/until.ts";
import { type Acknowledged, isFinal, type Knowledge, type KnownWarrant } from "./knowledge.ts";
import { readWarrant, send } from "./load.ts";
import type { Receiver } from "./outside.ts";
import type { Parties } from "./parties.ts";
import type { Json, Program } from "./program.ts";

/** What must be true after a crash, once every unanswered request was sent again. */

const AT_ONCE = 12;
const EXPIRES_MS = 10_000;
/** An attempt may fail, may be cut off by the next kill, and may wait 25 s for its last try. */
const DELIVERED_MS = 60_000;
const GONE_MS = 5_000;

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

const idIn = (body: Json): string => (body.warrant ?? body).id;

/** No warrant may be older than the newest answer about it, and overdue warrants must expire. */
export async function checkWarrants(
  url: string,
  knowledge: Knowledge,
  acknowledged: readonly Acknowledged[],
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
    ({ state, deadline }) => state === "held" && deadline < Date.now() + 60_000,
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
      EXPIRES_MS,
    ),
  );
}

export type Counts = {
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
): Promise<Counts> {
  const database = new Database(join(folder, "data", "holdfast.db"), { readonly: true });
  try {
    const column = (sql: string) => database.query(sql).values().flat() as (string | number)[];
    const ids = column("SELECT id FROM warrants");
    assert.deepEqual(
      ids.filter((id) => !warrants.has(String(id))),
      [],
      "warrants that no acknowledged open made",
    );
    assert.equal(ids.length, warrants.size, "warrants in the ledger, and acknowledged opens");
    // Every request has an answer by now. If a key had been lost, more would be done than was acknowledged.
    const [checks, decisions] = column(
      "SELECT count(*) FROM checks UNION ALL SELECT count(*) FROM trace WHERE actor_kind = 'user'",
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
      states: Object.fromEntries(states.map(({ state, count }) => [state, count])),
      events: events.length,
      duplicates: events.filter((id) => receiver.acceptedOf(id) > 1).length,
    };
  } finally {
    database.close();
  }
}

/** The balances follow from the answers, and the audit finds nothing. */
export async function checkBalances(
  program: Program,
  { organisationId }: Parties,
  knowledge: Knowledge,
): Promise<void> {
  for (const mode of ["live", "sandbox"] as const satisfies readonly Mode[]) {
    const own = ["--organisation", organisationId, "--mode", mode];
    const { balances } = await program.command("balances", "show", ...own);
    const { available, held, paid } = knowledge.balance(mode);
    assert.deepEqual(
      balances,
      [{ asset: "USDC", available: String(available), held: String(held), paid: String(paid) }],
      `the ${mode} balance`,
    );
  }
  assert.deepEqual(await program.command("audit"), { object: "audit", ok: true, problems: [] });
}

/** When the server has ended, the processes that it started must end too. */
export const untilGone = (program: Program): Promise<unknown> =>
  until("no process runs in the folder", () => program.processes().length === 0, GONE_MS);
