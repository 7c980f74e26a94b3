/**
 * `bun run crash:instances -- [--rounds 5] [--seed S] [--source]`: three instances serve one ledger in PostgreSQL under a mixed load, with
 * all their jobs. In each round something is lost: instances by SIGKILL or because they stand still, the database by SIGKILL, connections
 * between them, of all instances or of one alone (dropped, cut in the middle, held back, slow), the primary for good, whose synchronous
 * replica takes its place, or that replica, while the primary is restarted. Each five rounds have one of every family. Then every
 * unanswered request is sent again with its own Idempotency-Key, and nothing acknowledged may be lost or changed, nothing done or paid
 * twice, and nothing stuck. An admin, a monitor of the log, a witness and two chains work beside the load, as in `bun run crash`, and the
 * leases of the jobs are watched. The sandbox has a treasury on one of the chains: in some rounds instances are killed while one of them
 * asks it something, and in the end it and the ledger agree to the unit. People hear of escalations by mail. The ledger is copied into a
 * file to be looked at, and audited.
 * Prints a line a round and a tally. A failure prints its seed and round.
 */
import { Database } from "bun:sqlite";
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { SQL } from "bun";
import { copyToFile, inTransaction } from "../../src/store/postgres/audit.ts";
import { askOn } from "../../src/store/postgres/ledger-rows.ts";
import { until } from "../support/until.ts";
import { startChain } from "./chain.ts";
import { type Cluster, createCluster } from "./cluster.ts";
import { createDesk, DESK_TALLY } from "./desk.ts";
import { createSchedule } from "./faults.ts";
import { createKnowledge, PAY } from "./knowledge.ts";
import { watchLeases } from "./leases.ts";
import {
  auditUnderLoad,
  checkLeft,
  countLedger,
  countOutside,
  printTally,
  type Stage,
  TALLY,
} from "./left.ts";
import { type Outside, sendAgain, startLoad } from "./load.ts";
import { createMonitor } from "./log.ts";
import { checkMails, countMails, MAILS_TALLY, startMails } from "./mails.ts";
import { startMarket } from "./market.ts";
import { startReceiver, startSeller } from "./outside.ts";
import { createParties, FUNDS, signIn } from "./parties.ts";
import { BINARY, SOURCE } from "./program.ts";
import { createRandom } from "./random.ts";
import { oweOnChain } from "./singly.ts";
import { startTreasuryChain } from "./treasury.ts";
import { checkSettled } from "./treasury-checks.ts";
import { startWitness, type Witness } from "./witness.ts";

const LOAD_MS_MAX = 3_000;
/** How long the load goes on with a fault and after it at most. */
const DURING_MS_MAX = 3_000;
const AFTER_MS_MAX = 1_000;
const ENDED_MS = 60_000;
/** The lease of an instance that was killed lasts 20 s, and the others look for it every 5 s. */
const SWEPT_MS = 40_000;
const AGAIN_MS_MAX = 100;
/** How long a question to the treasury's chain is waited for. Payouts begin once a minute, or when another instance takes over their job. */
const HELD_MS_MAX = 30_000;
/** Longer than the lease of an instance that was killed, and until the others look for it. */
const TAKEN_OVER_MS = 26_000;
/** How many payees are owed something then at least. */
const OWED = 3;
/** The shortest that there is: each run begins when the last one has ended. */
const CHECKPOINT_MS = "10";
/** How much is under way that jobs end by themselves. */
const OPEN = `SELECT (SELECT count(*) FROM purchases WHERE phase <> 'ended')
  + (SELECT count(*) FROM warrants WHERE state = 'verifying')
  + (SELECT count(*) FROM webhook_deliveries WHERE status <> 'delivered') AS open`;

const { values: flags } = parseArgs({
  options: { rounds: { type: "string" }, seed: { type: "string" }, source: { type: "boolean" } },
});
const rounds = Number(flags.rounds ?? 5);
const seed = Number(flags.seed ?? crypto.getRandomValues(new Uint32Array(1))[0]);
assert.ok(Number.isSafeInteger(rounds) && rounds > 0 && Number.isSafeInteger(seed), "bad --rounds or --seed");

