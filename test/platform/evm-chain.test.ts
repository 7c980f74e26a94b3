import { afterEach, describe, expect, spyOn, test } from "bun:test";
import { FINDINGS, type Finding } from "../../src/core/x402/purchase.ts";
import type { Away } from "../../src/platform/ask-chain.ts";
import {
  type AuthorizationState,
  createEvmChains,
  type EvmChainsOptions,
  findingOf,
} from "../../src/platform/evm-chain.ts";
import { CERTIFICATE, PRIVATE_KEY } from "../support/tls.ts";

const BASE = 8_453;
const BASE_SEPOLIA = 84_532;
const CONTRACT = "0x036cbd53842c5426634e7929541ec2318f3dcf7e";
const WALLET = "0x209693bc6afc0c5328ba36faf03c514ef312287c";
const NONCE = `0x${"07".repeat(32)}`;
const NEWEST = 100;
const FIRST_BLOCK_TIME = 1_800_000_000;

type Asked = { readonly method: string; readonly params: readonly unknown[] };
type Answer = (asked: Asked, count: number) => unknown | Response | Promise<Response>;

const hex = (value: number | bigint): string => `0x${value.toString(16)}`;
const word = (value: number | bigint): string => `0x${value.toString(16).padStart(64, "0")}`;

const opened: { stop(force: boolean): unknown }[] = [];
afterEach(() => {
  for (const server of opened.splice(0)) server.stop(true);
});

/** A chain of blocks two seconds apart, in which the wallet's authorization is used from a block on. */
function startEndpoint(
  options: {
    chainId?: number;
    usedFrom?: number;
    newest?: number;
    finalized?: number;
    instead?: Answer;
  } = {},
) {
  const { chainId = BASE_SEPOLIA, usedFrom = Number.POSITIVE_INFINITY, newest = NEWEST, instead } = options;
  const tags: Readonly<Record<string, number>> = { latest: newest, finalized: options.finalized ?? newest };
  const asked: Asked[] = [];
  const numberOf = (tag: unknown) => tags[String(tag)] ?? Number(tag);
  const results: Readonly<Record<string, (params: readonly unknown[]) => unknown>> = {
    eth_chainId: () => hex(chainId),
    eth_getBlockByNumber: ([tag]) => blockAt(numberOf(tag)),
    eth_call: ([call, tag]) =>
      (call as { data: string }).data.startsWith(BALANCE_OF)
        ? word(12_345_678_901_234_567_890n)
        : word(numberOf(tag) >= usedFrom ? 1 : 0),
  };
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    idleTimeout: 0,
    async fetch(request) {
      const { id, method, params = [] } = (await request.json()) as Asked & { id: number };
      asked.push({ method, params });
      const other = await instead?.({ method, params }, asked.length);
      if (other instanceof Response) return other;
      const body = other === undefined ? { result: results[method]?.(params) } : (other as object);
      return Response.json({ jsonrpc: "2.0", id, ...body });
    },
  });
  opened.push(server);
  return { url: server.url.href, asked, methods: () => asked.map(({ method }) => method) };
}

const BALANCE_OF = "0x70a08231";

const blockAt = (number: number) => ({
  number: hex(number),
  hash: word(number),
  timestamp: hex(FIRST_BLOCK_TIME + 2 * number),
  transactions: [],
});

const FAST: EvmChainsOptions = { retries: 0, retryDelayMs: 1 };
/** For endpoints that never answer. Others get more time than this: a busy machine may be slow to answer. */
const IMPATIENT: EvmChainsOptions = { timeoutMs: 100 };
const chainsAt = (url: string, options: EvmChainsOptions = {}, chainId = BASE_SEPOLIA) =>
  createEvmChains(new Map([[chainId, url]]), { ...FAST, ...options });
