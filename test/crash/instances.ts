/**
 * `bun run crash:instances -- [--rounds 5] [--seed S] [--source]`: three instances serve one ledger in PostgreSQL under a mixed load. In
 * each round something is lost: instances by SIGKILL, the database by SIGKILL, connections between them (dropped, cut in the middle, held
 * back, slow), or the primary for good, whose synchronous replica takes its place. Then every unanswered request is sent again with its
 * own Idempotency-Key, and nothing acknowledged may be lost or changed, nothing done or paid twice, and nothing stuck. The ledger is
 * copied into a file for that, and audited. Prints a line a round and a tally. A failure prints its seed and round.
 */
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { SQL } from "bun";
import { copyToFile, inTransaction } from "../../src/store/postgres/audit.ts";
import { askOn } from "../../src/store/postgres/ledger-rows.ts";
import { until } from "../support/until.ts";
import { checkBalances, checkLedger, checkReplays, checkWarrants } from "./checks.ts";
import { type Cluster, createCluster, FAULT_NAMES } from "./cluster.ts";
import { type Acknowledged, createKnowledge, type Knowledge } from "./knowledge.ts";
import { type Outside, sendAgain, startLoad } from "./load.ts";
import { startMarket } from "./market.ts";
import { startReceiver, startSeller } from "./outside.ts";
import { createParties, FUNDS, type Parties, signIn } from "./parties.ts";
import { BINARY, SOURCE } from "./program.ts";
import { createRandom } from "./random.ts";

const LOAD_MS_MAX = 1_500;
/** How long the load goes on after a fault at most. */
const AFTER_MS_MAX = 1_000;
const ENDED_MS = 60_000;
const EARLIER_MAX = 60;

const { values: flags } = parseArgs({
  options: { rounds: { type: "string" }, seed: { type: "string" }, source: { type: "boolean" } },
});
const rounds = Number(flags.rounds ?? 5);
const seed = Number(flags.seed ?? crypto.getRandomValues(new Uint32Array(1))[0]);
assert.ok(Number.isSafeInteger(rounds) && rounds > 0 && Number.isSafeInteger(seed), "bad --rounds or --seed");

const random = createRandom(seed);
const seller = startSeller(random);
const receiver = startReceiver(random, () => [Date.now()]);
const market = await startMarket(random, Date.now);
const outside: Outside = { random, urlOf: seller.urlOf, market, now: Date.now };
const tally: Record<string, number> = {};
const count = (name: string, by = 1): void => {
  tally[name] = (tally[name] ?? 0) + by;
};

console.log(
  `crash: ${rounds} rounds of three instances, seed ${seed}${flags.source ? ", from the source" : ""}`,
);
const startedAt = performance.now();
const folder = mkdtempSync(join(tmpdir(), "holdfast-instances-"));
const earlier: Acknowledged[] = [];
const cluster = await createCluster(flags.source ? SOURCE : BINARY, folder, market.settings, random);
let round = 0;
try {
  const made = await createParties(cluster.program, receiver);
  await cluster.start();
  const { url } = cluster.front;
  const people = { live: await signIn(url, "live"), sandbox: await signIn(url, "sandbox") };
  const parties: Parties = { ...made, people };
  const knowledge = createKnowledge({ live: FUNDS, sandbox: FUNDS });
  while (round < rounds) {
    round += 1;
    await play(parties, knowledge);
  }
} catch (error) {
  console.error(`\ncrash: round ${round} of seed ${seed} failed; its folder is ${folder}`);
  console.error(error);
  console.error(cluster.program.faults().slice(-5).join("\n"));
  await cluster.stop();
  process.exit(1);
}
await cluster.stop();
seller.stop();
receiver.stop();
await market.stop();
rmSync(folder, { recursive: true, force: true });
console.log(`\nNothing was lost, changed, doubled or stuck. Seed ${seed}:`);
for (const [name, number] of Object.entries(tally)) console.log(`${String(number).padStart(9)}  ${name}`);
console.log(`${((performance.now() - startedAt) / 1_000).toFixed(0).padStart(9)}  seconds`);
process.exit(0);

/** Load, a fault, what was not answered again, and what must be true then. */
async function play(parties: Parties, knowledge: Knowledge): Promise<void> {
  const { url } = cluster.front;
  const load = startLoad(url, parties, knowledge, outside);
  await Promise.race([load.done, Bun.sleep(1 + random.below(LOAD_MS_MAX))]);
  const fault = FAULT_NAMES[(round - 1) % FAULT_NAMES.length] ?? "instances killed";
  load.breaks();
  await cluster.fail(fault);
  count(fault);
  await Bun.sleep(random.below(AFTER_MS_MAX));
  load.stop();
  await cluster.start();
  await load.done;
  const again = new Set(load.unanswered);
  await sendAgain(url, again, load, knowledge, { mayFail: false, count, isTakenOver: true });
  assert.deepEqual([...again], [], "requests that nobody answered");
  await checkReplays(url, [...load.acknowledged, ...earlier]);
  await checkWarrants(url, knowledge, load.acknowledged, Date.now);
  await untilEnded(cluster);
  await copyLedger(cluster);
  const { events, duplicates } = await checkLedger(folder, knowledge, receiver, market);
  await checkBalances(cluster.program, parties, knowledge, url);
  const { ok, problems } = await cluster.program.command("audit");
  assert.deepEqual({ ok, problems }, { ok: true, problems: [] }, "the audit");
  assert.deepEqual(receiver.wrong, [], "deliveries that should not have come");
  for (const one of load.acknowledged)
    if (earlier.length < EARLIER_MAX && random.chance(0.1)) earlier.push(one);
  count("rounds");
  count("requests acknowledged", load.acknowledged.length);
  count("requests refused", load.refused.length);
  count("requests without an answer", load.unanswered.length);
  console.log(
    `round ${round}/${rounds}: ${fault}; ${load.acknowledged.length} acknowledged, ${load.unanswered.length} sent again, ${knowledge.warrants.size} warrants, ${events} events, ${duplicates} of them received more than once`,
  );
}

/** What jobs end by themselves has ended: checks and purchases that were cut off, and deliveries. */
async function untilEnded({ databaseUrl }: Cluster): Promise<void> {
  const sql = new SQL(databaseUrl(), { max: 1 });
  try {
    await until(
      "all checks, purchases and deliveries have ended",
      async () => {
        const [row] = await sql`SELECT (SELECT count(*) FROM purchases WHERE phase <> 'ended')
          + (SELECT count(*) FROM warrants WHERE state = 'verifying')
          + (SELECT count(*) FROM webhook_deliveries WHERE status <> 'delivered') AS open`;
        return Number(row.open) === 0;
      },
      ENDED_MS,
    );
  } finally {
    await sql.close();
  }
}

/** Copies the ledger to where the checks of the embedded engine look for it. */
async function copyLedger({ databaseUrl }: Cluster): Promise<void> {
  const data = join(folder, "data");
  rmSync(data, { recursive: true, force: true });
  mkdirSync(data);
  const sql = new SQL(databaseUrl(), { max: 1, bigint: true });
  const connection = await sql.reserve();
  try {
    const ask = askOn(connection);
    const copied = await inTransaction(ask, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", () =>
      copyToFile(ask, join(data, "holdfast.db"), () => {}),
    );
    assert.ok(typeof copied !== "string", String(copied));
  } finally {
    connection.release();
    await sql.close();
  }
}
