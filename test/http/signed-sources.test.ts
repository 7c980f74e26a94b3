import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { createHash } from "node:crypto";
import { gzipSync } from "node:zlib";
import { hashJson, sha256 } from "../../src/core/canonical.ts";
import { holdsItsDigest } from "../../src/platform/source-signature.ts";
import type { CheckExport } from "../../src/resources/check-export.ts";
import { MACHINE } from "../../src/services/admin/authority.ts";
import { addSourceKey, listSourceKeys, removeSourceKey } from "../../src/services/admin/source-keys.ts";
import { exportCheck } from "../../src/services/checks/export.ts";
import { replayCheck } from "../../src/services/checks/replay.ts";
import { must, type TestOrganisation } from "../support/organisations.ts";
import { type Service, startTestServer } from "../support/server.ts";

/** Sources that sign their answers (docs/security, "Signed sources"), over real connections. */

const BODY = Buffer.from('{"ok":1}');
let service: Service;
let organisation: TestOrganisation;
let keys: CryptoKeyPair;
let jwk: { readonly [member: string]: string | undefined };
/** What the source does otherwise. */
let lie: { body?: Buffer; status?: number; unsigned?: boolean; codingUncovered?: boolean };

const source = Bun.serve({
  port: 0,
  async fetch(request) {
    const { pathname } = new URL(request.url);
    if (pathname === "/garbled") lie = { ...lie, body: BODY };
    const wire = { "/gzip": gzipSync(BODY), "/garbled": Buffer.from(BODY) }[pathname] ?? BODY;
    const coding = wire === BODY || lie.codingUncovered ? "" : ' "content-encoding"';
    const digest = `sha-256=:${createHash("sha256").update(wire).digest("base64")}:`;
    const params = `("@status" "content-digest" "@authority";req${coding});created=${Math.floor(Date.now() / 1000)};keyid="k"`;
    const host = request.headers.get("host");
    const base = `"@status": 200\n"content-digest": ${digest}\n"@authority";req: ${host}\n${coding && `${coding.trim()}: gzip\n`}"@signature-params": ${params}`;
    const signed = await crypto.subtle.sign("Ed25519", keys.privateKey, Buffer.from(base));
    const headers = {
      "content-digest": digest,
      ...(wire !== BODY && { "content-encoding": "gzip" }),
      ...(!lie.unsigned && {
        "signature-input": `sig=${params}`,
        signature: `sig=:${Buffer.from(signed).toString("base64")}:`,
      }),
    };
    return new Response(lie.body ?? wire, { status: lie.status ?? 200, headers });
  },
});

beforeAll(async () => {
  keys = (await crypto.subtle.generateKey("Ed25519", true, ["sign", "verify"])) as CryptoKeyPair;
  const { kty, crv, x } = (await crypto.subtle.exportKey("jwk", keys.publicKey)) as Record<string, string>;
  jwk = { kty, crv, x };
  service = await startTestServer();
});
beforeEach(async () => {
  lie = {};
  organisation = await service.organisation();
});
afterAll(async () => {
  source.stop(true);
  await service?.close();
});

const origin = `http://127.0.0.1:${source.port}`;
const register = async (of = organisation, from = origin) =>
  must(await addSourceKey(service.ctx, MACHINE, { organisation_id: of.id, origin: from, key: jwk }));
/** The check on the receipt after a verify that passes. */
async function receiptCheck(path = "/", of = origin) {
  const spec = { clauses: [{ kind: "json.jsonpath", path: "$.ok" }] };
  const { id } = await service.opened(organisation, { spec });
  const { as } = organisation.live;
  const verified = await service.post(`/v1/warrants/${id}/verify`, { source_url: `${of}${path}` }, { as });
  expect(verified.body.state).toBe("released");
  const checks = await service.get(`/v1/warrants/${id}/checks`, { as });
  const { checks: shown } = (await service.get(`/t/${id}`)).body;
  expect(shown[0].signed_by).toBe(checks.body.data[0].signed_by);
  return shown[0];
}
const OBSERVED = { evidence: "observed by this instance", signed_by: null };

test("an answer that its source signed is signed by the source, and the check names the key", async () => {
  const { thumbprint, algorithm } = await register();
  expect(algorithm).toBe("ed25519");
  const signed = { evidence: "signed by the source", signed_by: thumbprint };
  expect(await receiptCheck()).toMatchObject(signed);
  // Its digest is of the bytes as they were sent.
  expect(await receiptCheck("/gzip")).toMatchObject(signed);
});

test("a replay verifies the signature again, from what the capsule has", async () => {
  const { thumbprint } = await register();
  const replaying = { ...service.ctx, holdsItsDigest };
  for (const path of ["/", "/gzip"]) {
    const { id } = await receiptCheck(path);
    const file = must(await exportCheck(service.ctx, { check_id: id }));
    expect(must(await replayCheck(replaying, file)).signed_by).toEqual({
      result: "same",
      recorded: thumbprint,
      replayed: thumbprint,
    });
    // The signature of another answer, with every hash made right.
    const headers = (file.capsule.headers ?? []).map(
      ([name, value]) => [name, name === "signature" ? "sig=:AAAA:" : value] as const,
    );
    const replay = must(await replayCheck(replaying, restated(file, { headers })));
    expect([replay.result, replay.signed_by.replayed]).toEqual(["different", null]);
  }
  // The bytes of another answer, with every hash made right.
  const file = must(await exportCheck(service.ctx, { check_id: (await receiptCheck()).id }));
  const other = Buffer.from('{"ok":3}');
  const altered = restated({ ...file, body: other.toString("base64") }, { evidence_hash: sha256(other) });
  expect(must(await replayCheck(replaying, altered)).signed_by.replayed).toBeNull();
});

