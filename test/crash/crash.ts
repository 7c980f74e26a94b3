/**
 * `bun run crash -- [--rounds 20] [--seed S] [--source]`: kills the server with SIGKILL at random moments under a mixed load,
 * purchases among it, starts it again on the same folder, sends every unanswered request again with its own Idempotency-Key, and
 * checks that nothing acknowledged was lost or changed, that nothing happened or was paid twice, and that nothing is stuck. In
 * some rounds the server's clock jumps before it is killed. The server's own job extends the log all the time, so that it is
 * killed in the middle of that too. An admin records deposits, corrections and payouts meanwhile, by commands that are killed as
 * well and by the console, and does again what was not answered; a monitor keeps every checkpoint that it sees, and a second instance, which is killed as well,
 * signs them as a witness. The log is anchored on a made-up chain that answers late. The sandbox has a treasury on another one, which pays
 * payees and is paid in to, and whose newest blocks change: in some rounds the server is killed while it asks that chain something. In
 * the end the chain and the ledger agree to the unit. In some rounds the ledger is audited meanwhile.
 * Prints a line a round and a tally. A failure prints its seed and round, and keeps the folder.
 *
 * After SIGKILL the operating system still writes its buffers. So this does not test what a power cut loses, which is up to fsync.
 */
import { Database } from "bun:sqlite";
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { DAY_MS, MINUTE_MS } from "../../src/core/time.ts";
import { type Chain, startChain } from "./chain.ts";
import { checkAudit, checkHeld, untilGone } from "./checks.ts";
import { type Clock, createClock } from "./clock.ts";
import { createDesk, DESK_TALLY } from "./desk.ts";
import { createKnowledge, type Sent } from "./knowledge.ts";
import {
  type Stage as AnyStage,
  auditUnderLoad,
  checkLeft,
  countLedger,
  countOutside,
  printTally,
  TALLY,
} from "./left.ts";
import { type Load, type Outside, sendAgain, startLoad } from "./load.ts";
import { createMonitor, leftOver } from "./log.ts";
import { startMarket } from "./market.ts";
import { lookIn } from "./money-checks.ts";
import { startReceiver, startSeller } from "./outside.ts";
import { createParties, FUNDS, signIn, signInAgain } from "./parties.ts";
import { BINARY, createProgram, type Server, SOURCE } from "./program.ts";
import { createRandom } from "./random.ts";
import { openIdle, oweOnChain } from "./singly.ts";
import { startTreasuryChain, type TreasuryChain } from "./treasury.ts";
import { checkSettled } from "./treasury-checks.ts";
import { startWitness, type Witness } from "./witness.ts";

/** A ledger lasts for so many rounds. Then a new one begins, so that the checks of a long run stay fast. */
const ROUNDS_A_LEDGER = 25;
const LOAD_MS_MAX = 1_200;
/** How long it is waited for a question to the treasury's chain: its jobs begin 2 s after a start. */
const HELD_MS_MAX = 6_000;
/** How many payees are owed something then at least. */
const OWED = 3;
const STARTING_MS_MAX = 400;
const AGAIN_MS_MAX = 60;
/** How far a clock jumps, forwards or back: beyond some deadlines, beyond sign-ins, and beyond the age at which keys are forgotten. */
const JUMPS_MS = [MINUTE_MS * 30, DAY_MS, DAY_MS * 40] as const;
/** How long a server lives with a wrong clock at least: longer than the time between two sweeps. */
const JUMPED_MS = 1_200;
/** The shortest that there is: each run begins when the last one has ended. */
const CHECKPOINT_MS = "10";
const IDLE = 3;
const SWEPT_MS = 10_000;
const KEYS_DAYS = 30;
/** How many of the server's last faults a failure shows: its folder is gone with the machine on which a CI runs. */
const FAULTS_SHOWN = 5;

const { values: flags } = parseArgs({
  options: { rounds: { type: "string" }, seed: { type: "string" }, source: { type: "boolean" } },
});
const rounds = Number(flags.rounds ?? 20);
const seed = Number(flags.seed ?? crypto.getRandomValues(new Uint32Array(1))[0]);
assert.ok(Number.isSafeInteger(rounds) && rounds > 0 && Number.isSafeInteger(seed), "bad --rounds or --seed");

