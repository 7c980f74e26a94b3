import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { freshKey, type Reply, readReply } from "../support/client.ts";
import type { TestOrganisation } from "../support/organisations.ts";
import { chunked, rawRequest } from "../support/raw-request.ts";
import { type Service, startTestServer } from "../support/server.ts";

/** Bodies that are not a JSON object, and broken requests: each is 400 in the envelope, holds nothing and uses up no key. */

let service: Service;
let home: TestOrganisation;
beforeAll(async () => {
  service = await startTestServer();
  home = await service.organisation();
});
afterAll(() => service?.close());

const KB = 1_024;
const text = (): string => JSON.stringify(service.body());
/** A good body, padded with blanks to a length. */
const padded = (length: number): string => text().padEnd(length);
/** A good body with more text before its last brace. */
const withMore = (more: string): string => `${text().slice(0, -1)},${more}}`;
const bytes = (...parts: (string | number[])[]): Uint8Array =>
  Buffer.concat(parts.map((part) => (typeof part === "string" ? Buffer.from(part) : Buffer.from(part))));

/** Expects the refusal, and that the same key then opens with a good body. */
async function refusesBody(send: (key: string) => Promise<Reply>, start: string): Promise<void> {
  const key = freshKey();
  await service.refuses(home, [400, "validation_failed", start], () => send(key));
  const good = await service.post("/v1/warrants", service.body({ amount: "1" }), { as: home.live.as, key });
  expect([good.status, good.headers.get("idempotent-replayed")]).toEqual([201, null]);
}

describe("bodies that are not a JSON object", () => {
  const scenarios: readonly [name: string, body: () => string | Uint8Array, start: string][] = [
    ["cut off", () => text().slice(0, -1), "body: "],
    ["more behind it", () => `${text()}{}`, "body: "],
    ["a trailing comma", () => text().replace(/\}$/, ",}"), "body: "],
    ["a comment", () => `/* now */${text()}`, "body: "],
    ["single quotes", () => text().replaceAll('"', "'"), "body: "],
    ["NaN", () => withMore('"x":NaN'), "body: "],
    ["a number beyond the finite", () => withMore('"x":1e999'), "body: "],
    ["a raw line end in a string", () => text().replace("acme", "ac\nme"), "body: "],
    ["a key twice", () => withMore('"amount":"1"'), "body: has the same key twice"],
    ["a key twice, escaped", () => withMore('"\\u0061mount":"1"'), "body: has the same key twice"],
    [
      "a key twice, deep inside",
      () => text().replace('"equals":200', '"equals":200,"equals":200'),
      "body: has the same key twice",
    ],
    [
      "a key twice in an unknown field",
      () => withMore('"x":[{"a":[{"b":1,"b":1}]}]'),
      "body: has the same key twice",
    ],
    ["__proto__ twice", () => withMore('"__proto__":1,"__proto__":2'), "body: has the same key twice"],
    [
      "a key twice, the strings full of colons",
      () => withMore('"x:":"\\"::","x\\u003a":1'),
      "body: has the same key twice",
    ],
    ["a lone high surrogate", () => text().replace("acme", "\\ud83d"), "body: has a lone surrogate"],
    ["a lone low surrogate in a key", () => withMore('"\\udc00":1'), "body: has a lone surrogate"],
    [
      "surrogates the wrong way round",
      () => text().replace("acme", "\\ude00\\ud83d"),
      "body: has a lone surrogate",
    ],
    ["nested 100 deep", () => withMore(`"x":${"[".repeat(100)}${"]".repeat(100)}`), "body: is nested"],
    ["nested 100,000 deep", () => withMore(`"x":${"[".repeat(100_000)}${"]".repeat(100_000)}`), "body: "],
    [
      "objects nested 20,000 deep",
      () => withMore(`"x":${'{"a":'.repeat(20_000)}1${"}".repeat(20_000)}`),
      "body: ",
    ],
    ["an array", () => `[${text()}]`, "body: must be a JSON object"],
    [
      "a field named as our own refusals are",
      () => withMore('"refused":"internal_error","message":"x"'),
      "refused: unknown field",
    ],
    ["null", () => "null", "body: must be a JSON object"],
    ["a string", () => JSON.stringify(text()), "body: must be a JSON object"],
    ["a number", () => "100", "body: must be a JSON object"],
    ["blanks", () => "   ", "body: "],
    ["a byte order mark", () => bytes([0xef, 0xbb, 0xbf], text()), "body: "],
    ["UTF-16", () => new Uint8Array(Buffer.from(text(), "utf16le")), "body: "],
    ["Latin-1", () => new Uint8Array(Buffer.from(text().replace("acme", "é"), "latin1")), "body: "],
    ["an overlong quote", () => bytes(text().slice(0, -1), ',"x":"', [0xc0, 0xa2], '"}'), "body: "],
    ["a surrogate in UTF-8", () => bytes(text().slice(0, -1), ',"x":"', [0xed, 0xa0, 0x80], '"}'), "body: "],
    ["null bytes", () => new Uint8Array(64), "body: "],
  ];
  for (const [name, body, start] of scenarios) {
    test(name, () =>
      refusesBody((key) => service.post("/v1/warrants", body(), { as: home.live.as, key }), start),
    );
  }

  test("an empty body is refused with the name of what is missing", () =>
    refusesBody((key) => service.post("/v1/warrants", undefined, { as: home.live.as, key }), ""));
});

