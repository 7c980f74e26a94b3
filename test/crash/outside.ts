import type { Mode } from "../../src/core/roles.ts";
import { createJudge, type Judge, type Verdict } from "../support/receiver.ts";
import type { Random } from "./random.ts";

/** What is outside of Holdfast: a seller with deliverables, and a receiver of events. */

/** How many of the four clauses a deliverable passes. A `slow` one comes late, and `missing` is a 404. */
export const DELIVERABLES = ["4", "4", "4", "3", "3", "2", "2", "0", "missing", "slow/4"] as const;

const SLOW_MS = 1_000;

export function startSeller(random: Random): { urlOf(deliverable: string): string; stop(): void } {
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    async fetch(request) {
      const { pathname } = new URL(request.url);
      if (pathname === "/missing") return new Response("nothing here", { status: 404 });
      if (pathname.startsWith("/slow")) await Bun.sleep(random.below(SLOW_MS));
      const clauses = Number(pathname.slice(-1));
      return Response.json(
        Object.fromEntries(Array.from({ length: clauses }, (_, index) => [`c${index}`, index])),
      );
    },
  });
  return {
    urlOf: (deliverable) => `http://127.0.0.1:${server.port}/${deliverable}`,
    stop: () => void server.stop(true),
  };
}

export type Receiver = {
  /** The URL that the events of a mode are sent to. */
  urlOf(mode: Mode): string;
  /** Sets the secret that signs the deliveries to that URL. */
  trust(mode: Mode, secret: string): void;
  /** Requests that came. */
  readonly count: () => number;
  /** How often an event's delivery was received and accepted. */
  readonly acceptedOf: (eventId: string) => number;
  /** Deliveries that must not come: forged ones, an attempt seen before, a first attempt after that of a later event. */
  readonly wrong: readonly string[];
  /** Forgets what came, except what was wrong. */
  forget(): void;
  stop(): void;
};

/**
 * It refuses some first attempts and is sometimes slow. It may accept a delivery whose answer is then lost.
 *
 * @param times what the time may be, by the clocks that there are, epoch milliseconds
 */
export function startReceiver(random: Random, times: () => readonly number[]): Receiver {
  const accepted = new Map<string, number>();
  const judges = new Map<string, Judge>();
  /** For each warrant, the version of the newest event whose first attempt came. */
  const newest = new Map<string, number>();
  const wrong: string[] = [];
  let requests = 0;
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    async fetch(request) {
      const raw = await request.text();
      const { headers, url } = request;
      const { id, data } = JSON.parse(raw);
      const number = headers.get("service-attempt");
      const judge = judges.get(new URL(url).pathname);
      let verdict: Verdict | "to nobody" = "to nobody";
      for (const now of judge ? times() : []) {
        verdict = judge?.({ headers, raw }, now) ?? verdict;
        if (verdict !== "stale") break;
      }
      if (verdict !== "accepted") wrong.push(`${id}, attempt ${number}: ${verdict}`);
      if (number === "1") {
        const before = newest.get(data.warrant_id) ?? 0;
        if (data.version <= before) wrong.push(`${id}: version ${data.version} came after ${before}`);
        newest.set(data.warrant_id, data.version);
      }
      requests++;
      if (random.chance(0.2)) await Bun.sleep(random.below(300));
      if (number === "1" && random.chance(0.1)) return new Response(null, { status: 500 });
      accepted.set(id, (accepted.get(id) ?? 0) + 1);
      return new Response(null, { status: 204 });
    },
  });
  return {
    urlOf: (mode) => `http://127.0.0.1:${server.port}/${mode}`,
    trust: (mode, secret) => void judges.set(`/${mode}`, createJudge(secret)),
    count: () => requests,
    acceptedOf: (eventId) => accepted.get(eventId) ?? 0,
    wrong,
    forget() {
      accepted.clear();
      newest.clear();
    },
    stop: () => void server.stop(true),
  };
}
