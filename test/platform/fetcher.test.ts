import { afterAll, describe, expect, spyOn, test } from "bun:test";
import { X509Certificate } from "node:crypto";
import type { Socket } from "node:net";
import { gzipSync } from "node:zlib";
import { sha256 } from "../../src/core/canonical.ts";
import { evidenceHashOf } from "../../src/core/clauses/evidence.ts";
import { checkSourceUrl } from "../../src/core/source-url.ts";
import {
  createFetcher,
  type Fetched,
  type FetcherOptions,
  parseHttpDate,
} from "../../src/platform/fetcher.ts";
import { FLOOD_NAMES, floodSource } from "../support/floods.ts";
import { drip, flood, type HostileSource, hostileSource, respond } from "../support/hostile-source.ts";
import { CERTIFICATE, CERTIFICATE_AUTHORITY } from "../support/tls.ts";

const TIMEOUT_MS = 400;
const sources: HostileSource[] = [];
afterAll(() => {
  for (const source of sources) source.close();
});

const fetcherOf = (options: Partial<FetcherOptions> = {}) =>
  createFetcher({
    allowNetworks: ["127.0.0.0/8"],
    timeoutMs: TIMEOUT_MS,
    bytesMax: 100_000,
    resolve: async () => ["127.0.0.1"],
    ...options,
  });

async function sourceOf(
  answer: (socket: Socket, request: string) => void,
  options = {},
): Promise<HostileSource> {
  const source = await hostileSource(answer, options);
  sources.push(source);
  return source;
}

async function fetchFrom(answer: (socket: Socket, request: string) => void, options = {}): Promise<Fetched> {
  const { port } = await sourceOf(answer);
  return fetcherOf(options).fetch(`http://example.test:${port}/path?q=1#fragment`);
}

/** The result of a fetch in short: the text that came, or why none came. */
const outcome = ({ evidence }: Fetched): string =>
  evidence.reached ? `200 ${new TextDecoder().decode(evidence.body)}`.slice(4) : evidence.reason;

const head = "HTTP/1.1 200 OK\r\n";
const after = (text: string, then: (socket: Socket) => void) => (socket: Socket) => {
  socket.write(text);
  then(socket);
};
const redirect = (location: string) => respond("302 Found", `Location: ${location}\r\nContent-Length: 0\r\n`);

