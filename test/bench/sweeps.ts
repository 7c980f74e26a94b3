import { openForCommands } from "../../src/app/ledger.ts";
import { readConfig } from "../../src/config.ts";
import { sweepDeadlines } from "../../src/jobs/deadlines.ts";
import { forgetOld } from "../../src/jobs/retention.ts";
import { MACHINE } from "../../src/services/admin/authority.ts";
import { showBalances } from "../../src/services/admin/balances.ts";
import type { Context } from "../../src/services/context.ts";
import { must } from "../support/stage.ts";
import type { Filled } from "./filled.ts";
import { startServer } from "./holdfast.ts";
import { openMany } from "./open-many.ts";
import { say } from "./scale.ts";
import { median } from "./statistics.ts";
import { atMost, type Row } from "./table.ts";

const OVERDUE = 2_000;
/** The number of rounds. The first is not counted: the compiler is still at work in it. */
const ROUNDS = 3;
const BALANCE_READS = 200;
const RETENTIONS = 50;
/** How far ahead the deadlines are. The warrants are opened, and the servers have ended, before that. */
const AHEAD_MS = 20_000;

/**
 * Compares the sweep of deadlines and the balances on both folders, in this process and in turns, since no
 * request runs them.
 */
export async function compareSweeps(small: Filled, large: Filled, aim: { required: number }): Promise<Row[]> {
  const sweeps: number[] = [];
  const balances: number[] = [];
  const retentions: number[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    say(`sweeps: round ${round + 1} of ${ROUNDS}`);
    const deadline = Date.now() + AHEAD_MS;
    for (const { data, facts } of [small, large]) {
      await using server = await startServer(data);
      await openMany({ url: server.url, secret: facts.secret }, OVERDUE, deadline);
    }
    if (Date.now() > deadline) throw new Error("the opens of the sweep took too long");
    await Bun.sleep(deadline - Date.now() + 1);
    const [one, other] = [await timesIn(small), await timesIn(large)];
    if (round === 0) continue;
    sweeps.push(other.sweepMs / one.sweepMs);
    balances.push(other.balanceMs / one.balanceMs);
    retentions.push(other.retentionMs / one.retentionMs);
  }
  return [
    atMost(`a sweep of ${OVERDUE} deadlines`, median(sweeps), aim, " times"),
    atMost("a run of the retention that finds nothing", median(retentions), aim, " times"),
    atMost("counts: the balances", median(balances), aim, " times"),
  ];
}

async function timesIn({ data, facts }: Filled) {
  const { ctx, close } = await openForCommands(must(readConfig({ DATA: data }, {})));
  try {
    const scope = { organisation_id: facts.organisationId, mode: facts.mode };
    const balanceTimes: number[] = [];
    for (let read = 0; read < BALANCE_READS; read++) {
      const startedAt = performance.now();
      must(await showBalances(ctx, MACHINE, scope));
      balanceTimes.push(performance.now() - startedAt);
    }
    const startedAt = performance.now();
    const swept = await sweepDeadlines(ctx, (error) => {
      throw error;
    });
    if (swept < OVERDUE) throw new Error(`the sweep expired ${swept} warrants of ${OVERDUE}`);
    const sweepMs = (performance.now() - startedAt) / swept;
    return { sweepMs, balanceMs: median(balanceTimes), retentionMs: await retentionMsOf(ctx) };
  } finally {
    await close();
  }
}

async function retentionMsOf(ctx: Context): Promise<number> {
  // The first run deletes what there may be.
  await forgetOld(ctx);
  const times: number[] = [];
  for (let run = 0; run < RETENTIONS; run++) {
    const startedAt = performance.now();
    await forgetOld(ctx);
    times.push(performance.now() - startedAt);
  }
  return median(times);
}
