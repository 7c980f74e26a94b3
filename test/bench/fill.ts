/**
 * Fills a data folder with warrants in every state, by the service's own commands. It is a program of its
 * own, so that it can run at a low priority: `bun fill.ts <data folder> <warrants> <file for the facts> <file
 * for ids>`.
 */
import { writeFileSync } from "node:fs";
import { openForCommands } from "../../src/app/ledger.ts";
import { readConfig } from "../../src/config.ts";
import { sweepDeadlines } from "../../src/jobs/deadlines.ts";
import { createPlaces } from "../../src/platform/places.ts";
import { setAgentStatus } from "../../src/services/admin/agents.ts";
import { MACHINE } from "../../src/services/admin/authority.ts";
import type { Context } from "../../src/services/context.ts";
import { noticePlanner } from "../../src/services/notices/plan.ts";
import { atTime } from "../support/at-time.ts";
import { must, SCRIPTED } from "../support/stage.ts";
import { type Fate, type Filling, fillWarrant, type Party } from "./fill-warrant.ts";
import { DAY_MS } from "./load.ts";
import { createParties, type Facts } from "./parties.ts";
import { inWords, say } from "./scale.ts";

/** How many opens run at once, so that they share a commit: as many as one commit takes. */
const AT_ONCE = 256;
/**
 * How far the clock of the opens is in the past, so that some warrants are overdue now and the other
 * deadlines are far away.
 */
const DAYS_AGO = 2;
/** How many ids of the measured organisation are written. */
const IDS_MAX = 20_000;

/** How many entries of the trace one commit brings into the log. */
const LOGGED_AT_ONCE = 5_000;

/**
 * How many of a hundred warrants get each fate. The measured organisation's agents have fates of their own,
 * see `parties.ts`.
 */
const FATES: readonly (readonly [share: number, fate: Fate])[] = [
  [34, "held"],
  [31, "released"],
  [6, "partially released"],
  [7, "refunded"],
  [10, "escalated"],
  [2, "disputed"],
  [2, "decided"],
  [8, "expired"],
];

const [, , folder = "", warrants = "0", factsFile = "", idsFile = ""] = process.argv;
await fill(folder, Number(warrants));

async function fill(data: string, total: number): Promise<void> {
  const { ctx: present, close } = await openForCommands(must(readConfig({ DATA: data }, {})));
  const past = atTime(present, data, () => Date.now() - DAYS_AGO * DAY_MS);
  // The limiter of checks is replaced: these checks are scripted and fetch nothing.
  const ctx: Context = { ...past.ctx, ...SCRIPTED, places: createPlaces({ max: 4 * AT_ONCE * AT_ONCE }) };
  const { parties, killed, facts } = await createParties(present, ctx);
  const random = createRandom(total);
  const filling: Filling = { now: ctx.now, random };
  const ids: string[] = [];
  let traceEntries = 0;
  const begunAt = performance.now();
  for (let filled = 0; filled < total; filled += AT_ONCE) {
    const size = Math.min(AT_ONCE, total - filled);
    const done = await Promise.all(
      Array.from({ length: size }, () => {
        const party = partyFor(parties, filled / total, random);
        return fillWarrant(party, party.fate ?? fateFor(random), filling);
      }),
    );
    for (const { id, entries, measured } of done) {
      traceEntries += entries;
      if (measured && random() < IDS_MAX / total) ids.push(id);
    }
    if (filled % (AT_ONCE * 40) === 0 && filled > 0) {
      const perSecond = Math.round(filled / ((performance.now() - begunAt) / 1_000));
      say(`  ${inWords(filled)} of ${inWords(total)} warrants, ${inWords(perSecond)}/s`);
    }
  }
  await past.close();
  traceEntries += await finish(present, killed);
  writeFileSync(idsFile, ids.join("\n"));
  const all: Facts = { ...facts, warrants: total, traceEntries };
  writeFileSync(factsFile, JSON.stringify(all, null, 2));
  await close();
}

/**
 * Brings the folder up to the present: deadlines pass, one agent is killed, the log gets every entry, and notices are made, as in
 * a ledger that is in use. Answers how many trace entries that made.
 */
async function finish(ctx: Context, killed: Party): Promise<number> {
  let expired = 0;
  for (let swept = -1; swept !== 0; expired += swept) {
    swept = await sweepDeadlines(ctx, (error) => {
      throw error;
    });
  }
  if (killed.agentId === null) throw new Error("the killed party is an agent");
  const { warrants } = must(
    await setAgentStatus(ctx, MACHINE, { agent_id: killed.agentId, status: "killed" }),
  );
  while ((await ctx.store.extendLog(LOGGED_AT_ONCE)) > 0);
  await planNotices(ctx);
  return expired + (warrants.by_state.frozen ?? 0);
}

/** Makes the notices of all escalations, as a server does within minutes. */
async function planNotices(ctx: Context): Promise<void> {
  for (;;) {
    // A planner of its own for each run: one that goes on would gather for five minutes.
    await noticePlanner(ctx, () => performance.now())(ctx.now());
    const next = await ctx.store.read(({ notices }) => notices.nextPlanAt());
    if (next === null || next > ctx.now()) return;
  }
}

/** Picks a party by its share. A party opens nothing after its part of the fill. */
function partyFor(parties: readonly Party[], position: number, random: () => number): Party {
  const open = parties.filter(({ until }) => position < until);
  let draw = random() * open.reduce((sum, { share }) => sum + share, 0);
  const party = open.find(({ share }) => {
    draw -= share;
    return draw < 0;
  });
  return party ?? (open[0] as Party);
}

function fateFor(random: () => number): Fate {
  let draw = random() * 100;
  const [, fate = "held" as const] =
    FATES.find(([share]) => {
      draw -= share;
      return draw < 0;
    }) ?? [];
  return fate;
}

/** mulberry32. The same seed gives the same numbers, so folders of one size are the same in every fill. */
function createRandom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}