const random = createRandom(seed);
const nextFault = createSchedule(random);
const seller = startSeller(random);
const receiver = startReceiver(random, () => [Date.now()]);
const market = await startMarket(random, Date.now);
const chain = startChain(random);
const treasury = await startTreasuryChain(random);
const mails = await startMails();
const leases = watchLeases();
const outside: Outside = { random, urlOf: seller.urlOf, market, payees: treasury.payees, now: Date.now };
const tally: Record<string, number> = Object.fromEntries(
  ["rounds", ...TALLY, "purchases that were cut off", ...DESK_TALLY, ...MAILS_TALLY].map((name) => [name, 0]),
);
const count = (name: string, by = 1): void => {
  tally[name] = (tally[name] ?? 0) + by;
};

console.log(
  `crash: ${rounds} rounds of three instances, seed ${seed}${flags.source ? ", from the source" : ""}`,
);
const startedAt = performance.now();
const folder = mkdtempSync(join(tmpdir(), "holdfast-instances-"));
const executable = flags.source ? SOURCE : BINARY;
let witness: Witness | null = null;
const cluster = await createCluster(
  executable,
  folder,
  {
    ...{ ...market.settings, ...chain.settings, ...treasury.settings, ...mails.settings },
    HOLDFAST_EVM_RPC: `${market.settings.HOLDFAST_EVM_RPC},${treasury.endpoint}`,
    HOLDFAST_CHECKPOINT_MS: CHECKPOINT_MS,
  },
  random,
  async ({ command }) => {
    const { log } = await command("witness", "show");
    witness = await startWitness(executable, folder, log);
    return witness.settings;
  },
);
let round = 0;
try {
  const stage = await setStage();
  while (round < rounds) {
    round += 1;
    await play(stage);
  }
  treasury.calm();
  await checkSettled(stage);
  await countLedger(stage, count);
} catch (error) {
  console.error(`\ncrash: round ${round} of seed ${seed} failed; its folder is ${folder}`);
  console.error(error);
  console.error(cluster.program.faults().slice(-5).join("\n"));
  await cluster.stop();
  await theWitness().stop();
  process.exit(1);
}
await cluster.stop();
await theWitness().stop();
seller.stop();
receiver.stop();
await Promise.all([market.stop(), chain.stop(), treasury.stop(), mails.stop()]);
rmSync(folder, { recursive: true, force: true });
count("leases seen in other hands", leases.handovers());
countOutside(market, receiver, count);
countMails(mails, count);
printTally(tally, { seed, startedAt });
process.exit(0);

function theWitness(): Witness {
  assert.ok(witness);
  return witness;
}

async function setStage(): Promise<Stage> {
  const { program } = cluster;
  const made = await createParties(program, receiver, treasury.senders);
  await cluster.start();
  const { url } = cluster.front;
  const people = { live: await signIn(url, "live"), sandbox: await signIn(url, "sandbox") };
  const parties = { ...made, people };
  const knowledge = createKnowledge({ live: FUNDS, sandbox: FUNDS });
  return {
    ...{ folder, look, program, parties, knowledge, chain, treasury, receiver, outside },
    desk: createDesk(program, parties, knowledge, random, count),
    monitor: createMonitor(folder),
    witnessUrl: theWitness().url,
    ...{ earlier: [], sweptMs: SWEPT_MS },
  };
}

