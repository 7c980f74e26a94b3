import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { CapsuleFacts } from "../../src/core/capsule.ts";
import { type SigstoreIdentity, thumbprintOf } from "../../src/core/source-key.ts";
import { createSigstoreVerifier } from "../../src/platform/sigstore.ts";
import { holdsItsDigest } from "../../src/platform/source-signature.ts";
import { MACHINE } from "../../src/services/admin/authority.ts";
import { addSourceKey } from "../../src/services/admin/source-keys.ts";
import { exportCheck } from "../../src/services/checks/export.ts";
import { replayCheck } from "../../src/services/checks/replay.ts";
import { must, type TestOrganisation } from "../support/organisations.ts";
import { type Service, startTestServer } from "../support/server.ts";
import { createTestSigstore, type TestBundle, type TestSigstore } from "../support/sigstore.ts";

/** Sigstore bundles beside deliverables (docs/security, "Signed sources"), over real connections. */

const BODY = Buffer.from('{"ok":1}');
const ME: SigstoreIdentity = { issuer: "https://issuer.example", subject: "https://a.example/me" };
const FETCH_MS = 2_000;

let service: Service;
let organisation: TestOrganisation;
let sigstore: TestSigstore;
let folder: string;
let bundle: string;
/** What the source has beside its deliverable. */
let beside: () => Response | Promise<Response>;
/** The paths that it was asked for. */
let asked: string[];
/** What the source does otherwise. */
let lie: { status?: number; afterMs?: number };

const source = Bun.serve({
  port: 0,
  async fetch(request) {
    const { pathname, search } = new URL(request.url);
    asked.push(pathname + search);
    if (pathname.endsWith(".sigstore.json")) return beside();
    if (pathname === "/moved") return Response.redirect("/data", 302);
    if (lie.afterMs !== undefined) await Bun.sleep(lie.afterMs);
    return new Response(BODY, { status: lie.status ?? 200 });
  },
});
const origin = `http://127.0.0.1:${source.port}`;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "holdfast-sigstore-"));
  sigstore = await createTestSigstore();
  const root = join(folder, "trusted_root.json");
  await Bun.write(root, sigstore.root);
  bundle = JSON.stringify(await sigstore.bundleOf(BODY, ME));
  service = await startTestServer({ SIGSTORE_ROOT: root, FETCH_SECONDS: String(FETCH_MS / 1_000) });
});
beforeEach(async () => {
  [asked, lie] = [[], {}];
  beside = () => new Response(bundle);
  organisation = await service.organisation();
});
afterAll(async () => {
  source.stop(true);
  await service?.close();
  rmSync(folder, { recursive: true, force: true });
});

const register = async (identity: object = ME, of = organisation, from = origin) =>
  must(await addSourceKey(service.ctx, MACHINE, { organisation_id: of.id, origin: from, ...identity }));
/** The check on the receipt after a verify that passes. */
async function receiptCheck(path = "/data") {
  const spec = { clauses: [{ kind: "json.jsonpath", path: "$.ok" }] };
  const { id } = await service.opened(organisation, { spec });
  const { as } = organisation.live;
  const verified = await service.post(
    `/v1/warrants/${id}/verify`,
    { source_url: `${origin}${path}` },
    { as },
  );
  expect(verified.body.state).toBe("released");
  return (await service.get(`/t/${id}`)).body.checks[0];
}
const factsOf = (id: string) =>
  JSON.parse(service.ctx.reader.capsules.get(id)?.facts ?? "{}") as CapsuleFacts;
const OBSERVED = { evidence: "observed by this instance", signed_by: null };

test("an answer with a bundle of a registered identity is signed by the source, and its capsule has the bundle", async () => {
  const key = await register();
  expect(key).toMatchObject({ algorithm: "sigstore", jwk: null, identity: ME });
  const { thumbprint } = key;
  expect(thumbprint).toBe(thumbprintOf(ME));
  expect(thumbprint).toMatch(/^sigstore:[\w-]{43}$/);
  const check = await receiptCheck("/data?a=1");
  expect(check).toMatchObject({ evidence: "signed by the source", signed_by: thumbprint });
  expect(asked).toEqual(["/data?a=1", "/data.sigstore.json?a=1"]);
  expect(factsOf(check.id)).toMatchObject({ signed_with: ME, sigstore_bundle: bundle });
});

test("the bundle is beside the answer, after redirects", async () => {
  await register();
  expect((await receiptCheck("/moved")).signed_by).toBe(thumbprintOf(ME));
  expect(asked).toEqual(["/moved", "/data", "/data.sigstore.json"]);
});

test("a replay verifies the bundle again, where it has a root, and refuses what was altered", async () => {
  await register();
  const { id } = await receiptCheck();
  const file = must(await exportCheck(service.ctx, { check_id: id }));
  const recorded = thumbprintOf(ME);
  const replaying = { ...service.ctx, holdsItsDigest };
  const signedBy = async (
    sigstore: typeof replaying.sigstore | { signerOf: NonNullable<typeof replaying.sigstore>["signerOf"] },
  ) => {
    const { result, signed_by } = must(await replayCheck({ ...replaying, sigstore }, file));
    return [result, signed_by];
  };
  expect(await signedBy(service.ctx.sigstore)).toEqual([
    "same",
    { result: "same", recorded, replayed: recorded },
  ]);
  expect(await signedBy(null)).toEqual(["same", { result: "not_checked", recorded, replayed: null }]);
  const another = createSigstoreVerifier((await createTestSigstore()).root);
  expect(await signedBy({ signerOf: async (question) => another.signerOf(question) })).toEqual([
    "different",
    { result: "different", recorded, replayed: null },
  ]);
  const altered = { ...file, capsule: { ...file.capsule, sigstore_bundle: "{}" } };
  expect(await replayCheck(replaying, altered)).toMatchObject({
    message: expect.stringContaining("capsule_hash"),
  });
});

