import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { connect, type Socket } from "node:net";
import { ByteBudget } from "../../src/core/byte-budget.ts";
import { BODIES_BYTES_MAX, claimBody, createBodyBudget, NO_ROOM } from "../../src/http/body.ts";
import { createShell } from "../../src/http/shell.ts";
import { chunked, rawRequest } from "../support/raw-request.ts";
import { type Service, startTestServer } from "../support/server.ts";
import { until } from "../support/until.ts";
import { waitsFor } from "../support/waits.ts";

/** The bytes that all bodies under way may hold together (docs/idempotency, "Memory"). */

const HEAD = ["POST /bench/run HTTP/1.1", "Host: localhost", "Content-Type: application/json"];
const BODY = JSON.stringify({
  clauses: [{ kind: "http.status", equals: 200 }],
  deliverable: { reached: true, status: 200 },
});
const WHOLE = [...HEAD, `Content-Length: ${BODY.length}`];

let service: Service;
beforeAll(async () => {
  service = await startTestServer();
});
afterAll(() => service?.close());

/** A server whose bodies may hold so many bytes together. Nobody waits: who gets none is refused. */
function serveWith(bytesMax: number) {
  const bodies = new ByteBudget({
    bytesMax,
    liveBytes: 0,
    partyBytesMax: bytesMax,
    waitingMax: 0,
    partyWaitingMax: 0,
    waitingBytesMax: 0,
  });
  const shell = createShell(service.ctx, {
    docsUrl: "http://localhost/docs",
    rateLimits: { read: 100, write: 100, bench: 100 },
    trustedProxies: [],
    bodies,
    onFault: (fault) => console.error(fault),
  });
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch: (request) => shell(request, () => "192.0.2.1"),
  });
  return { bodies, url: server.url.href, [Symbol.asyncDispose]: () => server.stop(true) };
}

/** A request whose body does not come to its end. */
function halfSent(url: string, header: string): Socket {
  const socket = connect(Number(new URL(url).port), "127.0.0.1");
  socket.on("error", () => {});
  socket.write(`${[...HEAD, header].join("\r\n")}\r\n\r\n`);
  return socket;
}

describe("the bodies under way", () => {
  const halves: readonly [name: string, header: string, bytes: number][] = [
    ["the length that its head says", "Content-Length: 1000", 1_000],
    ["the most that it may have, where it comes in chunks", "Transfer-Encoding: chunked", 1_048_576],
  ];
  for (const [name, header, bytes] of halves) {
    test(`hold ${name}, until its request ends`, async () => {
      await using server = serveWith(bytes);
      const half = halfSent(server.url, header);
      await until("the body holds its bytes", () => server.bodies.heldBytes === bytes);
      const refused = await rawRequest(server.url, WHOLE, [BODY]);
      expect([refused.status, refused.headers.get("retry-after"), refused.headers.get("connection")]).toEqual(
        [429, "1", "close"],
      );
      expect(((await refused.json()) as { error: { code: string } }).error.code).toBe("rate_limit_exceeded");
      half.destroy();
      await until("the bytes are given back", () => server.bodies.heldBytes === 0);
      expect((await rawRequest(server.url, WHOLE, [BODY])).status).toBe(200);
      expect(server.bodies.heldBytes).toBe(0);
    });
  }

  test("wait five seconds for their bytes, and no longer", async () => {
    const budget = createBodyBudget(64);
    const asked = { bytes: 1, party: "b", live: false };
    const all = budget.claim({ bytes: 64, party: "a", live: true });
    expect(await waitsFor(5_000, () => claimBody(budget, asked))).toBe(NO_ROOM);
    const waiting = claimBody(budget, asked);
    all?.end();
    expect(await waiting).toMatchObject({ isGranted: true });
  });

  test("wait for nothing where there is no body, or one that is refused by its length", async () => {
    await using server = serveWith(0);
    const tooLong = await rawRequest(server.url, [...HEAD, "Content-Length: 1048577"]);
    const none = await rawRequest(server.url, [...HEAD, "Content-Length: 0"]);
    expect([tooLong.status, none.status]).toEqual([400, 400]);
  });

  test("are read whole in chunks of a byte each", async () => {
    await using server = serveWith(1_048_576);
    const pieces = chunked([...BODY]);
    const answer = await rawRequest(server.url, [...HEAD, "Transfer-Encoding: chunked"], [pieces.join("")]);
    expect(answer.status).toBe(200);
    const tooLong = chunked(["x".repeat(524_288), "x".repeat(524_288), "x"]);
    const refused = await rawRequest(server.url, [...HEAD, "Transfer-Encoding: chunked"], tooLong);
    expect(await refused.text()).toContain("body: must be at most 1024 kB");
  });

  test("are 256 MiB, of which one caller has a quarter and live ones the last quarter", () => {
    const quarter = BODIES_BYTES_MAX / 4;
    expect(quarter).toBe(64 * 1024 * 1024);
    const budget = createBodyBudget();
    const isGranted = (bytes: number, party: string, live = false) =>
      budget.claim({ bytes, party, live })?.isGranted;
    expect([isGranted(quarter - 1, "a"), isGranted(2, "a")]).toEqual([true, false]);
    expect([isGranted(quarter, "b"), isGranted(quarter, "c"), isGranted(2, "d")]).toEqual([
      true,
      true,
      false,
    ]);
    expect(isGranted(quarter, "e", true)).toBe(true);
  });

  test("are waited for by 64 at most, and by 16 of one caller", () => {
    const waitingOf = (party: (index: number) => string) => {
      const budget = createBodyBudget(64);
      budget.claim({ bytes: 64, party: "all", live: true });
      const asked = Array.from({ length: 100 }, (_, index) => ({
        bytes: 1,
        party: party(index),
        live: false,
      }));
      return asked.filter((one) => budget.claim(one) !== null).length;
    };
    expect([waitingOf((index) => `${index}`), waitingOf(() => "one")]).toEqual([64, 16]);
  });
});
