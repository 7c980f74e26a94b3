import assert from "node:assert/strict";
import { type Chain, checkAnchors } from "./chain.ts";
import { checkAudit, checkBalances, checkLedger, checkReplays, checkWarrants, learnRest } from "./checks.ts";
import type { Desk } from "./desk.ts";
import type { Acknowledged, Knowledge } from "./knowledge.ts";
import type { Load, Outside } from "./load.ts";
import type { Monitor } from "./log.ts";
import type { Market } from "./market.ts";
import { checkMoney, checkOwed, type Look } from "./money-checks.ts";
import type { Receiver } from "./outside.ts";
import type { Parties } from "./parties.ts";
import type { Program } from "./program.ts";
import type { TreasuryChain } from "./treasury.ts";
import { checkTreasury, countTreasury, learnCredited, TREASURY_TALLY } from "./treasury-checks.ts";

/** What a fault has left, once everything was sent again that was not answered: all of it is looked at. */

/** How many answers of earlier rounds are asked for again in every round. */
const EARLIER_MAX = 60;

/** Who works with one ledger, and what they know. */
export type Stage = {
  /** The ledger is in its `data`, or is copied there to be looked at. */
  readonly folder: string;
  /** Looks at the ledger as it is served. */
  readonly look: Look;
  readonly program: Program;
  readonly parties: Parties;
  readonly knowledge: Knowledge;
  readonly desk: Desk;
  readonly monitor: Monitor;
  readonly chain: Chain;
  /** The chain of the sandbox's treasury. */
  readonly treasury: TreasuryChain;
  /** Where the witness is asked. */
  readonly witnessUrl: string;
  readonly receiver: Receiver;
  readonly outside: Outside;
  /** How long it may take until deadlines are swept again. */
  readonly sweptMs: number;
  /** Answers of earlier rounds. */
  readonly earlier: Acknowledged[];
};

export type Count = (name: string, by?: number) => void;

/**
 * Nothing acknowledged is lost or changed, nothing was done or paid twice, and nothing is stuck.
 *
 * @param bring brings the ledger to where it is looked at, once its jobs have ended what was cut off
 */
export async function checkLeft(
  stage: Stage,
  url: string,
  load: Load,
  count: Count,
  bring: () => Promise<void> = async () => {},
): Promise<void> {
  const { folder, look, program, parties, knowledge, desk, monitor, chain, outside } = stage;
  const { treasury, earlier, receiver, sweptMs } = stage;
  const compared = [...load.acknowledged, ...earlier];
  await checkReplays(url, compared);
  await checkWarrants(url, knowledge, load.acknowledged, { now: outside.now, sweptMs });
  const [taken, seen] = [chain.taken(), treasury.seen()];
  await bring();
  await checkLedger(folder, knowledge, receiver, outside.market);
  count("payouts that no answer named", await checkMoney(look, desk.known));
  const learn = async () => {
    await learnRest(url, knowledge);
    await learnCredited(stage);
  };
  await checkBalances(program, parties, knowledge, learn);
  await checkOwed(program, parties, look, knowledge, learn);
  await checkTreasury(stage, seen);
  for (const note of checkAnchors(folder, chain, taken).notes) monitor.remember(note);
  await monitor.check(url, program);
  await checkAudit(program, stage.witnessUrl);
  assert.deepEqual(receiver.wrong, [], "deliveries that should not have come");
  for (const acknowledged of load.acknowledged) remember(stage, acknowledged);
  count("rounds");
  count("requests acknowledged", load.acknowledged.length);
  count("requests refused", load.refused.length);
  count("requests without an answer", load.unanswered.length);
  count("replays compared", compared.length);
}

/** The log may be ahead of what the witness has signed. */
export async function auditUnderLoad({ command }: Program, count: Count): Promise<void> {
  const { ok, problems } = await command("audit");
  assert.deepEqual({ ok, problems }, { ok: true, problems: [] }, "an audit under load");
  count("audits under load");
}

/** Keeps a sample of the answers. */
function remember({ earlier, outside: { random } }: Stage, acknowledged: Acknowledged): void {
  if (earlier.length < EARLIER_MAX) earlier.push(acknowledged);
  else if (random.chance(0.05)) earlier[random.below(EARLIER_MAX)] = acknowledged;
}

/** Counts what a ledger came to, after its last round. */
export async function countLedger(stage: Stage, count: Count): Promise<void> {
  const { folder, knowledge, monitor, chain, receiver, outside } = stage;
  const { states, purchases, events, duplicates } = await checkLedger(
    folder,
    knowledge,
    receiver,
    outside.market,
  );
  count("checkpoints seen", monitor.count().seen);
  count("of them signed by the witness", monitor.count().cosigned);
  const anchors = checkAnchors(folder, chain, []);
  count("of them on the chain", chain.taken().length);
  count("anchors confirmed", anchors.confirmed);
  await countTreasury(stage, count);
  for (const [end, number] of Object.entries(purchases)) count(`purchases ${end}`, number);
  for (const [state, warrants] of Object.entries(states)) count(`warrants ${state}`, warrants);
  count("events", events);
  count("events received more than once", duplicates);
}

/** Counts what came to those outside. */
export function countOutside(market: Market, receiver: Receiver, count: Count): void {
  const { payments, settled } = market.count();
  count("payments that sellers got", payments);
  count("payments settled on the chain", settled);
  count("deliveries received", receiver.count());
}

/** The lines of the tally, in the order in which they are printed. */
export const TALLY = [
  ...["requests acknowledged", "requests refused", "requests without an answer"],
  ...["sent again, done", "sent again, replayed", "sent again, refused", "replays compared"],
  ...["payments that sellers got", "payments settled on the chain"],
  ...["checkpoints seen", "of them signed by the witness", "of them on the chain", "anchors confirmed"],
  ...TREASURY_TALLY,
  ...["kills of the witness", "audits under load"],
] as const;

export function printTally(
  tally: Readonly<Record<string, number>>,
  { seed, startedAt }: { readonly seed: number; readonly startedAt: number },
): void {
  console.log(`\nNothing was lost, changed, doubled or stuck. Seed ${seed}:`);
  for (const [name, number] of Object.entries(tally)) console.log(`${String(number).padStart(9)}  ${name}`);
  console.log(`${((performance.now() - startedAt) / 1_000).toFixed(0).padStart(9)}  seconds`);
}