describe("an answer is observed by this instance, and its check passes all the same,", () => {
  /** What became of the check, how often a bundle was asked for, and that none was kept. */
  const observed = async (asks: number, path?: string) => {
    const check = await receiptCheck(path);
    expect(check).toMatchObject(OBSERVED);
    expect(asked.filter((one) => one.includes(".sigstore.json")).length).toBe(asks);
    expect(factsOf(check.id)).toMatchObject({ signed_with: null, sigstore_bundle: null });
  };

  test("and the source is asked for nothing more, where no identity is registered for its origin", async () => {
    await register(ME, await service.organisation());
    await register(ME, organisation, "http://127.0.0.1:1");
    const { publicKey } = (await crypto.subtle.generateKey("Ed25519", true, [
      "sign",
      "verify",
    ])) as CryptoKeyPair;
    await register({ key: await crypto.subtle.exportKey("jwk", publicKey) });
    await observed(0);
  });

  test("nor where the status is not 200, which a bundle does not sign", async () => {
    await register();
    lie = { status: 203 };
    await observed(0);
  });

  test("where the identity or the issuer is another", async () => {
    await register({ ...ME, subject: "https://a.example/other" });
    await register({ ...ME, issuer: "https://other.example" });
    await observed(1);
  });

  test("where the bundle is of other bytes", async () => {
    await register();
    const other = JSON.stringify(await sigstore.bundleOf(Buffer.from("x"), ME));
    beside = () => new Response(other);
    await observed(1);
  });

  test("where the bundle is of another Sigstore", async () => {
    await register();
    const other = await (await createTestSigstore()).bundleOf(BODY, ME);
    beside = () => Response.json(other);
    await observed(1);
  });

  test.each<[string, () => Response]>([
    ["missing", () => new Response("", { status: 404 })],
    ["there with another status", () => new Response(bundle, { status: 404 })],
    ["no JSON", () => new Response("<html>")],
    ["one that keeps its parser busy for hours", () => Response.json(bombed(JSON.parse(bundle)))],
    ["no UTF-8", () => new Response(Buffer.concat([Buffer.from(bundle), Buffer.of(0xff)]))],
    [
      "longer than 32 KiB",
      () => new Response(bundle + " ".repeat(32 * 1024 + 1 - Buffer.byteLength(bundle))),
    ],
    ["endless", () => new Response(new ReadableStream({ pull: (to) => to.enqueue(Buffer.alloc(4_096)) }))],
    ["elsewhere, where nobody may ask", () => Response.redirect("http://10.0.0.1/", 302)],
  ])("where the bundle is %s", async (_, answer) => {
    await register();
    beside = answer;
    await observed(1);
  });

  test("where the bundle comes too late: it has what the deliverable left of the time", async () => {
    await register();
    lie = { afterMs: FETCH_MS / 2 };
    beside = () => new Promise(() => {});
    const startedAt = performance.now();
    await observed(1);
    // With a limit of its own it would take half as long again. A busy machine needs some time besides.
    expect(performance.now() - startedAt).toBeLessThan(FETCH_MS * 1.4);
  });
});

/** The bundle with a certificate that the packages parse again and again, twice as often with each of its 60 places. */
function bombed(good: TestBundle): TestBundle {
  const lengthOf = (length: number) =>
    length < 0x80 ? [length] : length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff];
  let certificate = Buffer.of(0x05, 0x00);
  for (let place = 0; place < 60; place++) {
    const inner = Buffer.of(0x30, ...lengthOf(certificate.length));
    certificate = Buffer.concat([Buffer.of(0x04, inner.length), inner, certificate]);
  }
  const rawBytes = Buffer.concat([Buffer.of(0x30, ...lengthOf(certificate.length)), certificate]);
  good.verificationMaterial.certificate.rawBytes = rawBytes.toString("base64");
  return good;
}

test("a bundle of 32 KiB is read whole", async () => {
  await register();
  beside = () => new Response(bundle + " ".repeat(32 * 1024 - Buffer.byteLength(bundle)));
  expect((await receiptCheck()).signed_by).toBe(thumbprintOf(ME));
});

test.each([
  ["issuer", { issuer: "issuer.example", subject: ME.subject }],
  ["issuer", { subject: ME.subject }],
  ["subject", { issuer: ME.issuer, subject: "me" }],
  ["subject", { issuer: ME.issuer, subject: "https://a.example/ä" }],
  ["subject", { issuer: ME.issuer, subject: `https://a.example/${"a".repeat(512)}` }],
  ["subject", { issuer: ME.issuer }],
  ["key", { ...ME, key: {} }],
])("an identity with a wrong %s is refused", async (field, identity) => {
  const input = { organisation_id: organisation.id, origin, ...identity };
  expect(await addSourceKey(service.ctx, MACHINE, input)).toMatchObject({
    refused: "validation_failed",
    message: expect.stringContaining(`${field}: `),
  });
});

test("a server without a root never asks for a bundle, and one with a wrong root does not start", async () => {
  const plain = await startTestServer();
  expect(plain.ctx.sigstore).toBeNull();
  await plain.close();
  await Bun.write(join(folder, "wrong.json"), "{}");
  for (const file of ["wrong.json", "missing.json"])
    await expect(startTestServer({ SIGSTORE_ROOT: join(folder, file) })).rejects.toThrow(
      "HOLDFAST_SIGSTORE_ROOT: ",
    );
});
