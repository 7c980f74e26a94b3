import { readFileSync } from "node:fs";
import { DAY_MS, type Target } from "./load.ts";
import { post } from "./open-many.ts";
import { opening } from "./opening.ts";
import { inWords } from "./scale.ts";
import { quantile } from "./statistics.ts";
import { atMost, type Row } from "./table.ts";

const WAIT_MS_MAX = 50;
/** How long a client sends before it is measured. */
export const WARM_MS = 5_000;

/** How long a client waited for its answers. */
export type Waited = {
  readonly requests: number;
  readonly slowestMs: number;
  readonly p999Ms: number;
  /** Requests that waited for more than 50 ms. */
  readonly over: number;
};

export const slowest = (during: string, { slowestMs, p999Ms, over, requests }: Waited): Row =>
  atMost(
    `slowest request ${during}`,
    slowestMs,
    { required: WAIT_MS_MAX },
    " ms",
    `p99.9 ${p999Ms.toFixed(1)} ms, ${over} of ${inWords(requests)} over ${WAIT_MS_MAX} ms`,
  );

export type WaitingClient = AsyncDisposable & {
  /** How long the client waited while the work ran. */
  during(work: () => Promise<unknown>): Promise<Waited>;
  /** Warrants opened so far. */
  readonly opened: () => number;
};

/** Sends small requests until it is disposed of: one connection opens, another one reads and lists. */
export function startWaiting(target: Target, idsFile: string): WaitingClient {
  const ids = readFileSync(idsFile, "utf8").split("\n");
  let times: number[] = [];
  let opened = 0;
  let goesOn = true;
  const timed = async (request: () => Promise<unknown>) => {
    const startedAt = performance.now();
    await request();
    times.push(performance.now() - startedAt);
  };
  const get = async (path: string) => {
    const response = await fetch(`${target.url}${path}`, {
      headers: { Authorization: `Bearer ${target.secret}` },
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`${path}: ${response.status} ${text}`);
  };
  const keepOpening = async () => {
    for (; goesOn; opened++) {
      await timed(() => post(target, "/v1/warrants", opening(Date.now() + 365 * DAY_MS)));
    }
  };
  const keepReading = async () => {
    for (let turn = 0; goesOn; turn++) {
      const id = ids[(turn * 7_919) % ids.length];
      await timed(() => get(turn % 10 === 0 ? "/v1/warrants?limit=5" : `/v1/warrants/${id}`));
    }
  };
  const work = Promise.all([keepOpening(), keepReading()]);
  return {
    opened: () => opened,
    async during(what) {
      times = [];
      await Promise.race([what(), work]);
      const waited = times;
      times = [];
      return {
        requests: waited.length,
        slowestMs: waited.reduce((most, time) => Math.max(most, time), 0),
        p999Ms: quantile(waited, 0.999),
        over: waited.filter((time) => time > WAIT_MS_MAX).length,
      };
    },
    async [Symbol.asyncDispose]() {
      goesOn = false;
      await work;
    },
  };
}