const question = (chainId = BASE_SEPOLIA) => ({
  chainId,
  contract: CONTRACT,
  authorizer: WALLET,
  nonce: NONCE,
});
const timeOf = (number: number) => (FIRST_BLOCK_TIME + 2 * number) * 1_000;
/** What is read at a block that is final. */
const stateAt = (number: number, isUsed: boolean) => ({
  isUsed,
  blockNumber: BigInt(number),
  isFinal: true,
  finalUntil: timeOf(number),
});
/** What is read at a block of a chain that is final up to an earlier block. */
const openAt = (number: number, isUsed: boolean, final: number) => ({
  ...stateAt(number, isUsed),
  isFinal: false,
  finalUntil: timeOf(final),
});
const AWAY: Away = { away: "no_answer" };

describe("an authorization's state", () => {
  const READ: readonly (readonly [
    chainId: number,
    finalized: number,
    usedFrom: number,
    AuthorizationState,
  ])[] = [
    [BASE_SEPOLIA, 40, 100, stateAt(100, true)],
    [BASE_SEPOLIA, 40, 101, stateAt(100, false)],
    [BASE, 40, 40, openAt(89, true, 40)],
    [BASE, 40, 89, openAt(89, true, 40)],
    [BASE, 40, 90, openAt(89, false, 40)],
    [BASE, 88, 89, openAt(89, true, 88)],
    // Some chains finalize a block before eleven others have come after it.
    [BASE, 89, 89, stateAt(89, true)],
    [BASE, 98, 98, stateAt(98, true)],
    [BASE, 98, 99, stateAt(98, false)],
    [BASE, 100, 100, stateAt(100, true)],
  ];
  for (const [chainId, finalized, usedFrom, state] of READ) {
    test(`on chain ${chainId}, final up to block ${finalized}, used from block ${usedFrom} on`, async () => {
      const { url } = startEndpoint({ chainId, finalized, usedFrom });
      expect(await chainsAt(url, {}, chainId).authorizationState(question(chainId))).toEqual(state);
    });
  }

  /** What the endpoint answers for its finalized block; up to which time "open" then holds; whether the state is read there. */
  const FINAL: readonly (readonly [what: string, instead: Answer | undefined, AuthorizationState | Away])[] =
    [
      ["older than a confirmed one", undefined, openAt(89, false, 40)],
      [
        "unknown: an error of the tag",
        () => ({ error: { code: -32602, message: "no" } }),
        stateAt(89, false),
      ],
      [
        "unknown: an error of the block",
        () => ({ error: { code: -39001, message: "no" } }),
        stateAt(89, false),
      ],
      ["unknown: null", () => ({ result: null }), stateAt(89, false)],
      [
        "unknown: an error of the server that speaks of the block",
        () => ({ error: { code: -32000, message: "finalized block not found" } }),
        stateAt(89, false),
      ],
      [
        "not to be had: an error of the server",
        () => ({ error: { code: -32000, message: "request limit reached" } }),
        AWAY,
      ],
      ["not to be had: an error of its own", () => ({ error: { code: -32603, message: "no" } }), AWAY],
      ["not to be had: 500", () => new Response("no", { status: 500 }), { away: "unreachable" }],
    ];
  for (const [what, instead, state] of FINAL) {
    test(`on a main network, its finalized block ${what}`, async () => {
      const { url, asked } = startEndpoint({
        chainId: BASE,
        finalized: 40,
        instead: (request, count) =>
          request.params[0] === "finalized" ? instead?.(request, count) : undefined,
      });
      expect(await chainsAt(url, {}, BASE).authorizationState(question(BASE))).toEqual(state);
      // Most nodes no longer have the state at a finalized block.
      const read = asked.filter(({ method }) => method === "eth_call").map(({ params }) => params[1]);
      expect(read).toEqual("away" in state ? [] : [hex(89)]);
    });
  }

  test("on a test network needs no final block", async () => {
    const { url, asked } = startEndpoint({ finalized: 40 });
    expect(await chainsAt(url).authorizationState(question())).toEqual(stateAt(NEWEST, false));
    expect(asked.map(({ params }) => params[0])).not.toContain("finalized");
  });

  test("is read where the operator says how many blocks confirm one, and never before the first", async () => {
    const { url } = startEndpoint({ newest: 3 });
    const deep = chainsAt(url, { confirmations: () => 3 });
    expect(await deep.authorizationState(question())).toEqual(stateAt(1, false));
    const deeper = chainsAt(url, { confirmations: () => 12 });
    expect(await deeper.authorizationState(question())).toEqual(stateAt(0, false));
  });

  test("is asked of the token about the wallet and the nonce", async () => {
    const { url, asked } = startEndpoint();
    await chainsAt(url).authorizationState(question());
    const data = `0xe94a0102${WALLET.slice(2).padStart(64, "0")}${NONCE.slice(2)}`;
    expect(asked.at(-1)).toEqual({ method: "eth_call", params: [{ data, to: CONTRACT }, hex(NEWEST)] });
  });
});

