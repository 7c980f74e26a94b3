import { afterAll, beforeAll, describe, expect, spyOn, test } from "bun:test";
import { connect } from "node:net";
import { parseJsonText } from "../../src/core/json-text.ts";
import { createShell } from "../../src/http/shell.ts";
import { freshKey, type Reply, readReply } from "../support/client.ts";
import { fastestMs } from "../support/fastest.ts";
import type { TestOrganisation } from "../support/organisations.ts";
import { chunked, rawRequest } from "../support/raw-request.ts";
import { type Service, startTestServer } from "../support/server.ts";

/** What clients send over a connection: hosts of every length, bodies that come very slowly, bodies that are slow to refuse. */

let service: Service;
let home: TestOrganisation;
beforeAll(async () => {
  service = await startTestServer();
  home = await service.organisation();
});
afterAll(() => service?.close());

const docsUrl = (): string => `http://localhost:${new URL(service.url).port}/docs`;

describe("the path is found, whatever the host is", () => {
  const hosts: readonly [name: string, head: (line: string) => readonly string[]][] = [
    ["one character", (line) => [`${line} HTTP/1.1`, "Host: a"]],
    ["three characters", (line) => [`${line} HTTP/1.1`, "Host: api"]],
    ["four characters", (line) => [`${line} HTTP/1.1`, "Host: apis"]],
    ["no characters", (line) => [`${line} HTTP/1.1`, "Host: "]],
    ["none, as in HTTP/1.0", (line) => [`${line} HTTP/1.0`]],
    ["brackets", (line) => [`${line} HTTP/1.1`, "Host: []"]],
    ["slashes", (line) => [`${line} HTTP/1.1`, "Host: a/v1/b"]],
  ];
  for (const [name, head] of hosts) {
    test(name, async () => {
      const send = async (line: string, headers: readonly string[] = [], body?: string): Promise<Reply> => {
        const [method] = line.split(" ");
        const sent = [
          ...head(line),
          ...headers,
          ...(body === undefined ? [] : [`Content-Length: ${body.length}`]),
        ];
        return readReply(
          await rawRequest(service.url, sent, body === undefined ? [] : [body]),
          docsUrl(),
          method,
        );
      };
      expect((await send("GET /healthz")).body).toEqual({ object: "health", status: "ok" });
      const as = [`Authorization: ${home.live.as.Authorization}`];
      const posted = [...as, "Content-Type: application/json", `Idempotency-Key: ${freshKey()}`];
      const opened = await send("POST /v1/warrants", posted, JSON.stringify(service.body({ amount: "1" })));
      expect([opened.status, opened.body.state]).toEqual([201, "held"]);
      const listed = await send("GET /v1/warrants?limit=1&sort=created", as);
      expect(listed.body.data).toHaveLength(1);
      const wrong = await send("GET /v1/warrants?limit=x/y", as);
      expect(wrong.body.error.message).toBe("limit: must be an integer from 1 to 100");
      const unknown = await send("GET /nothing?a=/b", as);
      expect([unknown.code, unknown.body.error.message]).toEqual([
        "route_not_found",
        "There is no GET /nothing.",
      ]);
    });
  }

  test("HEAD too", async () => {
    const head = ["HEAD /healthz HTTP/1.0"];
    // The answer has a Content-Length and no body. The reader of responses would wait for the body.
    const line = await new Promise<string>((resolve, reject) => {
      const socket = connect(Number(new URL(service.url).port), "127.0.0.1");
      socket.on("connect", () => socket.write(`${head.join("\r\n")}\r\n\r\n`));
      socket.on("data", (data: Buffer) => {
        socket.destroy();
        resolve(data.toString("latin1").split("\r\n")[0] ?? "");
      });
      socket.on("error", reject);
    });
    expect(line).toEndWith("200 OK");
  });
});

