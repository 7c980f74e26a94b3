import { afterEach, beforeEach, describe, expect, spyOn, test } from "bun:test";
import { promisify } from "node:util";
import { constants } from "node:zlib";
import { sha256 } from "../../../src/core/canonical.ts";
import { type Capsule, type CapsuleFacts, headersSeen, type SeenAnswer } from "../../../src/core/capsule.ts";
import { EVALUATOR_VERSION } from "../../../src/core/clauses/evaluator-version.ts";
import { reachedEvidence, unreachedEvidence } from "../../../src/core/clauses/evidence.ts";
import type { Mode } from "../../../src/core/roles.ts";
import { countRunningTime, forgetOld } from "../../../src/jobs/retention.ts";
import { forgetCapsules } from "../../../src/services/checks/capsule.ts";
import { newCapsules } from "../../support/context.ts";
import { asksVoucher, delivers, openMarket, SELLER_URL } from "../../support/market.ts";
import type { TestOrganisation } from "../../support/organisations.ts";
import { type ShellService, startTestShell } from "../../support/server.ts";

/** What checks keep (docs/security, "Capsules"). Each test's ledger is audited when it ends. */

const KIB = 1024;
const DAY_MS = 86_400_000;
const HASH = "a".repeat(64);
const ANSWER: SeenAnswer = {
  hops: [
    { url: "https://a.example/", status: 302, address: "198.51.100.1", certificateSha256: HASH },
    { url: "https://b.example/", status: 200, address: "198.51.100.2", certificateSha256: HASH },
  ],
  headers: [
    ["content-type", "application/json"],
    ["x-trace", "marked-header"],
  ],
  holdsItsDigest: false,
};

let service: ShellService;
let body: Uint8Array | null;
let market: ReturnType<typeof openMarket>;
const start = (changed: Parameters<typeof newCapsules>[0] = {}): void => {
  market = openMarket();
  service = startTestShell({
    x402: market.x402,
    capsules: newCapsules(changed),
    async fetchEvidence() {
      const evidence =
        body === null
          ? unreachedEvidence("source_timeout")
          : reachedEvidence({ status: 200, body, lastModifiedAt: 1_000 });
      return { evidence, status: 200, bytes: body?.length ?? 0, durationMs: 1, answer: ANSWER };
    },
  });
};
beforeEach(() => {
  body = Buffer.from('{"ok":1}');
  start();
});
afterEach(() => service.close());

/** Checks a new warrant; the check's id. */
async function checked(of: TestOrganisation, mode: Mode = "live"): Promise<string> {
  const { as } = of[mode];
  const { id } = await service.opened(of, {}, { as });
  const reply = await service.post(`/v1/warrants/${id}/verify`, { source_url: "https://a.example/" }, { as });
  expect(reply.status).toBe(200);
  const checks = await service.get(`/v1/warrants/${id}/checks`, { as });
  return checks.body.data[0].id;
}
const capsuleOf = (id: string): Capsule | null => service.ctx.reader.capsules.get(id);
const ids = (): readonly unknown[] =>
  (service.everything().capsules as readonly { readonly id?: unknown }[]).map(({ id }) => id);
const partCount = (): number => service.everything().capsule_parts?.length ?? 0;
/** Bytes that nothing compresses. */
const random = (length: number): Uint8Array => {
  const bytes = new Uint8Array(length);
  for (let at = 0; at < length; at += 65_536) crypto.getRandomValues(bytes.subarray(at, at + 65_536));
  return bytes;
};
async function bodyOf(capsule: Capsule | null): Promise<Uint8Array | null> {
  const stored = capsule && service.ctx.reader.capsules.body(capsule);
  if (!stored) return null;
  return stored.isCompressed ? service.ctx.capsules.decompress(stored.bytes) : stored.bytes;
}

test("a check keeps the bytes, the headers, the way to them, the time and the evaluator's version", async () => {
  const organisation = await service.organisation();
  const id = await checked(organisation);
  const capsule = capsuleOf(id);
  const check = service.ctx.reader.checks.find(id);
  expect(JSON.parse(capsule?.facts ?? "") as CapsuleFacts).toEqual({
    check_id: id,
    warrant_id: check?.warrantId ?? "",
    method: "GET",
    source_url: "https://a.example/",
    hops: [
      { url: "https://a.example/", status: 302, address: "198.51.100.1", certificate_sha256: HASH },
      { url: "https://b.example/", status: 200, address: "198.51.100.2", certificate_sha256: HASH },
    ],
    headers: ANSWER.headers as CapsuleFacts["headers"],
    holds_its_digest: false,
    signed_with: null,
    sigstore_bundle: null,
    source_code: null,
    status: 200,
    last_modified_at: "1970-01-01T00:00:01.000Z",
    evidence_hash: sha256('{"ok":1}'),
    bytes: 8,
    schema_hashes: {},
    evaluated_at: new Date(service.clock.now).toISOString(),
    evaluator_version: EVALUATOR_VERSION,
  });
  expect(check?.capsuleHash).toBe(sha256(capsule?.facts ?? ""));
  expect(check?.evaluatorVersion).toBe(EVALUATOR_VERSION);
  expect(await bodyOf(capsule)).toEqual(Buffer.from('{"ok":1}'));
});

