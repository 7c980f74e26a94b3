import { createHmac, timingSafeEqual } from "node:crypto";
import type { Json } from "./client.ts";

/** A receiver of webhooks, written by the documentation alone (docs/webhooks, "Webhooks"). */

/** One POST as it came. */
export type Posted = { readonly headers: Headers; readonly raw: string };

export type Verdict = "accepted" | "forged" | "stale" | "replayed" | "malformed";

const TOLERANCE_SECONDS = 300;

/** Accepts or refuses deliveries to one endpoint. It remembers those that it has seen. */
export type Judge = (posted: Posted, now: number) => Verdict;

export function createJudge(secret: string): Judge {
  const seen = new Set<string>();
  return ({ headers, raw }, now) => {
    const [, seconds, v1] =
      /^t=([0-9]+),v1=([0-9a-f]{64})$/.exec(headers.get("service-signature") ?? "") ?? [];
    const delivery = headers.get("service-delivery") ?? "";
    const attempt = headers.get("service-attempt") ?? "";
    if (seconds === undefined || v1 === undefined) return "malformed";
    if (!/^whd_[0-9A-HJKMNP-TV-Z]{26}$/.test(delivery) || !/^[1-4]$/.test(attempt)) return "malformed";
    const expected = createHmac("sha256", secret).update(`${seconds}.${raw}`).digest();
    if (!timingSafeEqual(expected, Buffer.from(v1, "hex"))) return "forged";
    if (Math.abs(Number(seconds) - now / 1_000) > TOLERANCE_SECONDS) return "stale";
    if (headers.get("content-type") !== "application/json") return "malformed";
    if (JSON.parse(raw).type !== headers.get("service-event")) return "malformed";
    const once = `${delivery} ${attempt}`;
    if (seen.has(once)) return "replayed";
    seen.add(once);
    return "accepted";
  };
}

export type Received = Posted & {
  readonly path: string;
  readonly body: Json;
  readonly delivery: string;
  readonly attempt: number;
};

/** Answers a delivery (default: 200). */
export type Answers = (received: Received) => Response | Promise<Response>;

export type Receiver = {
  /** The URL to send to. Each path is an endpoint. */
  url(path?: string): string;
  readonly port: number;
  /** What came, in order. */
  readonly received: readonly Received[];
  /** Resolves once so many have come in all, with them. */
  whenReceived(count: number): Promise<readonly Received[]>;
  answer(answers: Answers): void;
  stop(): void;
};

const OK: Answers = () => new Response("ok");

export function startReceiver(): Receiver {
  const received: Received[] = [];
  const waiting: { readonly count: number; readonly resolve: (all: readonly Received[]) => void }[] = [];
  let answers = OK;
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    idleTimeout: 0,
    async fetch(request) {
      const raw = await request.text();
      const { headers } = request;
      const one: Received = {
        headers,
        raw,
        path: new URL(request.url).pathname,
        body: JSON.parse(raw),
        delivery: headers.get("service-delivery") ?? "",
        attempt: Number(headers.get("service-attempt")),
      };
      received.push(one);
      for (const { count, resolve } of waiting) if (received.length >= count) resolve(received);
      return answers(one);
    },
  });
  return {
    url: (path = "/") => `http://127.0.0.1:${server.port}${path}`,
    port: server.port ?? 0,
    received,
    whenReceived: (count) =>
      received.length >= count
        ? Promise.resolve(received)
        : new Promise((resolve) => void waiting.push({ count, resolve })),
    answer: (given) => {
      answers = given;
    },
    stop: () => void server.stop(true),
  };
}