const random = createRandom(seed);
const seller = startSeller(random);
let clock: Clock | null = null;
let witness: Witness | null = null;
let chain: Chain | null = null;
let treasury: TreasuryChain | null = null;
const now = (): number => clock?.now() ?? Date.now();
const receiver = startReceiver(random, () => clock?.times() ?? []);
const market = await startMarket(random, now);
const outside: Omit<Outside, "payees"> = { random, urlOf: seller.urlOf, market, now };
/** The tally of the whole run, in the order in which it is printed. */
const tally: Record<string, number> = Object.fromEntries(
  [
    ...["rounds", "kills", ...TALLY, "clocks that jumped forwards", "clocks that jumped back"],
    ...["kills before entries were in the log", "kills before a checkpoint of what was in it"],
    ...[...DESK_TALLY, "payouts that no answer named"],
    ...["events", "deliveries received", "events received more than once"],
  ].map((name) => [name, 0]),
);
const count = (name: string, by = 1): void => {
  tally[name] = (tally[name] ?? 0) + by;
};

/** One data folder, its server, which is killed and started again, and what the client knows. */
type Stage = AnyStage & { readonly clock: Clock; server: Server };

let round = 0;
const startedAt = performance.now();
console.log(`crash: ${rounds} rounds, seed ${seed}${flags.source ? ", from the source" : ""}`);
while (round < rounds) await crashLedger(Math.min(round + ROUNDS_A_LEDGER, rounds));
seller.stop();
receiver.stop();
await market.stop();
countOutside(market, receiver, count);
printTally(tally, { seed, startedAt });

/** Plays rounds on one ledger, up to the given round. */
async function crashLedger(lastRound: number): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "holdfast-crash-"));
  mkdirSync(join(folder, "data"));
  const itsClock = createClock(folder);
  clock = itsClock;
  let stage: Stage | null = null;
  try {
    stage = await setStage(folder, itsClock);
    while (round < lastRound) {
      round++;
      await crashOnce(stage);
    }
    const { program } = stage;
    await settle(stage);
    await countLedger(stage, count);
    assert.equal(await stage.server.stop(), 0, "the exit code after SIGTERM");
    await untilGone(program);
    assert.deepEqual(program.faults(), [], "faults in the server's log");
    await witness?.stop();
    await Promise.all([chain?.stop(), treasury?.stop()]);
  } catch (error) {
    await stage?.program.killAll();
    await witness?.stop();
    console.error(`\ncrash: round ${round} of seed ${seed} failed; its folder is ${folder}`);
    console.error(error);
    console.error(stage?.program.faults().slice(-FAULTS_SHOWN).join("\n") ?? "it was not set up");
    process.exit(1);
  }
  receiver.forget();
  rmSync(folder, { recursive: true, force: true });
}

/** Nothing more comes in, and a new start pays out all that is owed on the chain. */
async function settle(stage: Stage): Promise<void> {
  stage.treasury.calm();
  await kill(stage.server);
  stage.server = await stage.program.serve();
  await checkSettled(stage);
  await checkAudit(stage.program, stage.witnessUrl);
}

async function setStage(folder: string, itsClock: Clock): Promise<Stage> {
  const executable = flags.source ? SOURCE : BINARY;
  const itsChain = startChain(random);
  const itsTreasury = await startTreasuryChain(random);
  [chain, treasury] = [itsChain, itsTreasury];
  const settings = {
    ...{ ...market.settings, ...itsClock.settings, ...itsChain.settings, ...itsTreasury.settings },
    HOLDFAST_EVM_RPC: `${market.settings.HOLDFAST_EVM_RPC},${itsTreasury.endpoint}`,
    HOLDFAST_CHECKPOINT_MS: CHECKPOINT_MS,
  };
  const alone = createProgram(executable, folder, settings);
  const made = await createParties(alone, receiver, itsTreasury.senders);
  rememberKeysFor(KEYS_DAYS, folder);
  // The first start makes the keys that the witness is to know.
  await (await alone.serve()).stop();
  const { log } = await alone.command("witness", "show");
  witness = await startWitness(executable, folder, log);
  const program = createProgram(executable, folder, { ...settings, ...witness.settings });
  const server = await program.serve();
  const people = {
    live: await signIn(server.url, "live"),
    sandbox: await signIn(server.url, "sandbox"),
  };
  const knowledge = createKnowledge({ live: FUNDS, sandbox: FUNDS });
  const parties = { ...made, people };
  return {
    ...{ folder, look: lookIn(folder), program, knowledge, parties, server, receiver },
    outside: { ...outside, payees: itsTreasury.payees },
    desk: createDesk(program, parties, knowledge, random, count),
    witnessUrl: witness.url,
    monitor: createMonitor(folder),
    ...{ chain: itsChain, treasury: itsTreasury },
    clock: itsClock,
    ...{ earlier: [], sweptMs: SWEPT_MS },
  };
}

/** As the first retention of a server does, a minute after its start, which no server here lives for. */
function rememberKeysFor(days: number, folder: string): void {
  const database = new Database(join(folder, "data", "holdfast.db"));
  database.run("UPDATE instances SET idempotency_days = ?", [days]);
  database.close();
}

