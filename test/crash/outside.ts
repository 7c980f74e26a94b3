import type { Random } from "./random.ts";

/** The world outside: a seller with deliverables, and a receiver of events. */

/** How many of the four clauses its deliverable passes; `slow` ones take their time, `missing` is a 404. */
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
  readonly url: string;
  /** Requests that came. */
  readonly count: () => number;
  /** How often an event's delivery was received and accepted. */
  readonly acceptedOf: (eventId: string) => number;
  /** Attempts that came more than once. */
  readonly repeated: readonly string[];
  /** Forgets what came, but for the repetitions. */
  forget(): void;
  stop(): void;
};

/** It refuses some first attempts and is slow at times. A cut connection may mean that it accepted what nobody heard of. */
export function startReceiver(random: Random): Receiver {
  const accepted = new Map<string, number>();
  const attempts = new Set<string>();
  const repeated: string[] = [];
  let requests = 0;
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    async fetch(request) {
      const event = (await request.json()) as { id: string };
      const number = request.headers.get("service-attempt");
      const attempt = `${request.headers.get("service-delivery")} ${number}`;
      requests++;
      if (attempts.has(attempt)) repeated.push(attempt);
      attempts.add(attempt);
      if (random.chance(0.2)) await Bun.sleep(random.below(300));
      if (number === "1" && random.chance(0.1)) return new Response(null, { status: 500 });
      accepted.set(event.id, (accepted.get(event.id) ?? 0) + 1);
      return new Response(null, { status: 204 });
    },
  });
  return {
    url: `http://127.0.0.1:${server.port}/events`,
    count: () => requests,
    acceptedOf: (eventId) => accepted.get(eventId) ?? 0,
    repeated,
    forget() {
      accepted.clear();
      attempts.clear();
    },
    stop: () => void server.stop(true),
  };
}