describe("a source that answers", () => {
  test("is evidence: status, bytes, time and hash", async () => {
    const fetched = await fetchFrom(
      respond("201 Created", "Last-Modified: Wed, 21 Oct 2015 07:28:00 GMT\r\n", "hello"),
    );
    expect(fetched).toMatchObject({ status: 201, bytes: 5 });
    expect(fetched.durationMs).toBeWithin(0, TIMEOUT_MS);
    expect(fetched.evidence).toMatchObject({
      reached: true,
      status: 201,
      generatedAt: null,
      lastModifiedAt: Date.UTC(2015, 9, 21, 7, 28),
      uptimeRatio: null,
    });
    expect(evidenceHashOf(fetched.evidence)).toBe(sha256("hello"));
  });

  test("gets a GET for the name, without the fragment, at the address that was checked", async () => {
    const source = await sourceOf(respond("200 OK"));
    const asked: string[] = [];
    const resolve = async (name: string) => {
      asked.push(name);
      return ["127.0.0.1"];
    };
    await fetcherOf({ resolve }).fetch(`http://Example.TEST.:${source.port}/path?q=1#fragment`);
    expect(asked).toEqual(["example.test"]);
    expect(source.requests).toHaveLength(1);
    expect(source.requests[0]).toStartWith("GET /path?q=1 HTTP/1.1\r\n");
    expect(source.requests[0]).toContain(`Host: example.test.:${source.port}\r\n`);
    expect(source.requests[0]).toContain("Connection: close\r\n");
  });

  test("gets a new connection each time: an open one was checked for another name", async () => {
    const source = await sourceOf((socket) => socket.write(`${head}Content-Length: 2\r\n\r\nok`));
    for (const name of ["one.test", "two.test", "one.test"])
      expect(outcome(await fetcherOf().fetch(`http://${name}:${source.port}/`))).toBe("ok");
    expect(source.requests).toHaveLength(3);
  });

  test("is hashed as content-decoded bytes", async () => {
    const fetched = await fetchFrom(respond("200 OK", "Content-Encoding: gzip\r\n", gzipSync("hello")));
    expect(outcome(fetched)).toBe("hello");
    expect(evidenceHashOf(fetched.evidence)).toBe(sha256("hello"));
    expect(fetched.bytes).toBe(5);
  });

  test.each([
    ["404 Not Found", 404],
    ["500 Oops", 500],
    ["204 No Content", 204],
    ["304 Not Modified", 304],
    ["302 Found", 302],
  ])("%s is reached, whatever the status", async (line, status) => {
    const fetched = await fetchFrom(
      respond(line, status === 204 || status === 304 ? "Content-Length: 7\r\n" : ""),
    );
    expect(fetched).toMatchObject({ status, evidence: { reached: true, status } });
  });

  test("by the system's own names, where none are injected", async () => {
    const { port } = await sourceOf(respond("200 OK", "", "hello"));
    const fetcher = createFetcher({ allowNetworks: ["127.0.0.0/8", "::1/128"], timeoutMs: 2_000 });
    const fetched = await fetcher.fetch(`http://localhost:${port}/`);
    expect(outcome(fetched)).toBe("hello");
  });

  test("is reached though a proxy is set in the environment", async () => {
    const before = process.env.HTTP_PROXY;
    process.env.HTTP_PROXY = "http://127.0.0.1:9";
    try {
      expect(outcome(await fetchFrom(respond("200 OK", "", "direct")))).toBe("direct");
    } finally {
      if (before === undefined) delete process.env.HTTP_PROXY;
      else process.env.HTTP_PROXY = before;
    }
  });

  test("at the second address, where the first refuses the connection", async () => {
    const fetched = await fetchFrom(respond("200 OK", "", "second"), {
      resolve: async () => ["127.0.0.9", "127.0.0.1"],
    });
    expect(outcome(fetched)).toBe("second");
  });
});

describe("a source that misbehaves", () => {
  const chunked = "Transfer-Encoding: chunked\r\n";
  const cases: [string, (socket: Socket) => void, string][] = [
    ["hangs", () => {}, "source_timeout"],
    ["hangs in its headers", (socket) => socket.write(head), "source_timeout"],
    ["hangs in its body", (socket) => socket.write(`${head}Content-Length: 9\r\n\r\nab`), "source_timeout"],
    ["drips its headers", after(head, (socket) => drip(socket, "X: a\r\n")), "source_timeout"],
    ["drips its body", after(`${head}\r\n`, (socket) => drip(socket, "a")), "source_timeout"],
    [
      "says 100 Continue for ever",
      (socket) => drip(socket, "HTTP/1.1 100 Continue\r\n\r\n"),
      "source_timeout",
    ],
    [
      "floods its body",
      after(`${head}\r\n`, (socket) => flood(socket, Buffer.alloc(65_536))),
      "source_too_large",
    ],
    [
      "floods its headers",
      after(`${head}X: `, (socket) => flood(socket, Buffer.alloc(65_536, 97))),
      "source_unreachable",
    ],
    ["sends one byte too many", respond("200 OK", "", "x".repeat(100_001)), "source_too_large"],
    ["announces too much", respond("200 OK", "Content-Length: 100001\r\n", "x"), "source_too_large"],
    [
      "announces more than it sends",
      respond("200 OK", "Content-Length: 100\r\n", "short"),
      "source_unreachable",
    ],
    [
      "announces a negative length",
      respond("200 OK", "Content-Length: -5\r\n", "short"),
      "source_unreachable",
    ],
    [
      "announces two lengths",
      respond("200 OK", "Content-Length: 1\r\nContent-Length: 5\r\n", "short"),
      "source_unreachable",
    ],
    ["cuts its chunks off", respond("200 OK", chunked, "5\r\nhello\r\n"), "source_unreachable"],
    ["sends broken chunks", respond("200 OK", chunked, "zz\r\nhello\r\n0\r\n\r\n"), "source_unreachable"],
    ["resets", (socket) => socket.resetAndDestroy(), "source_unreachable"],
    ["closes", (socket) => void socket.end(), "source_unreachable"],
    ["talks nonsense", (socket) => void socket.end("hello there\r\n\r\n"), "source_unreachable"],
    ["switches protocols", respond("101 Switching Protocols", "Upgrade: x\r\n"), "source_unreachable"],
    [
      "sends a bomb",
      respond("200 OK", "Content-Encoding: gzip\r\n", gzipSync(Buffer.alloc(50_000_000))),
      "source_too_large",
    ],
    ["uses an unknown coding", respond("200 OK", "Content-Encoding: snappy\r\n", "x"), "source_unreachable"],
    [
      "cuts its coding off",
      respond("200 OK", "Content-Encoding: gzip\r\n", gzipSync("hello").subarray(0, 15)),
      "source_unreachable",
    ],
  ];

  test.concurrent.each(cases)("%s", async (_, answer, reason) => {
    const fetched = await fetchFrom(answer);
    expect(fetched.evidence).toMatchObject({ reached: false, reason });
    expect(fetched.bytes).toBe(0);
    expect(fetched.durationMs).toBeLessThan(TIMEOUT_MS + 1_500);
  });

  test("that announces less than it sends is read up to the announced length", async () => {
    expect(outcome(await fetchFrom(respond("200 OK", "Content-Length: 3\r\n", "longer")))).toBe("lon");
  });

  test("exactly as large as the limit is reached", async () => {
    expect(await fetchFrom(respond("200 OK", "", "x".repeat(100_000)))).toMatchObject({ bytes: 100_000 });
  });

  test("that has gone is unreachable", async () => {
    const source = await hostileSource(() => {});
    source.close();
    expect(outcome(await fetcherOf().fetch(`http://127.0.0.1:${source.port}/`))).toBe("source_unreachable");
  });
});