test("nothing is signed of an answer that could not be read", async () => {
  await register();
  const { id } = await service.opened(organisation);
  const { as } = organisation.live;
  await service.post(`/v1/warrants/${id}/verify`, { source_url: `${origin}/garbled` }, { as });
  const { data } = (await service.get(`/v1/warrants/${id}/checks`, { as })).body;
  const file = must(await exportCheck(service.ctx, { check_id: data[0].id }));
  expect(file.capsule).toMatchObject({ source_code: "source_unreachable", holds_its_digest: true });
  expect(data[0].signed_by).toBeNull();
});

/** An export whose capsule has other facts, with every hash made right. */
function restated(file: CheckExport, facts: Partial<CheckExport["capsule"]>): CheckExport {
  const capsule = { ...file.capsule, ...facts };
  const hashes = { capsule_hash: hashJson(capsule), evidence_hash: capsule.evidence_hash };
  const check = { ...file.check, ...hashes };
  return { ...file, capsule, check, capsule_hash: hashes.capsule_hash, check_hash: hashJson(check) };
}

describe("an answer is observed by this instance, and its check passes all the same,", () => {
  test("where no key is registered, or another organisation's, or another origin's", async () => {
    await register(await service.organisation());
    await register(organisation, "http://127.0.0.1:1");
    expect(await receiptCheck()).toMatchObject(OBSERVED);
  });

  test("where another origin redirected to the one that signed", async () => {
    await register();
    const redirecting = Bun.serve({ port: 0, fetch: () => Response.redirect(`${origin}/`) });
    expect(await receiptCheck("/", `http://127.0.0.1:${redirecting.port}`)).toMatchObject(OBSERVED);
    await redirecting.stop(true);
  });

  test("where the signature leaves out how the bytes are coded", async () => {
    await register();
    lie = { codingUncovered: true };
    expect(await receiptCheck("/gzip")).toMatchObject(OBSERVED);
  });

  test("where it is not signed", async () => {
    await register();
    lie = { unsigned: true };
    expect(await receiptCheck()).toMatchObject(OBSERVED);
  });

  test("where other bytes or another status are sent than were signed", async () => {
    await register();
    lie = { body: Buffer.from('{"ok":2}') };
    expect(await receiptCheck()).toMatchObject(OBSERVED);
    lie = { status: 203 };
    expect(await receiptCheck()).toMatchObject(OBSERVED);
  });

  test("where the key was removed before", async () => {
    const { id } = await register();
    const removed = must(await removeSourceKey(service.ctx, MACHINE, { source_key_id: id }));
    expect(removed.removed_at).not.toBeNull();
    expect(await receiptCheck()).toMatchObject(OBSERVED);
  });
});

describe("keys of sources", () => {
  const add = (input: object) =>
    addSourceKey(service.ctx, MACHINE, { organisation_id: organisation.id, origin, key: jwk, ...input });

  test("are listed until they are removed, once, and the audit log has both", async () => {
    const key = await register();
    const list = async () =>
      must(await listSourceKeys(service.ctx, MACHINE, { organisation_id: organisation.id })).data;
    expect(await list()).toEqual([key]);
    must(await removeSourceKey(service.ctx, MACHINE, { source_key_id: key.id }));
    expect(await list()).toEqual([]);
    expect(await removeSourceKey(service.ctx, MACHINE, { source_key_id: key.id })).toHaveProperty(
      "refused",
      "source_key_not_found",
    );
    const entries = service.ctx.reader.auditEntries.list(organisation.id, null, 2);
    expect(entries.map(({ action, subject }) => [action, subject])).toEqual([
      ["source_key.removed", key.id],
      ["source_key.added", key.id],
    ]);
  });

  test.each([
    ["origin", { origin: "https://a.example/path" }],
    ["origin", { origin: "https://*" }],
    ["key", { key: { kty: "RSA", n: "AQAB", e: "AQAB" } }],
    ["key", { key: { kty: "OKP", crv: "Ed25519", x: "short" } }],
    ["key", { key: null }],
  ])("are refused with a wrong %s", async (field, input) => {
    expect(await add(input)).toMatchObject({
      refused: "validation_failed",
      message: expect.stringContaining(`${field}: `),
    });
  });

  test("are refused where they are private, registered already, or one too many for an origin", async () => {
    expect(await add({ key: { ...jwk, d: jwk.x } })).toMatchObject({
      message: expect.stringContaining("private"),
    });
    await register();
    expect(await add({})).toMatchObject({ message: expect.stringContaining("already") });
    for (const x of ["A", "E", "I"]) must(await add({ key: { ...jwk, x: `${"A".repeat(42)}${x}` } }));
    expect(await add({ key: { ...jwk, x: `${"A".repeat(42)}M` } })).toMatchObject({
      message: expect.stringContaining("4 keys"),
    });
  });
});