describe("a body that comes very slowly", () => {
  const lengths: readonly [name: string, header: string, piece: string][] = [
    ["with its length", "Content-Length: 1000", " "],
    ["in chunks", "Transfer-Encoding: chunked", "1\r\n \r\n"],
  ];
  function serveWith(bodyMsMax: number) {
    const rates = { read: 100, write: 100, bench: 100 };
    const options = { docsUrl: docsUrl(), rateLimits: rates, trustedProxies: [], bodyMsMax };
    const shell = createShell(service.ctx, { ...options, onFault: (fault) => console.error(fault) });
    return Bun.serve({
      port: 0,
      hostname: "127.0.0.1",
      fetch: (request) => shell(request, () => "192.0.2.1"),
    });
  }

  for (const [name, header, piece] of lengths) {
    test(`${name} is refused in time, and the connection is closed`, async () => {
      const server = serveWith(100);
      const line = ["POST /bench/run HTTP/1.1", "Host: localhost", "Content-Type: application/json", header];
      try {
        const received = await trickle(server.port ?? 0, line, piece);
        expect(received).toStartWith("HTTP/1.1 400");
        expect(received).toContain('"message":"body: took longer than 15 s"');
      } finally {
        await server.stop(true);
      }
    });
  }

  test("has a time limit only where it did not come together with its headers", async () => {
    const bodyMsMax = 54_321;
    const server = serveWith(bodyMsMax);
    const timeouts = spyOn(globalThis, "setTimeout");
    const timed = () => timeouts.mock.calls.filter(([, ms]) => ms === bodyMsMax).length;
    const head =
      "POST /bench/run HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n";
    try {
      const answers: string[] = [];
      for (const pieces of [[`${head}{}`], [head, "{}"]]) {
        answers.push(await inPieces(server.port ?? 0, pieces), String(timed()));
      }
      const refused = expect.stringContaining("clauses: is required");
      expect(answers).toEqual([refused, "0", refused, "1"]);
    } finally {
      timeouts.mockRestore();
      await server.stop(true);
    }
  });

  /** Sends the pieces one after the other. Answers the first bytes that come back. */
  function inPieces(port: number, pieces: readonly string[]): Promise<string> {
    return new Promise((resolve, reject) => {
      const socket = connect(port, "127.0.0.1", async () => {
        for (const piece of pieces) {
          socket.write(piece);
          // Long enough for it to arrive by itself: two that arrive together are one piece for the server.
          await Bun.sleep(50);
        }
      });
      socket.on("error", reject);
      socket.on("data", (data: Buffer) => {
        socket.destroy();
        resolve(data.toString());
      });
    });
  }

  /** Sends a piece from time to time until the other side closes. Answers what came back. */
  function trickle(port: number, head: readonly string[], piece: string): Promise<string> {
    const { promise, resolve, reject } = Promise.withResolvers<string>();
    let received = "";
    const socket = connect(port, "127.0.0.1");
    const timer = setInterval(() => socket.write(piece), 20);
    const giveUp = setTimeout(() => socket.destroy(new Error(`still open after ${received}`)), 3_000);
    socket.on("connect", () => socket.write(`${head.join("\r\n")}\r\n\r\n`));
    socket.on("data", (data: Buffer) => {
      received += data.toString();
    });
    // Bytes that are sent while the other side closes may reset the connection.
    socket.on("error", (error) => (received === "" || "code" in error === false ? reject(error) : null));
    socket.on("close", () => {
      clearInterval(timer);
      clearTimeout(giveUp);
      resolve(received);
    });
    return promise;
  }

  test("one that comes in time is read, in chunks too", async () => {
    const body = JSON.stringify({
      clauses: [{ kind: "http.status", equals: 200 }],
      deliverable: { reached: true, status: 200 },
    });
    const head = ["POST /bench/run HTTP/1.1", "Host: localhost", "Content-Type: application/json"];
    for (const [header, pieces] of [
      [`Content-Length: ${body.length}`, [body]],
      ["Transfer-Encoding: chunked", chunked([body.slice(0, 20), body.slice(20)])],
    ] as const) {
      const response = await rawRequest(service.url, [...head, header], pieces);
      expect((await readReply(response, docsUrl())).status).toBe(200);
    }
  });
});

describe("a body that is made to be slow to refuse is refused fast", () => {
  const ones = Array(520_000).fill(1);
  const clauses = [{ kind: "http.status", equals: 200 }];
  const deliverable = { reached: true };
  const wrong: readonly [name: string, path: string, body: () => unknown, message: string][] = [
    [
      "topics",
      "/bench/run",
      () => ({ clauses, deliverable: { ...deliverable, emitted_topics: ones } }),
      "deliverable.emitted_topics: must be an array of strings",
    ],
    [
      "clauses of a bench",
      "/bench/run",
      () => ({ clauses: ones, deliverable }),
      "clauses: must be an array of 1 to 64 clauses",
    ],
    ["an unknown field", "/bench/run", () => ({ clauses, deliverable, x: ones }), "x: unknown field"],
    [
      "clauses of a warrant",
      "/v1/warrants",
      () => service.body({ spec: { clauses: Array(80_000).fill({}) } }),
      "spec.clauses: must be an array of 1 to 64 clauses",
    ],
  ];
  for (const [name, path, body, message] of wrong) {
    test(name, async () => {
      const text = JSON.stringify(body());
      const taken: number[] = [];
      for (let again = 0; again < 5; again++) {
        const start = performance.now();
        const reply = await service.post(path, text, { as: home.live.as });
        taken.push(performance.now() - start);
        expect([reply.status, reply.body.error.message]).toEqual([400, message]);
      }
      // Compared with reading the body: refusing takes a few times as long, and printing such a body some thirty times.
      expect(Math.min(...taken) / fastestMs(() => parseJsonText(text))).toBeLessThan(20);
    });
  }
});
