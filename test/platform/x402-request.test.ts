import { afterAll, beforeAll, describe, expect, spyOn, test } from "bun:test";
import { isRefusal } from "../../src/core/errors.ts";
import { CHALLENGE_BYTES_MAX } from "../../src/core/x402/challenge.ts";
import { createX402Client, type SellerRequest } from "../../src/platform/x402-request.ts";
import { CERTIFICATE, CERTIFICATE_AUTHORITY, PRIVATE_KEY } from "../support/tls.ts";
import { type Answer, type Listener, listen } from "../x402/listener.ts";

/** The requests of a purchase: where they go, what they carry, and what is known when no answer comes. */

const client = createX402Client({
  allowNetworks: ["127.0.0.0/8"],
  askTimeoutMs: 300,
  payTimeoutMs: 300,
  bytesMax: 1_000,
});
const PAYMENT = { name: "X-PAYMENT", value: "signed" };

let seller: Listener;
let other: Listener;
let requests: Request[];
const answers: Record<string, (request: Request) => Answer> = {
  "/goods": () => new Response("goods", { headers: { "X-Goods": "yes" } }),
  "/402": () => Response.json({ amount: "1" }, { status: 402 }),
  "/hop": () => redirect("/402"),
  "/hop-303": () => redirect("/402", 303),
  "/hop-away": () => redirect(`${other.url}/goods`),
  "/hop-file": () => redirect("file:///etc/passwd"),
  "/hop-round": () => redirect("/hop-round"),
  "/hang": () => "never",
  "/drop": () => "dropped",
  "/402-announced": () => new Response(new Uint8Array(CHALLENGE_BYTES_MAX + 1), { status: 402 }),
  "/402-full": () => new Response(new Uint8Array(CHALLENGE_BYTES_MAX), { status: 402 }),
  "/large": () => new Response("x".repeat(1_001), { headers: { "Payment-Response": "receipt" } }),
};
const redirect = (location: string, status = 307) => new Response(null, { status, headers: { location } });

/** A 402 whose body is a little longer than a challenge may be, and never ends. */
const endless402 = (headers: Record<string, string>) =>
  Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: () =>
      new Response(
        new ReadableStream({
          start: (controller) => controller.enqueue(new Uint8Array(CHALLENGE_BYTES_MAX + 1)),
        }),
        { status: 402, headers },
      ),
  });

beforeAll(async () => {
  requests = [];
  seller = await listen((request) => {
    requests.push(request);
    return answers[new URL(request.url).pathname]?.(request) ?? new Response(null, { status: 404 });
  });
  other = await listen(() => new Response("elsewhere"));
});
afterAll(async () => {
  await seller?.close();
  await other?.close();
});

const at = (path: string, overrides: Partial<SellerRequest> = {}): SellerRequest => ({
  url: seller.url + path,
  method: "GET",
  headers: {},
  ...overrides,
});