describe("redirects", () => {
  const counting = () => {
    let count = 0;
    return sourceOf((socket, request) => {
      const wanted = Number(/^GET \/(\d+)/.exec(request)?.[1]);
      if (count < wanted) redirect(`/${wanted}?${++count}`)(socket);
      else respond("200 OK", "", `after ${count}`)(socket);
    });
  };

  test("are followed five times", async () => {
    const { port } = await counting();
    expect(outcome(await fetcherOf().fetch(`http://127.0.0.1:${port}/5`))).toBe("after 5");
  });

  test("are not followed a sixth time", async () => {
    const source = await counting();
    expect(await fetcherOf().fetch(`http://127.0.0.1:${source.port}/6`)).toMatchObject({
      status: 302,
      evidence: { reached: false, reason: "source_unreachable" },
    });
    expect(source.requests).toHaveLength(6);
  });

  test("are not followed to where the caller does not allow it", async () => {
    const source = await sourceOf(redirect("http://other.test/there"));
    const resolve = async () => ["127.0.0.1"];
    const asked: string[] = [];
    const fetched = await fetcherOf({ resolve }).fetch(
      `http://one.test:${source.port}/here`,
      undefined,
      (target) => asked.push(target.href) === 0,
    );
    expect([outcome(fetched), asked, source.requests.length]).toEqual([
      "source_blocked",
      ["http://other.test/there"],
      1,
    ]);
  });

  test.each([
    "http://169.254.169.254/latest/meta-data/",
    "http://metadata.google.internal/",
    "http://10.0.0.1/",
    "http://[::1]/",
    "http://0x0a000001/",
    "file:///etc/passwd",
    "data:text/plain,hello",
    "s3://bucket/key",
    "gopher://127.0.0.1/",
    "javascript:1",
    "http://user:secret@127.0.0.1/",
    `http://127.0.0.1/${"a".repeat(2_048)}`,
  ])("to %s are blocked", async (location) => {
    expect(outcome(await fetchFrom(redirect(location)))).toBe("source_blocked");
  });

  test("to something that is not a URL are unreachable", async () => {
    expect(outcome(await fetchFrom(redirect("http://[")))).toBe("source_unreachable");
  });

  test("are checked anew: a name that is public at first and private later", async () => {
    const answers = [["127.0.0.1"], ["10.0.0.1"]];
    const fetched = await fetchFrom(redirect("/again"), { resolve: async () => answers.shift() ?? [] });
    expect(outcome(fetched)).toBe("source_blocked");
    expect(answers).toEqual([]);
  });
});