/** Load, kill, start again, send again, check. */
async function crashOnce(stage: Stage): Promise<void> {
  const { program, parties, knowledge, desk, monitor, outside } = stage;
  const jumpMs = stage.clock.canJump ? random.pick([0, 0, 0, 0, 1, -1]) * random.pick(JUMPS_MS) : 0;
  const idle: string[] = [];
  while (jumpMs > 0 && idle.length < IDLE) idle.push(await openIdle(stage.server.url, stage));
  const load = startLoad(stage.server.url, parties, knowledge, outside);
  // The audit goes on when the server is killed.
  const sometimes = [() => auditUnderLoad(program, count), killWitness].filter(() => random.chance(0.3));
  const { url } = stage.server;
  const beside = [monitor.follow(url), desk.work(url), ...sometimes.map((act) => act())];
  // They are awaited below. Until then a failure would count as unhandled.
  for (const one of beside) one.catch(() => {});
  const killMs = 1 + random.below(LOAD_MS_MAX);
  await Promise.race([load.done, Bun.sleep(killMs)]);
  if (jumpMs !== 0) {
    load.jumped();
    desk.jumped();
    stage.clock.jump(jumpMs);
    count(`clocks that jumped ${jumpMs > 0 ? "forwards" : "back"}`);
    await Promise.race([load.done, Bun.sleep(JUMPED_MS)]);
  }
  load.stop();
  desk.stop(random.chance(0.7));
  await kill(stage.server);
  await Promise.all([load.done, ...beside]);
  checkHeld(stage.folder, idle);
  const left = leftOver(stage.folder);
  if (left.entries) count("kills before entries were in the log");
  if (left.leaves) count("kills before a checkpoint of what was in it");
  // The ledger has times of the clock that was ahead: they are right from now on. A clock that was behind is set right.
  if (jumpMs > 0) stage.clock.believe();
  else stage.clock.setRight();

  const cutOff = load.unanswered.length;
  const again = new Set(load.unanswered);
  await comeBack(stage, load, again, jumpMs > 0);
  assert.deepEqual([...again], [], "requests that nobody answered");
  await desk.again(stage.server.url);

  // It counts only the time for which a server ran, so it may forget no key of this run, whatever the date is now.
  if (jumpMs !== 0) await program.command("jobs", "run", "retention");
  await checkLeft(stage, stage.server.url, load, count);
  console.log(
    `round ${round}/${rounds}: killed after ${killMs} ms${jumpMs === 0 ? "" : `, ${jumped(jumpMs)}`}; ${load.acknowledged.length} acknowledged, ${cutOff} sent again, ${knowledge.warrants.size} warrants, ${knowledge.done.purchase.size} purchases, ${desk.known.payouts.size} payouts`,
  );
}

function jumped(ms: number): string {
  return `${JUMPED_MS} ms after its clock jumped ${Math.abs(ms) / MINUTE_MS} minutes ${ms > 0 ? "forwards" : "back"}`;
}

async function kill(server: Server): Promise<void> {
  await server.kill();
  count("kills");
}

/**
 * Starts the server and sends again what was not answered. Sometimes the server is killed again meanwhile, or when it asks the
 * treasury's chain something.
 */
async function comeBack(stage: Stage, load: Load, again: Set<Sent>, isLater: boolean): Promise<void> {
  if (random.chance(0.25)) {
    await stage.program.serveCutShort(random.below(STARTING_MS_MAX));
    count("kills");
  }
  stage.server = await stage.program.serve();
  if (isLater) await signInAgain(stage.server.url, stage.parties.people);
  const sending = (isLast: boolean) =>
    sendAgain(stage.server.url, again, load, stage.knowledge, { mayFail: !isLast, count });
  const dieWhile = async (moment: Promise<unknown>) => {
    const sent = sending(false);
    await moment;
    await kill(stage.server);
    await sent;
  };
  if (random.chance(0.25)) {
    await dieWhile(Bun.sleep(random.below(AGAIN_MS_MAX)));
    stage.server = await stage.program.serve();
  }
  if (random.chance(0.6)) {
    for (let owed = 0; owed < OWED; owed++) await oweOnChain(stage.server.url, stage);
    const held = stage.treasury.hold();
    await dieWhile(Promise.race([held.reached, Bun.sleep(HELD_MS_MAX)]));
    held.goOn();
    stage.server = await stage.program.serve();
  }
  await sending(true);
}

async function killWitness(): Promise<void> {
  await Bun.sleep(random.below(LOAD_MS_MAX / 2));
  await witness?.die();
  count("kills of the witness");
}