test("a capsule is never public: nothing that may be read has its bytes, headers, addresses or certificates", async () => {
  body = Buffer.from('{"ok":1,"unasked":"marked-body"}');
  const organisation = await service.organisation();
  const { as } = organisation.live;
  const { id } = await service.opened(organisation, {}, { as });
  const asked = { source_url: "https://a.example/marked-path" };
  expect((await service.post(`/v1/warrants/${id}/verify`, asked, { as })).body.state).toBe("released");
  const [check] = (await service.get(`/v1/warrants/${id}/checks`, { as })).body.data;
  const marks = ["marked-body", "marked-header", ...ANSWER.hops.map(({ address }) => String(address)), HASH];
  const kept = JSON.stringify(capsuleOf(check.id)) + Buffer.from((await bodyOf(capsuleOf(check.id))) ?? []);
  for (const mark of marks) expect(kept).toContain(mark);

  const { paths } = (await service.get("/openapi.json")).body as { paths: Record<string, { get?: object }> };
  const ids = [id, check.id, organisation.live.id];
  const asking = Object.keys(paths)
    .filter((path) => paths[path]?.get && /^\/(v1|t|agents)\//.test(path))
    .flatMap((path) => ids.map((one) => path.replaceAll(/\{[^}]+\}/g, one)));
  const answers = new Map<string, number>();
  for (const path of new Set([...asking, `/t/${id}/receipt.html`, `/console/warrants/${id}`]))
    for (const caller of [undefined, as, organisation.people.owner.as]) {
      const { status, text } = await service.get(path, caller && { as: caller });
      answers.set(path, Math.min(status, answers.get(path) ?? 599));
      for (const mark of marks) expect([path, text.includes(mark)]).toEqual([path, false]);
    }
  for (const path of [
    `/v1/warrants/${id}`,
    `/v1/warrants/${id}/checks`,
    `/v1/warrants/${id}/trace`,
    `/t/${id}`,
  ])
    expect([path, answers.get(path)]).toEqual([path, 200]);
});

test("headers that are too long, or too many, are not kept", () => {
  const headers = (count: number, length: number) =>
    headersSeen(Array.from({ length: count }, () => ["x", "v".repeat(length - 1)] as const));
  expect(headers(256, 128)?.length).toBe(256);
  expect([headers(257, 1), headers(256, 129)]).toEqual([null, null]);
});

test("of a cookie the hash is kept", () => {
  const seen = headersSeen([
    ["set-cookie", "session=secret"],
    ["etag", "x"],
  ]);
  expect(seen).toEqual([
    ["set-cookie", `sha256:${sha256("session=secret")}`],
    ["etag", "x"],
  ]);
});

test("a source that was not reached leaves a capsule without a body", async () => {
  body = null;
  const organisation = await service.organisation();
  const capsule = capsuleOf(await checked(organisation));
  expect(capsule).toMatchObject({ storedHash: null, parts: 0 });
  expect(JSON.parse(capsule?.facts ?? "")).toMatchObject({ source_code: "source_timeout", status: null });
});

test("a large body is kept in parts, once for each hash, and goes with its last capsule", async () => {
  await service.close();
  start({ bytesMax: 2_000 * KIB });
  const organisation = await service.organisation();
  body = random(700 * KIB);
  const first = await checked(organisation);
  const second = await checked(organisation);
  expect([capsuleOf(first)?.parts, partCount()]).toEqual([3, 3]);
  body = random(900 * KIB);
  const third = await checked(organisation);
  // The oldest has gone; the second still has its body.
  expect(ids()).toEqual([second, third]);
  expect(partCount()).toBe(3 + 4);
  expect((await bodyOf(capsuleOf(second)))?.length).toBe(700 * KIB);
  const fourth = await checked(organisation);
  expect([ids(), partCount()]).toEqual([[third, fourth], 4]);
});

test("a body that is compressed otherwise, as by a later version, does not mix with what is there", async () => {
  let level = 1;
  await service.close();
  const { zstdCompress } = await import("node:zlib");
  const compressAs = promisify(zstdCompress) as (bytes: Uint8Array, options: object) => Promise<Uint8Array>;
  start({
    compress: (bytes) => compressAs(bytes, { params: { [constants.ZSTD_c_compressionLevel]: level } }),
  });
  const organisation = await service.organisation();
  const text = Array.from({ length: 200_000 }, (_, at) => (at * at * 7919) % 100_003).join();
  body = Buffer.from(text);
  const first = await checked(organisation);
  level = 19;
  const second = await checked(organisation);
  const [one, other] = [capsuleOf(first), capsuleOf(second)];
  expect(one?.parts).toBeGreaterThan(other?.parts ?? 0);
  for (const capsule of [one, other])
    expect(Buffer.from((await bodyOf(capsule)) ?? []).toString()).toBe(text);
});