/** Load, a fault, what was not answered again, and what must be true then. */
async function play(stage: Stage): Promise<void> {
  const { parties, knowledge, desk, monitor } = stage;
  const { url } = cluster.front;
  const load = startLoad(url, parties, knowledge, outside);
  const ended = new AbortController();
  const working = desk.work(url);
  const beside = [
    monitor.follow(url, ended.signal),
    leases.follow(cluster.databaseUrl, ended.signal),
    ...(random.chance(0.3) ? [theWitness().die()] : []),
  ];
  if (beside.length > 2) count("kills of the witness");
  // They are awaited below. Until then a failure would count as unhandled.
  for (const one of [working, ...beside]) one.catch(() => {});
  await Promise.race([load.done, working, Bun.sleep(1 + random.below(LOAD_MS_MAX))]);
  if (random.chance(0.3)) await auditUnderLoad(cluster.program, count);
  const fault = nextFault();
  load.breaks();
  desk.breaks();
  const failing = cluster.fail(fault);
  await Promise.race([failing, Bun.sleep(DURING_MS_MAX)]);
  await Bun.sleep(random.below(AFTER_MS_MAX));
  load.stop();
  desk.stop(random.chance(0.5));
  await failing;
  count(fault.name);
  await cluster.start();
  await Promise.all([load.done, working]);
  const again = new Set(load.unanswered);
  count("purchases that were cut off", [...again].filter(({ path }) => path === PAY).length);
  const sending = (mayFail: boolean) =>
    sendAgain(url, again, load, knowledge, { mayFail, count, isTakenOver: true });
  if (random.chance(0.2)) {
    const sent = sending(true);
    await Bun.sleep(random.below(AGAIN_MS_MAX));
    await cluster.killOne();
    count("kills while requests were sent again");
    await sent;
    await cluster.start();
  }
  if (random.chance(0.3)) await killAtQuestion(stage, () => sending(true));
  await sending(false);
  assert.deepEqual([...again], [], "requests that nobody answered");
  await desk.again(url);
  ended.abort();
  await Promise.all(beside);
  await cluster.program.command("jobs", "run", "retention");
  await checkLeft(stage, url, load, count, () => copyEnded(cluster));
  await checkMails(look, mails);
  checkRunningTime();
  await monitor.untilSigned(url);
  console.log(
    `round ${round}/${rounds}: ${fault.name}; ${load.acknowledged.length} acknowledged, ${load.unanswered.length} sent again, ${knowledge.warrants.size} warrants, ${knowledge.done.purchase.size} purchases, ${desk.known.payouts.size} payouts`,
  );
}

/**
 * Kills instances while one of them asks the treasury's chain something, where that comes in time. The chain goes on with what it was
 * asked at once, or when another instance has taken over.
 */
async function killAtQuestion(stage: Stage, sending: () => Promise<void>): Promise<void> {
  for (let owed = 0; owed < OWED; owed++) await oweOnChain(cluster.front.url, stage);
  const held = treasury.hold();
  const sent = sending();
  await Promise.race([held.reached, Bun.sleep(HELD_MS_MAX)]);
  await (random.chance(0.5) ? cluster.killAll() : cluster.killOne());
  const isLate = random.chance(0.4);
  if (!isLate) held.goOn();
  await sent;
  await cluster.start();
  if (isLate) await Bun.sleep(TAKEN_OVER_MS);
  held.goOn();
}

/** Looks at the ledger past the proxies. */
async function look<Row>(question: string): Promise<readonly Row[]> {
  const sql = new SQL(cluster.databaseUrl(), { max: 1, bigint: true });
  try {
    return [...(await sql.unsafe(question))];
  } finally {
    await sql.close();
  }
}

/** The instances that did retention one after the other have counted no time twice. */
function checkRunningTime(): void {
  const copy = new Database(join(folder, "data", "holdfast.db"), { readonly: true });
  const row = copy.query<{ marks: string }, []>("SELECT retention_marks AS marks FROM instances").get();
  copy.close();
  const ranMs = JSON.parse(row?.marks ?? "[]").at(-1)?.ranMs ?? 0;
  const passedMs = performance.now() - startedAt;
  assert.ok(
    ranMs <= passedMs,
    `${ranMs} ms are counted as the time that servers ran, and ${passedMs} passed`,
  );
}

/** Copies the ledger to where it is looked at, once jobs have ended what was cut off: checks, purchases and deliveries. */
async function copyEnded({ databaseUrl }: Cluster): Promise<void> {
  const sql = new SQL(databaseUrl(), { max: 1, bigint: true });
  try {
    await until(
      "all checks, purchases and deliveries have ended",
      async () => {
        const [row] = await sql.unsafe(OPEN);
        if (Number(row.open) > 0) return false;
        await copyLedger(sql);
        const copy = new Database(join(folder, "data", "holdfast.db"), { readonly: true });
        const found = copy.query<{ open: number }, []>(OPEN).get();
        copy.close();
        return found?.open === 0;
      },
      ENDED_MS,
    );
  } finally {
    await sql.close();
  }
}

async function copyLedger(sql: SQL): Promise<void> {
  const data = join(folder, "data");
  rmSync(data, { recursive: true, force: true });
  mkdirSync(data);
  const connection = await sql.reserve();
  try {
    const ask = askOn(connection);
    const copied = await inTransaction(ask, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", () =>
      copyToFile(ask, join(data, "holdfast.db"), () => {}),
    );
    assert.ok(typeof copied !== "string", String(copied));
  } finally {
    connection.release();
  }
}