describe("names and addresses", () => {
  test.each([
    ["http://10.0.0.1/", "source_blocked"],
    ["http://169.254.169.254/", "source_blocked"],
    ["http://[::ffff:127.0.0.1]/", "source_blocked"],
    ["http://[64:ff9b::7f00:1]/", "source_blocked"],
    ["http://metadata.google.internal./", "source_blocked"],
    ["file:///etc/passwd", "source_blocked"],
    ["nonsense", "source_blocked"],
    ["", "source_blocked"],
  ])("%p is %s", async (url, reason) => {
    expect(await fetcherOf().fetch(url)).toMatchObject({
      status: null,
      evidence: { reached: false, reason },
    });
  });

  test("a name is resolved once: a second answer would not be used", async () => {
    const { port } = await sourceOf(respond("200 OK", "", "hello"));
    let asked = 0;
    const resolve = async () => (++asked === 1 ? ["127.0.0.1"] : ["10.0.0.1"]);
    expect(outcome(await fetcherOf({ resolve }).fetch(`http://rebound.test:${port}/`))).toBe("hello");
    expect(asked).toBe(1);
  });

  test.each<[string, () => Promise<readonly string[]>, string]>([
    ["one of whose addresses is private", async () => ["127.0.0.1", "10.0.0.1"], "source_blocked"],
    ["whose address is malformed", async () => ["example.test"], "source_blocked"],
    ["without an address", async () => [], "source_unreachable"],
    ["that does not resolve", () => Promise.reject(new Error("ENOTFOUND")), "source_unreachable"],
    ["whose resolution hangs", () => new Promise(() => {}), "source_timeout"],
  ])("a name %s", async (_, resolve, reason) => {
    expect(outcome(await fetchFrom(respond("200 OK"), { resolve }))).toBe(reason);
  });

  test("the service's own listener is never a source", async () => {
    const source = await sourceOf(respond("200 OK", "", "secret"));
    const own = { ownListeners: () => [{ address: "0.0.0.0", port: source.port }] };
    const fetched = await fetcherOf(own).fetch(`http://127.0.0.1:${source.port}/`);
    expect(outcome(fetched)).toBe("source_blocked");
    expect(source.requests).toEqual([]);
  });
});

describe("TLS", () => {
  const secure = () => sourceOf(respond("200 OK", "Content-Length: 6\r\n", "secure"), { tls: true });
  const trusting = { certificateAuthorities: [CERTIFICATE_AUTHORITY], timeoutMs: 2_000 };

  test("a certificate for the name, by an authority that is trusted, is reached", async () => {
    const { port } = await secure();
    const fetched = await fetcherOf(trusting).fetch(`https://example.test:${port}/`);
    expect(outcome(fetched)).toBe("secure");
    expect(fetched.answer.hops).toEqual([
      {
        url: `https://example.test:${port}/`,
        status: 200,
        address: "127.0.0.1",
        certificateSha256: new X509Certificate(CERTIFICATE).fingerprint256.replaceAll(":", "").toLowerCase(),
      },
    ]);
  });

  test("a redirect is kept as a hop: each with its URL, its status, who answered and by which certificate", async () => {
    const { port } = await secure();
    const target = `https://example.test:${port}/there?a=b`;
    const first = await sourceOf(redirect(target));
    const { answer, evidence } = await fetcherOf(trusting).fetch(`http://example.test:${first.port}/here`);
    expect(evidence).toMatchObject({ reached: true, status: 200 });
    const certificateSha256 = new X509Certificate(CERTIFICATE).fingerprint256
      .replaceAll(":", "")
      .toLowerCase();
    expect(answer.hops).toEqual([
      {
        ...{ url: `http://example.test:${first.port}/here`, status: 302, address: "127.0.0.1" },
        certificateSha256: null,
      },
      { url: target, status: 200, address: "127.0.0.1", certificateSha256 },
    ]);
  });

  test.each([
    ["for another name", "other.test", trusting],
    ["for a name, where an address was asked", "127.0.0.1", trusting],
    ["by an authority that is not trusted", "example.test", { timeoutMs: 2_000 }],
  ])("a certificate %s is unreachable, and the log says so", async (_, host, options) => {
    const source = await secure();
    const stderr = spyOn(process.stderr, "write").mockImplementation(() => true);
    const fetched = await fetcherOf(options).fetch(`https://${host}:${source.port}/`);
    const lines = stderr.mock.calls.map(([line]) => JSON.parse(String(line)));
    stderr.mockRestore();
    expect(outcome(fetched)).toBe("source_unreachable");
    expect(source.requests).toEqual([]);
    const message = "a certificate could not be verified";
    expect(lines).toMatchObject([{ level: "error", message, other: `${host}:${source.port}` }]);
  });

  test("a redirect from https to http is blocked before anything is asked there", async () => {
    const plain = await sourceOf(respond("200 OK", "", "plain"));
    const toPlain = redirect(`http://example.test:${plain.port}/`);
    const { port } = await sourceOf(toPlain, { tls: true });
    const fetched = await fetcherOf(trusting).fetch(`https://example.test:${port}/`);
    expect([outcome(fetched), fetched.status]).toEqual(["source_blocked", 302]);
    // The same by a detour: what counts is each step, not where the fetch began.
    const detour = await sourceOf(redirect(`https://example.test:${port}/`));
    const led = await fetcherOf(trusting).fetch(`http://example.test:${detour.port}/`);
    expect(outcome(led)).toBe("source_blocked");
    expect(plain.requests).toEqual([]);
  });

  test("a redirect to https is followed, from https and from http", async () => {
    const { port } = await secure();
    for (const tls of [true, false]) {
      const source = await sourceOf(redirect(`https://example.test:${port}/`), { tls });
      const url = `${tls ? "https" : "http"}://example.test:${source.port}/`;
      expect(outcome(await fetcherOf(trusting).fetch(url))).toBe("secure");
    }
  });
});

