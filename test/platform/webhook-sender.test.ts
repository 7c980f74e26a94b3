import { afterAll, describe, expect, test } from "bun:test";
import type { Socket } from "node:net";
import type { AttemptResult } from "../../src/core/webhook.ts";
import { createWebhookSender, type WebhookSenderOptions } from "../../src/platform/webhook-sender.ts";
import { drip, flood, type HostileSource, hostileSource, respond } from "../support/hostile-source.ts";
import { CERTIFICATE_AUTHORITY } from "../support/tls.ts";

/** One attempt over HTTP: what is sent, what is stored of the answer, and that it ends in time. */

const TIMEOUT_MS = 400;
const receivers: HostileSource[] = [];
afterAll(() => {
  for (const receiver of receivers) receiver.close();
});

async function receiverOf(answer: (socket: Socket) => void, options = {}): Promise<HostileSource> {
  const receiver = await hostileSource(answer, options);
  receivers.push(receiver);
  return receiver;
}

const senderOf = (options: Partial<WebhookSenderOptions> = {}) =>
  createWebhookSender({
    allowNetworks: ["127.0.0.0/8"],
    timeoutMs: TIMEOUT_MS,
    resolve: async () => ["127.0.0.1"],
    ...options,
  });

const BODY = '{"payee":"Łódź"}';
const HEADERS = { "Content-Type": "application/json", "Service-Event": "warrant.opened" };

async function sendTo(answer: (socket: Socket) => void, options = {}): Promise<AttemptResult> {
  const { port } = await receiverOf(answer);
  return senderOf(options).send({ url: `http://hook.test:${port}/in?x=1`, headers: HEADERS, body: BODY });
}

test("is a POST of the body's bytes to the name, with its headers, that asks for no coding", async () => {
  const receiver = await receiverOf(respond("204 No Content"));
  const result = await senderOf().send({
    url: `http://hook.test:${receiver.port}/in?x=1#part`,
    headers: HEADERS,
    body: BODY,
  });
  expect(result).toEqual({ code: 204, responseStart: "", durationMs: expect.any(Number) });
  const [request = ""] = receiver.requests;
  expect(request).toStartWith("POST /in?x=1 HTTP/1.1\r\n");
  expect(request).toEndWith(`\r\n\r\n${BODY}`);
  const [head = ""] = request.toLowerCase().split("\r\n\r\n");
  for (const line of [
    `host: hook.test:${receiver.port}`,
    "content-type: application/json",
    "service-event: warrant.opened",
    `content-length: ${Buffer.byteLength(BODY)}`,
    "accept-encoding: identity",
    "connection: close",
  ])
    expect(head.split("\r\n")).toContain(line);
});

test("over TLS the certificate must be the name's", async () => {
  const { port } = await receiverOf(respond("200 OK"), { tls: true });
  const send = (host: string) =>
    senderOf({ certificateAuthorities: [CERTIFICATE_AUTHORITY] }).send({
      url: `https://${host}:${port}/`,
      headers: HEADERS,
      body: BODY,
    });
  expect(await send("example.test")).toMatchObject({ code: 200 });
  expect(await send("other.test")).toMatchObject({ code: null, responseStart: "source_unreachable" });
});

describe("what is stored of the answer", () => {
  test.each([
    ["the start of the body", "200 OK", "", "thanks", "thanks"],
    ["a redirect as it is", "302 Found", "Location: http://127.0.0.1:1/\r\nContent-Length: 0\r\n", "", ""],
    [
      "bytes that are no text, as far as they can be read",
      "500 Oh",
      "",
      Buffer.from([0x61, 0xff, 0x62]),
      "a\ufffdb",
    ],
    ["no U+0000, which PostgreSQL cannot keep", "200 OK", "", "a\0b", "a\ufffdb"],
    ["a coded body as it came", "200 OK", "Content-Encoding: gzip\r\n", "not gzip", "not gzip"],
  ])("%s", async (_, status, headers, body, responseStart) => {
    expect(await sendTo(respond(status, headers, body))).toMatchObject({
      code: Number(status.slice(0, 3)),
      responseStart,
    });
  });

  test("of an endless body its first kilobyte, at once", async () => {
    const result = await sendTo((socket) => {
      socket.write("HTTP/1.1 200 OK\r\n\r\n");
      flood(socket, Buffer.alloc(65_536, "x"));
    });
    expect(result).toMatchObject({ code: 200, responseStart: "x".repeat(1_024) });
    expect(result.durationMs).toBeLessThan(TIMEOUT_MS);
  });

  test("of a body that never ends, what came in time: the status has decided", async () => {
    const result = await sendTo((socket) => {
      socket.write("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nabc");
    });
    expect(result).toMatchObject({ code: 200, responseStart: "abc" });
    expect(result.durationMs).toBeWithin(TIMEOUT_MS - 50, TIMEOUT_MS * 3);
  });
});

describe("no response", () => {
  const nothing = (): void => {};
  test.each([
    ["that never comes", "source_timeout", nothing],
    [
      "whose head never ends",
      "source_timeout",
      (socket: Socket) => {
        socket.write("HTTP/1.1 200 OK\r\nX-Long: ");
        drip(socket, "a");
      },
    ],
    ["that is a closed connection", "source_unreachable", (socket: Socket) => socket.end()],
    ["that is a reset", "source_unreachable", (socket: Socket) => socket.resetAndDestroy()],
    ["that is not HTTP", "source_unreachable", (socket: Socket) => socket.end("SMTP ready\r\n\r\n")],
  ])("%s", async (_, why, answer) => {
    const receiver = await receiverOf(answer);
    const result = await senderOf().send({
      url: `http://hook.test:${receiver.port}/`,
      headers: HEADERS,
      body: BODY,
    });
    expect(result).toMatchObject({ code: null, responseStart: why });
    expect(result.durationMs).toBeLessThan(TIMEOUT_MS * 3);
    // One attempt is one request: nothing repeats it.
    expect(receiver.requests).toHaveLength(1);
  });

  test("where nobody listens, where the name has no address or a private one, or at the service itself", async () => {
    const { port, close } = await receiverOf(nothing);
    close();
    const send = (options: Partial<WebhookSenderOptions>) =>
      senderOf(options).send({ url: `http://hook.test:${port}/`, headers: HEADERS, body: BODY });
    expect(await send({})).toMatchObject({ code: null, responseStart: "source_unreachable" });
    expect(await send({ resolve: async () => [] })).toMatchObject({ responseStart: "source_unreachable" });
    expect(await send({ resolve: async () => ["10.0.0.1"] })).toMatchObject({
      responseStart: "source_blocked",
    });
    const ownListeners = () => [{ address: "127.0.0.1", port }];
    expect(await send({ ownListeners })).toMatchObject({ responseStart: "source_blocked" });
    const resolve = () => new Promise<never>(() => {});
    expect(await send({ resolve })).toMatchObject({ responseStart: "source_timeout" });
  });
});