describe("the first request", () => {
  test("carries the caller's headers and no payment, and gives what came", async () => {
    const first = await client.ask(at("/goods?q=1", { headers: { Accept: "text/plain", "X-Mine": "1" } }));
    expect(first).toMatchObject({
      url: `${seller.url}/goods?q=1`,
      status: 200,
      headers: { "x-goods": "yes" },
    });
    if (isRefusal(first) || "problem" in first) throw new Error("it was not answered");
    expect(Buffer.from(first.evidence.body).toString()).toBe("goods");
    const { headers } = requests.at(-1)!;
    expect([headers.get("accept"), headers.get("x-mine"), headers.get("x-payment")]).toEqual([
      "text/plain",
      "1",
      null,
    ]);
  });

  test("is a POST without a body where that is asked for", async () => {
    await client.ask(at("/402", { method: "POST" }));
    const { method, headers } = requests.at(-1)!;
    expect([method, headers.get("content-length"), headers.get("content-type")]).toEqual(["POST", "0", null]);
  });

  test("follows redirects within its origin, and says where it came", async () => {
    expect(await client.ask(at("/hop"))).toMatchObject({ url: `${seller.url}/402`, status: 402 });
    expect(await client.ask(at("/hop", { method: "POST" }))).toMatchObject({ url: `${seller.url}/402` });
    expect(requests.at(-1)?.method).toBe("POST");
  });

  test.each([
    ["to another origin", "/hop-away", "it redirects to another origin"],
    ["to a file", "/hop-file", "it redirects to something that is not a URL that can be asked"],
    ["for ever", "/hop-round", "it redirects too often"],
    ["and hangs", "/hang", "it gave no answer in time"],
    ["and breaks off", "/drop", "it could not be reached"],
    ["and answers more than the cap", "/large", "its answer is larger than 10 MiB"],
  ])("fails where the seller redirects or answers %s", async (_, path, problem) => {
    expect(await client.ask(at(path))).toEqual({ problem });
  });

  test("does not follow a redirect from https to http", async () => {
    const secure = Bun.serve({
      hostname: "127.0.0.1",
      port: 0,
      tls: { cert: CERTIFICATE, key: PRIVATE_KEY },
      fetch: () => redirect(`http://example.test:${new URL(seller.url).port}/goods`),
    });
    const trusting = createX402Client({
      allowNetworks: ["127.0.0.0/8"],
      resolve: async () => ["127.0.0.1"],
      certificateAuthorities: [CERTIFICATE_AUTHORITY],
    });
    const before = requests.length;
    const answer = await trusting.ask(at("", { url: `https://example.test:${secure.port}/goods` }));
    expect(answer).toEqual({ problem: "it redirects to another origin" });
    expect(requests.length).toBe(before);
    await secure.stop(true);
  });

  const TOO_LONG = {
    refused: "x402_challenge_invalid",
    message: "The seller's 402 cannot be read: its body is larger than 256 kB.",
  } as const;

  test("reads no more of a 402 than a challenge may be", async () => {
    expect(await client.ask(at("/402-announced"))).toEqual(TOO_LONG);
    const endless = endless402({});
    expect(await client.ask(at("", { url: endless.url.href }))).toEqual(TOO_LONG);
    await endless.stop(true);
  });

  test("reads a whole challenge, beyond what evidence may be", async () => {
    expect(await client.ask(at("/402-full"))).toMatchObject({
      status: 402,
      evidence: { body: { length: CHALLENGE_BYTES_MAX } },
    });
  });

  test("reads no body beside the header, which wins", async () => {
    const endless = endless402({ "Payment-Required": "e30=" });
    expect(await client.ask(at("", { url: endless.url.href }))).toMatchObject({
      status: 402,
      headers: { "payment-required": "e30=" },
      evidence: { body: { length: 0 } },
    });
    await endless.stop(true);
  });

  test("does not turn a POST into a GET", async () => {
    const problem = "it redirects the POST to a GET";
    expect(await client.ask(at("/hop-303", { method: "POST" }))).toEqual({ problem });
    expect(await client.ask(at("/hop-303"))).toMatchObject({ status: 402 });
  });

  test("goes to no address that the operator does not allow", async () => {
    const strict = createX402Client({ allowNetworks: [] });
    const problem = "its address may not be reached";
    expect(await strict.ask(at("/goods"))).toEqual({ problem });
    const own = createX402Client({
      allowNetworks: ["127.0.0.0/8"],
      ownListeners: () => [{ address: "127.0.0.1", port: Number(new URL(seller.url).port) }],
    });
    expect(await own.ask(at("/goods"))).toEqual({ problem });
  });
});

describe("the paid request", () => {
  const pay = (path: string, overrides?: Partial<SellerRequest>) => client.pay(at(path, overrides), PAYMENT);

  test("carries the payment beside the caller's headers", async () => {
    const paid = await pay("/goods", { headers: { "x-mine": "1" } });
    expect(paid).toMatchObject({ connected: true, evidence: { reached: true, status: 200 } });
    const { headers } = requests.at(-1)!;
    expect([headers.get("x-payment"), headers.get("x-mine")]).toEqual(["signed", "1"]);
  });

  test("follows no redirect: that is the answer", async () => {
    const before = requests.length;
    expect(await pay("/hop")).toMatchObject({ connected: true, evidence: { reached: true, status: 307 } });
    expect(requests.length).toBe(before + 1);
  });

  test.each([
    ["hangs", "/hang", "source_timeout"],
    ["breaks off", "/drop", "source_unreachable"],
  ])("may have been taken where the seller %s", async (_, path, reason) => {
    expect(await pay(path)).toMatchObject({
      connected: true,
      headers: {},
      evidence: { reached: false, reason },
    });
  });

  test("keeps the headers of an answer that is too large: they may hold the settlement receipt", async () => {
    expect(await pay("/large")).toMatchObject({
      connected: true,
      headers: { "payment-response": "receipt" },
      evidence: { reached: false, reason: "source_too_large" },
    });
  });

  test("never connected where nobody listens, the name has no address, or the address is not allowed", async () => {
    const gone = await listen(() => "dropped");
    await gone.close();
    const urls = [`${gone.url}/`, "http://nowhere.invalid/", "http://10.0.0.1/"];
    for (const url of urls) {
      const paid = await client.pay({ url, method: "GET", headers: {} }, PAYMENT);
      expect([url, paid.connected, paid.evidence.reached]).toEqual([url, false, false]);
    }
  });
});

test("the first request has 30 s, the paid one 90 s", async () => {
  const usual = createX402Client({ allowNetworks: ["127.0.0.0/8"] });
  const timers = spyOn(globalThis, "setTimeout");
  try {
    const longest = () => Math.max(...timers.mock.calls.map(([, ms]) => Number(ms ?? 0)));
    await usual.ask(at("/goods"));
    expect(longest()).toBe(30_000);
    timers.mockClear();
    await usual.pay(at("/goods"), PAYMENT);
    expect(longest()).toBe(90_000);
  } finally {
    timers.mockRestore();
  }
});