describe("the quota", () => {
  beforeEach(async () => {
    await service.close();
    start({ bytesMax: 3 * 4 * KIB });
  });

  test("is of each organisation and mode; the oldest go first, and a check is never refused", async () => {
    const [one, other] = [await service.organisation(), await service.organisation()];
    const sandbox = await checked(one, "sandbox");
    const others = await checked(other);
    const live: string[] = [];
    for (let count = 0; count < 5; count++) live.push(await checked(one));
    expect(new Set(ids())).toEqual(new Set([sandbox, others, ...live.slice(2)]));
  });

  test("makes room for one large capsule by as many small ones as it takes", async () => {
    await service.close();
    start({ bytesMax: 300 * 4 * KIB });
    const organisation = await service.organisation();
    for (let count = 0; count < 80; count++) await checked(organisation);
    body = random(4 * KIB * 290);
    const large = await checked(organisation);
    expect(ids().at(-1)).toBe(large);
    expect(ids().length).toBeLessThan(12);
  }, 20_000);

  test("lets a check be made whose capsule is longer than all of it", async () => {
    body = random(20 * KIB);
    const organisation = await service.organisation();
    const id = await checked(organisation);
    expect([capsuleOf(id), service.ctx.capsules.notKept.count]).toEqual([null, 1]);
    expect(service.ctx.reader.checks.find(id)?.capsuleHash).toMatch(/^[0-9a-f]{64}$/);
  });
});

test("where the disk gets full no capsule of that mode is kept, and checks are made", async () => {
  const organisation = await service.organisation();
  const hasSpace = spyOn(service.ctx.store, "hasSpaceForCapsule").mockImplementation(
    (mode) => mode === "live",
  );
  const id = await checked(organisation, "sandbox");
  expect([capsuleOf(id), service.ctx.capsules.notKept.count]).toEqual([null, 1]);
  expect(capsuleOf(await checked(organisation))).not.toBeNull();
  hasSpace.mockRestore();
});

test("a body that cannot be compressed is not kept, and the check is made", async () => {
  await service.close();
  start({ compress: () => Promise.reject(new Error("no memory")) });
  const id = await checked(await service.organisation());
  expect([capsuleOf(id), service.ctx.capsules.notKept.count]).toEqual([null, 1]);
});

test("a capsule goes again where a part of its body cannot be written, and the check is made", async () => {
  const { store } = service.ctx;
  const { execute } = store;
  let parts = 0;
  const failing = spyOn(store, "execute").mockImplementation(((command: Parameters<typeof execute>[0]) =>
    "capsule" in command.needs && ++parts === 2
      ? Promise.reject(new Error("an I/O error"))
      : execute(command)) as typeof execute);
  body = random(700 * KIB);
  const id = await checked(await service.organisation());
  expect([parts, capsuleOf(id), partCount(), service.ctx.capsules.notKept.count]).toEqual([3, null, 0, 1]);
  failing.mockRestore();
});

test("capsules are deleted after their days, with their bodies", async () => {
  await service.close();
  start({ days: 2 });
  const organisation = await service.organisation();
  const runs = async (ms: number): Promise<void> => {
    service.clock.now += ms;
    await countRunningTime(service.ctx, ms, 30);
    await forgetOld(service.ctx);
  };
  await checked(organisation);
  await runs(1);
  const later = await checked(organisation);
  await runs(2 * DAY_MS - 1);
  expect(ids().length).toBe(2);
  await runs(1);
  expect(ids()).toEqual([later]);
  await runs(2 * DAY_MS);
  expect([ids(), partCount()]).toEqual([[], 0]);
});

test("old capsules are deleted in steps: no commit deletes much more than a megabyte", async () => {
  const organisation = await service.organisation();
  for (let count = 0; count < 3; count++) {
    body = random(700 * KIB);
    await checked(organisation);
  }
  const later = service.clock.now + 1;
  expect([await forgetCapsules(service.ctx, later), await forgetCapsules(service.ctx, later)]).toEqual([
    2, 1,
  ]);
});

test("a purchase's capsule has the body that the purchase has stored, also once the purchase gives it up", async () => {
  const organisation = await service.organisation();
  market.first = asksVoucher("100");
  market.paid = () => ({ ...delivers({ ok: 1 }), answer: ANSWER });
  const reply = await service.post(
    "/v1/x402/pay",
    { url: SELLER_URL, max_amount: "100", spec: { clauses: [{ kind: "http.status", equals: 200 }] } },
    { as: organisation.live.as },
  );
  expect(reply.status).toBe(200);
  const capsule = capsuleOf(String(ids()[0]));
  expect([capsule?.parts, partCount()]).toEqual([0, 0]);
  expect(JSON.parse(capsule?.facts ?? "").hops.length).toBe(2);
  for (const ms of [1, 30 * DAY_MS]) {
    service.clock.now += ms;
    await countRunningTime(service.ctx, ms, 30);
  }
  await forgetOld(service.ctx);
  expect(await bodyOf(capsule)).toEqual(Buffer.from('{"ok":1}'));
  service.clock.now += 60 * DAY_MS;
  await countRunningTime(service.ctx, 60 * DAY_MS, 30);
  await forgetOld(service.ctx);
  expect([ids(), service.everything().contents]).toEqual([[], []]);
});