describe("content types", () => {
  const form = new URLSearchParams({ amount: "100", payee: "acme" }).toString();
  const scenarios: readonly [type: string, body: () => string][] = [
    ["text/plain", text],
    ["text/json", text],
    ["application/jsonp", text],
    ["application/x-www-form-urlencoded", () => form],
    ["application/x-www-form-urlencoded", text],
    [
      "multipart/form-data; boundary=x",
      () => `--x\r\nContent-Disposition: form-data; name="amount"\r\n\r\n100\r\n--x--`,
    ],
    ["application/octet-stream", text],
    ["application/json; charset=utf-16", text],
    ["application/json, text/plain", text],
    ["application/ld+json", text],
  ];
  for (const [type, body] of scenarios) {
    test(`${type} is refused`, () =>
      refusesBody(
        (key) =>
          service.post("/v1/warrants", body(), { as: home.live.as, key, headers: { "Content-Type": type } }),
        "Content-Type: must be application/json",
      ));
  }

  test("no content type is refused", () =>
    refusesBody((key) => raw(key, [`Content-Length: ${text().length}`], [text()]), "Content-Type: "));

  test("a body with a content coding is not decoded, and so is refused", () =>
    refusesBody(
      (key) =>
        service.post("/v1/warrants", Bun.gzipSync(text()), {
          as: home.live.as,
          key,
          headers: { "Content-Encoding": "gzip" },
        }),
      "body: ",
    ));

  for (const type of [
    "application/json; charset=utf-8",
    'APPLICATION/JSON;charset="UTF-8"',
    "application/json ",
  ]) {
    test(`${type} is JSON`, async () => {
      const headers = { "Content-Type": type };
      const opened = await service.post("/v1/warrants", service.body(), { as: home.live.as, headers });
      expect(opened.status).toBe(201);
    });
  }
});

/** An open over a bare socket. */
async function raw(
  key: string,
  headers: readonly string[],
  chunks: readonly (string | Uint8Array)[],
  signal?: AbortSignal,
): Promise<Reply> {
  const head = [
    "POST /v1/warrants HTTP/1.1",
    "Host: localhost",
    `Authorization: ${home.live.as.Authorization}`,
    `Idempotency-Key: ${key}`,
    ...headers,
  ];
  return readReply(
    await rawRequest(service.url, head, chunks, signal),
    `http://localhost:${new URL(service.url).port}/docs`,
    "POST",
  );
}

const JSON_TYPE = "Content-Type: application/json";
const TOO_LONG = "body: must be at most 256 kB";

describe("length", () => {
  test("256 kB are read, however they come", async () => {
    const whole = padded(256 * KB);
    const plain = await raw(freshKey(), [JSON_TYPE, `Content-Length: ${whole.length}`], [whole]);
    const parts = [whole.slice(0, 7), whole.slice(7, 70_000), whole.slice(70_000)];
    const inChunks = await raw(freshKey(), [JSON_TYPE, "Transfer-Encoding: chunked"], chunked(parts));
    expect([plain.status, inChunks.status]).toEqual([201, 201]);
  });

  const over: readonly [name: string, send: (key: string) => Promise<Reply>][] = [
    ["a byte more", (key) => service.post("/v1/warrants", padded(256 * KB + 1), { as: home.live.as, key })],
    ["10 MB", (key) => service.post("/v1/warrants", padded(10_000_000), { as: home.live.as, key })],
    [
      "a gigabyte announced, and not sent",
      (key) => raw(key, [JSON_TYPE, "Content-Length: 1000000000"], [text()]),
    ],
    [
      "a byte more in chunks",
      (key) => raw(key, [JSON_TYPE, "Transfer-Encoding: chunked"], chunked([padded(256 * KB), " "])),
    ],
    [
      "chunks without end",
      (key) =>
        raw(
          key,
          [JSON_TYPE, "Transfer-Encoding: chunked"],
          chunked(Array(20).fill(padded(64 * KB))).slice(0, -1),
        ),
    ],
  ];
  for (const [name, send] of over) test(`${name} is refused`, () => refusesBody(send, TOO_LONG));

  test("a body that is cut off holds nothing", async () => {
    const before = service.allRows(home);
    const cut = new AbortController();
    const head = [JSON_TYPE, `Content-Length: ${text().length}`];
    const sent = raw(freshKey(), head, [text().slice(0, -1)], cut.signal);
    const next = await service.post("/v1/warrants", "{", { as: home.live.as });
    cut.abort();
    await expect(sent).rejects.toThrow("closed");
    expect([next.status, service.allRows(home)]).toEqual([400, before]);
  });
});

