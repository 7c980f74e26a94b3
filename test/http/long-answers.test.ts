import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { connect, type Socket } from "node:net";
import fc from "fast-check";
import { ByteBudget } from "../../src/core/byte-budget.ts";
import { payment } from "../../src/http/answers.ts";
import {
  createAnswerBudget,
  type LongBody,
  PIECE_BYTES,
  type Room,
  roomIn,
  sendable,
} from "../../src/http/sending.ts";
import { createShell } from "../../src/http/shell.ts";
import { withContent } from "../../src/services/x402/answer.ts";
import { delivers, type Market, openMarket, SELLER_URL } from "../support/market.ts";
import type { TestOrganisation } from "../support/organisations.ts";
import { type ShellService, startTestShell } from "../support/server.ts";
import { until } from "../support/until.ts";
import { waitsFor } from "../support/waits.ts";

/** Long answers are sent in pieces, and their bytes come out of a budget until they have gone (docs/idempotency, "Memory"). */

const MIB = 1024 * 1024;

/** An answer whose body is the content of a purchase. */
async function paid(content: Uint8Array, room: Room = async () => null) {
  const answer = { status: 200, body: '{"status":200,"body":""}', contentHash: "of it", replayed: false };
  const result = (await payment(withContent(answer as never, content), room)) as {
    body: LongBody;
    headers: Record<string, string>;
  };
  return { ...result, text: Buffer.concat([...result.body.pieces()]).toString() };
}

describe("what a seller answered", () => {
  /** Of up to three pieces, so that characters are cut at their ends. */
  const padded = fc
    .tuple(fc.integer({ min: 0, max: 2 * PIECE_BYTES }), fc.string({ unit: "binary", maxLength: 50 }))
    .map(([length, text]) => "x".repeat(length) + text.repeat(200));

  test("is the same in pieces as in one: text", () => {
    return fc.assert(
      fc.asyncProperty(padded, async (text) => {
        const whole = text.toWellFormed();
        const { text: sent, headers } = await paid(Buffer.from(whole));
        expect(sent === `{"status":200,"body":${JSON.stringify(whole)}}`).toBe(true);
        expect(headers).toEqual({});
      }),
      { numRuns: 50 },
    );
  });

  test("is the same in pieces as in one: bytes that are no text", () => {
    return fc.assert(
      fc.asyncProperty(
        fc.uint8Array({ maxLength: 100 }),
        fc.integer({ min: 0, max: 3 }),
        async (bytes, pieces) => {
          const content = Buffer.concat([
            Buffer.alloc(pieces * PIECE_BYTES - pieces, 0xff),
            Buffer.of(0xff),
            bytes,
          ]);
          const { text, headers } = await paid(content);
          expect(text === `{"status":200,"body":"${content.toString("base64")}"}`).toBe(true);
          expect(headers).toEqual({ "Service-Body-Encoding": "base64" });
        },
      ),
      { numRuns: 50 },
    );
  });

  test("keeps a byte-order mark, and control characters", async () => {
    const text = "\ufeff\u0001\u2028\u{1f600}";
    expect(JSON.parse((await paid(Buffer.from(text))).text).body).toBe(text);
  });
});