test.each([
  ["http://example.com", true],
  ["HTTPS://example.com/a?b#c", true],
  ["http://exämple.de/ü", true],
  [`http://e.com/${"a".repeat(2_035)}`, true],
  [`http://e.com/${"a".repeat(2_036)}`, false],
  ["", false],
  ["example.com", false],
  ["//example.com", false],
  ["http:example.com", false],
  ["ftp://example.com", false],
  ["file:///etc/passwd", false],
  ["javascript:alert(1)", false],
  ["http://", false],
  ["http://a b", false],
  ["http://a\n.com", false],
  [" http://a.com", false],
  ["http://user@a.com", false],
  ["http://:pass@a.com", false],
  ["http://a.com:99999", false],
  ["http://[::1", false],
])("checkSourceUrl(%p) takes it: %p", (url, valid) => {
  expect(checkSourceUrl(url) === null).toBe(valid);
});

test.each([
  ["Wed, 21 Oct 2015 07:28:00 GMT", Date.UTC(2015, 9, 21, 7, 28)],
  ["Wed, 21 Oct 2015 07:28:00 +0100", null],
  ["Thu, 21 Oct 2015 07:28:00 GMT", null],
  ["Tue, 31 Feb 2015 07:28:00 GMT", null],
  ["2015-10-21T07:28:00Z", null],
  ["0", null],
  ["", null],
  [null, null],
])("parseHttpDate(%p) is %p", (text, time) => {
  expect(parseHttpDate(text)).toBe(time);
});

/** What is left of some answers that are cut off. */
const LEFT: Readonly<Record<string, readonly (string | number)[]>> = {
  // They come after the whole content, which counts.
  "one trailer": [0],
  trailers: [0],
  // Each has a byte of content, which may be too much before it is cut off.
  "extensions of chunks": ["source_unreachable", "source_too_large"],
};

describe("an answer that never ends, and in which nothing is content, is cut off long before its time", () => {
  for (const name of FLOOD_NAMES) {
    test(name, async () => {
      const source = await floodSource();
      sources.push(source);
      const timeoutMs = 20_000;
      const { durationMs, evidence } = await fetcherOf({ timeoutMs }).fetch(source.url(name));
      expect(durationMs).toBeLessThan(timeoutMs / 2);
      const left = evidence.reached ? evidence.body.length : evidence.reason;
      expect(LEFT[name] ?? ["source_unreachable"]).toContain(left);
    });
  }
});