test("a balance is read to the unit, above what a double holds", async () => {
  const { url } = startEndpoint();
  const read = await chainsAt(url).balanceOf(BASE_SEPOLIA, CONTRACT, WALLET);
  expect(read).toEqual({ balance: 12_345_678_901_234_567_890n, blockTime: timeOf(NEWEST) });
});

describe("the chain's id", () => {
  test("is asked once, before anything else", async () => {
    const { url, methods } = startEndpoint();
    const chains = chainsAt(url);
    await chains.balanceOf(BASE_SEPOLIA, CONTRACT, WALLET);
    await chains.balanceOf(BASE_SEPOLIA, CONTRACT, WALLET);
    expect(methods().filter((method) => method === "eth_chainId")).toEqual(["eth_chainId"]);
    expect([methods()[0], methods().length]).toEqual(["eth_chainId", 1 + 2 * 2]);
  });

  test("of another chain means that nothing more is asked, until the endpoint is the right one", async () => {
    let id = BASE;
    const { url, methods } = startEndpoint({
      instead: ({ method }) => (method === "eth_chainId" ? { result: hex(id) } : undefined),
    });
    const chains = chainsAt(url);
    expect(await chains.authorizationState(question())).toEqual({ away: "wrong_chain" });
    expect(methods()).toEqual(["eth_chainId"]);
    id = BASE_SEPOLIA;
    expect(await chains.authorizationState(question())).toEqual(stateAt(NEWEST, false));
  });
});

describe("a chain that is away is not an error", () => {
  const WAYS: Readonly<Record<string, readonly [Answer, Away["away"]]>> = {
    "answers 500": [() => new Response("no", { status: 500 }), "unreachable"],
    "answers 403 with its key in the text": [() => new Response("key", { status: 403 }), "unreachable"],
    redirects: [() => Response.redirect("http://127.0.0.1:9/"), "unreachable"],
    "answers a page": [() => new Response("<html></html>"), "unreachable"],
    "answers with an error": [() => ({ error: { code: -32000, message: "header not found" } }), "no_answer"],
    "never answers": [() => new Promise<Response>(() => {}), "timeout"],
    "answers nothing to the call, as where there is no contract": [
      ({ method }) => (method === "eth_call" ? { result: "0x" } : undefined),
      "no_answer",
    ],
    "answers neither yes nor no": [
      ({ method }) => (method === "eth_call" ? { result: word(2) } : undefined),
      "no_answer",
    ],
    "has no such block": [
      ({ method }) => (method === "eth_getBlockByNumber" ? { result: null } : undefined),
      "no_answer",
    ],
  };
  for (const [what, [instead, away]] of Object.entries(WAYS)) {
    test(`where the endpoint ${what}: ${away}`, async () => {
      const { url } = startEndpoint({ instead });
      const options = away === "timeout" ? IMPATIENT : {};
      expect(await chainsAt(url, options).authorizationState(question())).toEqual({ away });
    });
  }

  test("where nothing listens: unreachable", async () => {
    const { url } = startEndpoint();
    for (const server of opened.splice(0)) server.stop(true);
    expect(await chainsAt(url).authorizationState(question())).toEqual({ away: "unreachable" });
  });

  test("where there is no endpoint: none", async () => {
    const { url, asked } = startEndpoint();
    const chains = chainsAt(url);
    expect(await chains.authorizationState(question(BASE))).toEqual({ away: "none" });
    expect(await chains.balanceOf(BASE, CONTRACT, WALLET)).toEqual({ away: "none" });
    expect(asked).toEqual([]);
  });

  test("where addresses are not valid: no answer", async () => {
    const { url } = startEndpoint();
    const read = await chainsAt(url).authorizationState({ ...question(), authorizer: "acme" });
    expect(read).toEqual({ away: "no_answer" });
  });
});