describe("the bytes of long answers", () => {
  let market: Market;
  let service: ShellService;
  let home: TestOrganisation;
  beforeEach(async () => {
    market = openMarket();
    service = startTestShell({ x402: market.x402 });
    home = await service.organisation();
  });
  afterEach(() => service.close());

  /** A server whose long answers may hold so many bytes. Nobody waits: who gets none is refused. */
  function serveWith(bytesMax: number) {
    const answers = new ByteBudget({
      ...{ bytesMax, liveBytes: 0, partyBytesMax: bytesMax },
      ...{ waitingMax: 0, partyWaitingMax: 0, waitingBytesMax: 0 },
    });
    const shell = createShell(service.ctx, {
      docsUrl: "http://localhost/docs",
      rateLimits: { read: 100, write: 100, bench: 100 },
      trustedProxies: [],
      answers,
      onFault: (fault) => console.error(fault),
    });
    const server = Bun.serve({
      port: 0,
      hostname: "127.0.0.1",
      fetch: (request) => shell(request, () => "192.0.2.1"),
    });
    return { answers, server, url: server.url.href, [Symbol.asyncDispose]: () => server.stop(true) };
  }

  const body = JSON.stringify({
    ...{ url: SELLER_URL, max_amount: "1000" },
    spec: { clauses: [{ kind: "http.status", equals: 200 }] },
  });
  const headers = () => ({
    ...home.sandbox.as,
    "content-type": "application/json",
    "idempotency-key": "once",
  });
  const pay = (url: string) => fetch(`${url}v1/x402/pay`, { method: "POST", headers: headers(), body });

  /** A caller who asks, and takes nothing of the answer. */
  function askAndPause(url: string): Socket {
    const socket = connect(Number(new URL(url).port), "127.0.0.1");
    socket.on("error", () => {});
    const head = Object.entries({ ...headers(), host: "localhost", "content-length": `${body.length}` });
    socket.write(
      `POST /v1/x402/pay HTTP/1.1\r\n${head.map(([name, value]) => `${name}: ${value}\r\n`).join("")}\r\n${body}`,
    );
    socket.pause();
    return socket;
  }

  test("are held until the caller has taken them or left; meanwhile there are none for another", async () => {
    // More than the system's buffers take: each byte is six in JSON.
    const goods = "\u0001".repeat(5 * MIB);
    market.paid = () => delivers(goods);
    await using server = serveWith(goods.length);
    const { answers, url } = server;
    const slow = askAndPause(url);
    await until("the answer holds its bytes", () => answers.heldBytes === goods.length);
    const refused = await pay(url);
    expect([refused.status, refused.headers.get("retry-after")]).toEqual([429, "1"]);
    expect(((await refused.json()) as { error: { code: string } }).error.code).toBe("rate_limit_exceeded");
    slow.destroy();
    await until("the bytes are given back", () => answers.heldBytes === 0);
    const replayed = await pay(url);
    expect(replayed.headers.get("idempotent-replayed")).toBe("true");
    expect(((await replayed.json()) as { body: string }).body === goods).toBe(true);
    await until("they are given back again", () => answers.heldBytes === 0);
    expect(market.sent.length).toBe(1);
  });

  test("are given back where the caller has left before there was an answer", async () => {
    const goods = "x".repeat(MIB);
    const asked = Promise.withResolvers<void>();
    const left = Promise.withResolvers<void>();
    market.paid = async () => {
      asked.resolve();
      await left.promise;
      return delivers(goods);
    };
    await using server = serveWith(goods.length);
    const socket = askAndPause(server.url);
    await asked.promise;
    socket.destroy();
    await until("the server has noticed", () => server.server.pendingRequests === 0);
    left.resolve();
    await until("the purchase has ended", async () => (await pay(server.url)).status === 200);
    await until("the bytes are given back", () => server.answers.heldBytes === 0);
  });

  test("are given back where one takes too long over them, and the answer breaks off", async () => {
    const budget = new ByteBudget({
      ...{ bytesMax: MIB, liveBytes: 0, partyBytesMax: MIB },
      ...{ waitingMax: 0, partyWaitingMax: 0, waitingBytesMax: 0 },
    });
    const room = roomIn(budget, { party: "slow", live: false });
    const stream = (await sendable("x".repeat(MIB), room, 1)) as ReadableStream<Uint8Array>;
    expect(budget.heldBytes).toBe(MIB);
    await until("the time is up", () => budget.heldBytes === 0);
    expect(await new Response(stream).text().catch(({ message }) => message)).toBe(
      "the answer was not taken in time",
    );
  });

  test("are given back where what was bought cannot be read, or is gone", async () => {
    const budget = new ByteBudget({
      ...{ bytesMax: MIB, liveBytes: 0, partyBytesMax: MIB },
      ...{ waitingMax: 0, partyWaitingMax: 0, waitingBytesMax: 0 },
    });
    const room = roomIn(budget, { party: "buyer", live: false });
    const bought = { status: 200, body: '{"body":""}', contentHash: "of it", replayed: true, isGone: false };
    const broken = { length: MIB, read: () => Promise.reject(new Error("the disk is away")) };
    await expect(payment({ ...bought, content: broken } as never, room)).rejects.toThrow("the disk is away");
    expect(budget.heldBytes).toBe(0);
    const gone = { length: MIB, read: async () => null };
    expect(await payment({ ...bought, content: gone } as never, room)).toMatchObject({
      headers: { "Service-Body-Gone": "true" },
    });
    expect(budget.heldBytes).toBe(0);
  });

  test("are not kept once they are given back: who took too long holds no memory that nobody counts", async () => {
    const room = roomIn(createAnswerBudget(), { party: "slow", live: false });
    const lateAnswer = async () => {
      const content = Buffer.alloc(MIB, "x");
      const { body } = await paid(content, room);
      return { kept: new WeakRef(content), stream: (await sendable(body, room, 1)) as ReadableStream };
    };
    const { kept, stream } = await lateAnswer();
    await until("its bytes are gone", () => {
      Bun.gc(true);
      return kept.deref() === undefined;
    });
    expect(stream.locked).toBe(false);
  });

  test("are waited for five seconds, and no longer", async () => {
    const budget = createAnswerBudget(4 * PIECE_BYTES);
    budget.claim({ bytes: 4 * PIECE_BYTES, party: "a", live: true });
    const room = roomIn(budget, { party: "b", live: false });
    expect(await waitsFor(5_000, async () => room(PIECE_BYTES + 1))).toMatchObject({
      refused: "rate_limit_exceeded",
    });
  });

  test("a short answer takes none", async () => {
    market.paid = () => delivers("x".repeat(PIECE_BYTES));
    await using server = serveWith(0);
    const answer = await pay(server.url);
    expect([answer.status, answer.headers.has("content-length")]).toEqual([200, true]);
  });
});
