import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { gzipSync } from "node:zlib";
import type { ByteBudget, Claim } from "../../src/core/byte-budget.ts";
import { createEvidenceBudget, EvidenceBusy, EvidenceRoom } from "../../src/platform/evidence-room.ts";
import { createFetcher } from "../../src/platform/fetcher.ts";
import { createX402Client } from "../../src/platform/x402-request.ts";
import { until } from "../support/until.ts";
import { waitsFor } from "../support/waits.ts";

/** The memory for bodies that are being fetched (docs/idempotency, "Memory"). */

const MIB = 1024 * 1024;
const LARGE = new Uint8Array(200_000);
const gate = Promise.withResolvers<void>();

let source: ReturnType<typeof Bun.serve>;
beforeAll(() => {
  source = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch(request) {
      const { pathname } = new URL(request.url);
      if (pathname === "/small") return new Response(new Uint8Array(60_000));
      if (pathname === "/coded")
        return new Response(gzipSync(LARGE), { headers: { "Content-Encoding": "gzip" } });
      if (pathname === "/slow")
        return new Response(
          (async function* () {
            yield LARGE;
            await gate.promise;
          })() as never,
        );
      return new Response(LARGE);
    },
  });
});
afterAll(() => source.stop(true));

const url = (path: string): string => new URL(path, source.url).href;
const fetcherOf = (budget: ByteBudget, timeoutMs = 10_000) =>
  createFetcher({ allowNetworks: ["127.0.0.0/8"], timeoutMs, budget });
const OWNER = { party: "a", live: false };

/** A budget whose bytes somebody else holds. Who asks for more than `waitingMax` allows is refused at once. */
function taken(waitingMax: number): { readonly budget: ByteBudget; readonly claim: Claim } {
  const budget = createEvidenceBudget(64 * MIB, waitingMax);
  const claim = budget.claim({ bytes: 64 * MIB, party: "other", live: true });
  if (!claim) throw new Error("there is nothing to take");
  return { budget, claim };
}

describe("where other bodies take all memory", () => {
  for (const path of ["/large", "/coded"]) {
    test(`nothing is said about the source of ${path}`, async () => {
      const error = await fetcherOf(taken(0).budget)
        .fetch(url(path), OWNER)
        .catch((error) => error);
      expect(error).toBeInstanceOf(EvidenceBusy);
      expect(error).toMatchObject({ refused: "rate_limit_exceeded" });
    });
  }

  test("a small body is fetched all the same", async () => {
    const { evidence } = await fetcherOf(taken(0).budget).fetch(url("/small"), OWNER);
    expect(evidence.reached && evidence.body.length).toBe(60_000);
  });

  test("a large one waits for five seconds, and no longer", async () => {
    const room = new EvidenceRoom(taken(4).budget, OWNER);
    const asked = () => room.take(1).catch((error) => error);
    expect(await waitsFor(5_000, asked)).toBeInstanceOf(EvidenceBusy);
  });

  test("a large one waits, and is whole then", async () => {
    const { budget, claim } = taken(4);
    const fetching = fetcherOf(budget).fetch(url("/large"), OWNER);
    claim.end();
    const { evidence } = await fetching;
    expect(evidence.reached && evidence.body.length).toBe(LARGE.length);
    expect(budget.heldBytes).toBe(0);
  });

  test("a fetch whose time has passed while it waited is no timeout of its source", async () => {
    const { budget, claim } = taken(4);
    const fetching = fetcherOf(budget, 100).fetch(url("/slow"), OWNER);
    // Longer than the fetch may take.
    setTimeout(() => claim.end(), 300);
    expect(await fetching.catch((error) => error)).toBeInstanceOf(EvidenceBusy);
  });

  test("a seller is not paid: its first answer is refused, to be asked for again", async () => {
    const { budget } = taken(0);
    const client = createX402Client({ allowNetworks: ["127.0.0.0/8"], budget });
    const first = await client.ask({ url: url("/large"), method: "GET", headers: {} }, OWNER);
    expect(first).toMatchObject({ refused: "rate_limit_exceeded" });
    // What is paid for cannot be asked for again.
    const paid = await client.pay(
      { url: url("/large"), method: "GET", headers: {} },
      { name: "X-PAYMENT", value: "x" },
    );
    expect(paid.evidence.reached).toBe(true);
  });
});

test("a body holds twice its length, or the most that it can have, until its fetch ends", async () => {
  const budget = createEvidenceBudget();
  const fetching = fetcherOf(budget).fetch(url("/slow"), OWNER);
  await until("the body holds memory", () => budget.heldBytes === 2 * 10 * MIB);
  gate.resolve();
  await fetching;
  expect(budget.heldBytes).toBe(0);
});

test("all have 192 MiB: one organisation half of it, and live ones the last quarter", () => {
  const budget = createEvidenceBudget();
  const isGranted = (bytes: number, party: string, live: boolean) =>
    budget.claim({ bytes, party, live })?.isGranted;
  expect([isGranted(95 * MIB, "a", false), isGranted(2 * MIB, "a", false)]).toEqual([true, false]);
  expect(createEvidenceBudget().claim({ bytes: 145 * MIB, party: "a", live: false })?.isGranted).toBe(false);
  expect(createEvidenceBudget().claim({ bytes: 192 * MIB, party: "a", live: true })?.isGranted).toBe(true);
});