describe("a request that fails is tried again", () => {
  const failing =
    (times: number): Answer =>
    (_, count) =>
      count <= times ? new Response("busy", { status: 503 }) : undefined;

  test("as often as is said, and then it works", async () => {
    const { url, asked } = startEndpoint({ instead: failing(3) });
    expect(await chainsAt(url, { retries: 3 }).authorizationState(question())).toEqual(
      stateAt(NEWEST, false),
    );
    expect(asked.length).toBe(3 + 3);
  });

  test("and no more often", async () => {
    const { url, asked } = startEndpoint({ instead: failing(4) });
    expect(await chainsAt(url, { retries: 3 }).authorizationState(question())).toEqual({
      away: "unreachable",
    });
    expect(asked.length).toBe(4);
  });

  test("where the one before never answered", async () => {
    const { url } = startEndpoint({
      instead: (_, count) => (count === 1 ? new Promise<Response>(() => {}) : undefined),
    });
    expect(await chainsAt(url, { ...IMPATIENT, retries: 1 }).authorizationState(question())).toEqual(
      stateAt(NEWEST, false),
    );
  });
});

describe("what it means", () => {
  const EXPIRY = 1_800_000_060_000;
  const state = (isUsed: boolean, finalUntil: number, isFinal = true) => ({
    ...{ isUsed, blockNumber: 1n },
    ...{ isFinal, finalUntil },
  });
  const TABLE: readonly (readonly [AuthorizationState | Away, Finding])[] = [
    [state(true, EXPIRY - 1_000), "used"],
    [state(true, EXPIRY + 1_000), "used"],
    // It was used in a block before its expiry, and that block is not final yet.
    [state(true, EXPIRY, false), "open"],
    [state(true, EXPIRY + 1, false), "used"],
    [state(false, EXPIRY + 1, false), "expired"],
    [state(false, EXPIRY - 1_000), "open"],
    [state(false, EXPIRY), "open"],
    [state(false, EXPIRY + 1), "expired"],
    [{ away: "none" }, "none"],
    [{ away: "timeout" }, "away"],
    [{ away: "unreachable" }, "away"],
    [{ away: "wrong_chain" }, "away"],
    [{ away: "no_answer" }, "away"],
  ];
  for (const [read, finding] of TABLE) {
    test(`${JSON.stringify(read, (_, value) => (typeof value === "bigint" ? `${value}` : value))}: ${finding}`, () =>
      expect(findingOf(read, EXPIRY, EXPIRY)).toBe(finding));
  }

  test("an answer of an endpoint that stands still counts as no answer", () => {
    for (const isUsed of [false, true]) {
      const behind = (ms: number) => findingOf(state(isUsed, EXPIRY, false), EXPIRY, EXPIRY + ms);
      expect([behind(86_400_000), behind(86_400_001)]).toEqual(["open", "away"]);
    }
  });

  test("is each of the findings", () =>
    expect(new Set(TABLE.map(([, finding]) => finding))).toEqual(new Set(FINDINGS)));
});

test("an endpoint whose certificate nobody vouches for is away, and the log names its chain", async () => {
  const endpoint = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    tls: { cert: CERTIFICATE, key: PRIVATE_KEY },
    fetch: () => Response.json({}),
  });
  opened.push(endpoint);
  const stderr = spyOn(process.stderr, "write").mockImplementation(() => true);
  const chains = createEvmChains(new Map([[BASE, `https://127.0.0.1:${endpoint.port}/key`]]), { retries: 0 });
  const balance = await chains.balanceOf(BASE, CONTRACT, WALLET);
  const lines = stderr.mock.calls.map(([line]) => JSON.parse(String(line)));
  stderr.mockRestore();
  expect(balance).toEqual({ away: "unreachable" });
  expect(lines).toMatchObject([{ message: "a certificate could not be verified", other: "eip155:8453" }]);
});
