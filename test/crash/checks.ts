import { Database } from "bun:sqlite";
import assert from "node:assert/strict";
import { join } from "node:path";
import type { Mode } from "../../src/core/roles.ts";
import { type Acknowledged, isFinal, type Knowledge, type KnownWarrant } from "./knowledge.ts";
import { readWarrant, send } from "./load.ts";
import type { Receiver } from "./outside.ts";
import type { Parties } from "./parties.ts";
import type { Json, Program } from "./program.ts";

/** What must hold after a crash, once every unanswered request was sent again. */

const AT_ONCE = 12;
const EXPIRES_MS = 10_000;
/** An attempt may fail, be cut off by the next kill, and wait 25 s for its last try. */
const DELIVERED_MS = 60_000;
const GONE_MS = 5_000;
const POLL_MS = 20;

/** Runs `each` for every item, some at once. */
async function forAll<Item>(items: Iterable<Item>, each: (item: Item) => Promise<void>): Promise<void> {
  const rest = [...items].reverse();
  const work = async () => {
    for (let item = rest.pop(); item !== undefined; item = rest.pop()) await each(item);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
}

async function until(
  what: string,
  timeoutMs: number,
  holds: () => boolean | Promise<boolean>,
): Promise<void> {
  const startedAt = performance.now();
  while (!(await holds())) {
    assert.ok(performance.now() - startedAt < timeoutMs, `${what}, still not after ${timeoutMs} ms`);
    await Bun.sleep(POLL_MS);
  }
}

/** The same request gets the same answer, to the byte. */
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

/** Every warrant reads back no older than it was acknowledged, and what is overdue expires. */
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
    until(`${id} has not expired`, EXPIRES_MS, async () => {
      const known = knowledge.warrants.get(id);
      assert.ok(known);
      await readBack(known);
      return isFinal(knowledge.warrants.get(id) ?? known);
    }),
  );
}

export type Counts = {
  readonly states: Readonly<Record<string, number>>;
  readonly events: number;
  /** Events that were received more often than once. */
  readonly duplicates: number;
};

/** The file itself: one warrant a key, nothing half done, every event received. */
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
    // Whatever was done without an answer has one by now: a key that was forgotten would leave more done than acknowledged.
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
    await until("events were not received", DELIVERED_MS, () =>
      events.every((id) => receiver.acceptedOf(id) > 0),
    );
    await until("deliveries are not recorded", DELIVERED_MS, () => {
      const statuses = column("SELECT DISTINCT status FROM webhook_deliveries");
      return statuses.every((status) => status === "delivered");
    });
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

/** When the server is gone, so are the processes that it started. */
export const untilGone = (program: Program): Promise<void> =>
  until("processes in the folder still run", GONE_MS, () => program.processes().length === 0);