describe("headers", () => {
  const keys: readonly [name: string, key: string, code: string][] = [
    ["empty", "", "idempotency_key_required"],
    ["blank", "   ", "idempotency_key_required"],
    ["256 characters", "k".repeat(256), "validation_failed"],
    ["Latin-1", "schl\u00fcssel", "validation_failed"],
    ["a tab inside", "a\tb", "validation_failed"],
    ["UTF-8", Buffer.from("🔑").toString("latin1"), "validation_failed"],
    ["a control character", "a\u007fb", "validation_failed"],
  ];
  for (const [name, key, code] of keys) {
    test(`an Idempotency-Key: ${name}`, async () => {
      await service.refuses(home, [400, code], () =>
        raw(key, [JSON_TYPE, `Content-Length: ${text().length}`], [text()]),
      );
    });
  }

  test("an Idempotency-Key of 255 characters, and of odd ones, opens once", async () => {
    for (const key of ["k".repeat(255), `~!@#$%^&*()_+ {}|:"<>? ${freshKey()}`]) {
      const [first, again] = [await send(key), await send(key)];
      expect([first.status, again.status, again.text]).toEqual([201, 201, first.text]);
    }
    function send(key: string): Promise<Reply> {
      return service.post("/v1/warrants", service.body(), { as: home.live.as, key });
    }
  });

  const hostile: readonly [name: string, headers: readonly string[]][] = [
    ["a cookie that cannot be decoded", ["Cookie: service_session=%E0%A4%A; =; ;;;a"]],
    ["a cookie of 8 kB", [`Cookie: service_session=${"x".repeat(8_000)}`]],
    ["a prototype for a cookie", ["Cookie: __proto__=1; constructor=2"]],
    ["a malformed forwarded address", ["X-Forwarded-For: ;DROP TABLE warrants, 999.1.1.1"]],
    ["an odd host", ["Host: a.example:99999"]],
    ["two hosts", ["Host: b.example"]],
    ["an odd origin", ["Origin: null", "Sec-Fetch-Site: nonsense"]],
    ["an If-Match where none is asked for", ['If-Match: "1"']],
    [
      "an upgrade",
      ["Upgrade: websocket", "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==", "Sec-WebSocket-Version: 13"],
    ],
    ["an odd Accept", ["Accept: ;;;q=9", "Accept-Encoding: \u00ff"]],
  ];
  for (const [name, headers] of hostile) {
    test(`${name} causes no fault of the server`, async () => {
      const reply = await rawRequest(
        service.url,
        [
          "POST /v1/warrants HTTP/1.1",
          ...(name.includes("host") ? [] : ["Host: localhost"]),
          ...headers,
          JSON_TYPE,
          "Content-Length: 2",
        ],
        ["{}"],
      );
      expect([400, 401]).toContain(reply.status);
    });
  }

  test("a request id is echoed where it is printable, and replaced where not", async () => {
    const ids: readonly [given: string, isEchoed: boolean][] = [
      ["abc", true],
      ["x".repeat(200), true],
      ["a b ~ !", true],
      ["x".repeat(201), false],
      ["\u00e9", false],
      ["a\tb", false],
    ];
    for (const [given, isEchoed] of ids) {
      const reply = await readReply(
        await rawRequest(service.url, [
          "GET /v1/nothing HTTP/1.1",
          "Host: localhost",
          `X-Request-Id: ${given}`,
        ]),
        `http://localhost:${new URL(service.url).port}/docs`,
      );
      const echoed = reply.headers.get("x-request-id");
      expect([reply.status, given, echoed === given]).toEqual([404, given, isEchoed]);
      // The request id in the body is always the service's own.
      if (!isEchoed) expect(echoed).toBe(reply.body.error.request_id);
      else expect(reply.body.error.request_id).not.toBe(given);
    }
  });
});
