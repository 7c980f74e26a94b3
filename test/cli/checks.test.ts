import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { hashJson, sha256 } from "../../src/core/canonical.ts";
import { UNSEEN_ANSWER } from "../../src/core/capsule.ts";
import { reachedEvidence } from "../../src/core/clauses/evidence.ts";
import { thumbprintOf } from "../../src/core/source-key.ts";
import { MACHINE } from "../../src/services/admin/authority.ts";
import { createSchema } from "../../src/services/admin/schemas.ts";
import { verifyWarrant } from "../../src/services/warrants/verify.ts";
import { type CommandLine, createCommandLine } from "../support/command-line.ts";
import { createTestContext, TEST_NOW, type TestContext } from "../support/context.ts";
import { createCaller, createStage, idempotencyOf, must, open, warrantIn } from "../support/stage.ts";

/** `holdfast checks export|replay` (docs/security, "Capsules"). */

const AGED_SECONDS = 100;
const BODY = JSON.stringify({ temperature: 21, generated_at: new Date(TEST_NOW - 90_000).toISOString() });
const CLAUSES = [
  { kind: "json.schema", schema: "weather.v1" },
  { kind: "data.freshness", maxAgeSeconds: AGED_SECONDS },
  { kind: "json.jsonpath", path: "$.temperature", equals: 22 },
] as const;

let ctx: TestContext;
let cli: CommandLine;
let folder: string;
let check: string;
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "holdfast-checks-"));
  ctx = createTestContext({
    fetchEvidence: async () => ({
      evidence: reachedEvidence({ status: 200, body: Buffer.from(BODY) }),
      status: 200,
      bytes: BODY.length,
      durationMs: 1,
      answer: UNSEEN_ANSWER,
    }),
  });
  cli = createCommandLine(ctx);
  const stage = await createStage(ctx);
  const caller = await createCaller(stage);
  const schema = { type: "object", properties: { temperature: { type: "number" } } };
  must(
    await createSchema(ctx, MACHINE, { organisation_id: stage.organisationId, name: "weather.v1", schema }),
  );
  const { id: warrantId } = warrantIn(await open(stage, caller, { spec: { clauses: [...CLAUSES] } }));
  const asked = { warrantId, sourceUrl: "https://source.example/", ifMatch: null };
  must(await verifyWarrant(ctx, caller, asked, idempotencyOf()));
  check = ctx.reader.checks.of(warrantId)[0]?.id ?? "";
});
afterEach(async () => {
  rmSync(folder, { recursive: true });
  await ctx.close();
});

type File = Record<string, never> & {
  check: { details: { observed: unknown }[]; score: number; reason_codes: string[] };
  capsule: { evaluated_at: string };
  schemas: Record<string, { schema: unknown }>;
};
const exported = async (): Promise<File> => (await cli.json("checks", "export", check)) as File;
async function written(file: unknown): Promise<string> {
  const path = join(folder, "check.json");
  await Bun.write(path, typeof file === "string" ? file : JSON.stringify(file));
  return path;
}
const RESULTS = (clauses: unknown): unknown => (clauses as { result: string }[]).map(({ result }) => result);

test("an export has all that the check was made from, and a replay of it, a day later and elsewhere, says same", async () => {
  const file = await exported();
  expect(file).toMatchObject({
    object: "check_export",
    check: { id: check, capsule_hash: hashJson(file.capsule) },
    spec: { clauses: CLAUSES },
    schemas: { "weather.v1": { schema: { type: "object" } } },
    capsule: { evidence_hash: sha256(BODY), evaluated_at: new Date(TEST_NOW).toISOString() },
    body: Buffer.from(BODY).toString("base64"),
  });
  expect((await cli.run("checks", "export", check)).out).toBe(`${JSON.stringify(file)}\n`);
  ctx.clock.now += 86_400_000;
  const before = cli.opened.count;
  const replayed = await cli.json("checks", "replay", await written(file));
  expect(cli.opened.count).toBe(before);
  expect(replayed).toMatchObject({
    object: "check_replay",
    check_id: check,
    result: "same",
    score: { result: "same", recorded: 6_667, replayed: 6_667 },
    reason_codes: { recorded: ["value_mismatch"], replayed: ["value_mismatch"] },
  });
  expect(RESULTS(replayed.clauses)).toEqual(["same", "same", "same"]);
  expect(await cli.json("checks", "replay", check)).toEqual(replayed);
  const { code, out } = await cli.run("checks", "replay", check);
  expect([code, out.split("\n")[0]]).toEqual([0, "The check comes out the same."]);
});

/** An export whose check says otherwise, with its hash made right again. */
async function claiming(change: (file: File) => void): Promise<File> {
  const file = await exported();
  change(file);
  return { ...file, check_hash: hashJson(file.check) } as unknown as File;
}

describe("a replay says different, clause by clause, and exits with 1,", () => {
  test("where a clause was seen otherwise", async () => {
    const file = await claiming((claimed) => {
      claimed.check.details[2]!.observed = 22;
    });
    const { code, out } = await cli.run("checks", "replay", await written(file), "--json");
    const replayed = JSON.parse(out);
    expect([code, replayed.result]).toEqual([1, "different"]);
    expect(RESULTS(replayed.clauses)).toEqual(["same", "same", "different"]);
    expect((await cli.run("checks", "replay", await written(file))).out).toContain("comes out DIFFERENT");
  });

  test("where the score or the reason codes were others", async () => {
    const score = await claiming(({ check: claimed }) => {
      claimed.score = 10_000;
    });
    const codes = await claiming(({ check: claimed }) => {
      claimed.reason_codes = [];
    });
    for (const file of [score, codes])
      expect((await cli.run("checks", "replay", await written(file))).code).toBe(1);
  });
});

test("codes that the policy added are not compared", async () => {
  const file = await claiming(({ check: claimed }) => claimed.reason_codes.push("passkey_required"));
  expect((await cli.run("checks", "replay", await written(file))).code).toBe(0);
});

/** Changes facts of an export's capsule, and makes the hashes right again. */
function restated(file: Record<string, unknown>, facts: object): void {
  const capsule = { ...(file.capsule as object), ...facts };
  const capsule_hash = hashJson(capsule);
  const check = { ...(file.check as object), capsule_hash };
  Object.assign(file, { capsule, capsule_hash, check, check_hash: hashJson(check) });
}

test("a Sigstore bundle is not checked without a root, and the comparison says so", async () => {
  const signer = { issuer: "https://issuer.example", subject: "https://a.example/me" };
  const file = await exported();
  Object.assign(file.check, { signed_by: thumbprintOf(signer) });
  restated(file, { signed_with: signer, sigstore_bundle: "{}" });
  const { code, out } = await cli.run("checks", "replay", await written(file));
  expect(out).toContain(`not checked, without a --sigstore-root: ${thumbprintOf(signer)} then`);
  expect(code).toBe(0);
});

describe("a file is refused", () => {
  const ALTERED: Readonly<Record<string, (file: Record<string, unknown>) => unknown>> = {
    check_hash: (file) => Object.assign(file.check as object, { score: 1 }),
    spec_hash: (file) => (file.spec as { clauses: unknown[] }).clauses.pop(),
    capsule_hash: (file) => Object.assign(file.capsule as object, { status: 404 }),
    "capsule.evidence_hash": (file) => Object.assign(file, { body: "e30=" }),
    "capsule.evaluated_at": (file) => restated(file, { evaluated_at: "2020-01-01T00:00:00.000Z" }),
    "capsule.warrant_id": (file) => restated(file, { warrant_id: "wrt_other" }),
    "capsule.signed_with": (file) => restated(file, { signed_with: { kty: "OKP", crv: "Ed25519", x: "x" } }),
    "schemas.weather.v1": (file) =>
      Object.assign((file as unknown as File).schemas["weather.v1"]!, { schema: {}, hash: hashJson({}) }),
    "capsule.schema_hashes.weather.v1": (file) => Object.assign(file, { schemas: {} }),
  };
  test.each(Object.keys(ALTERED))("whose %s does not fit", async (field) => {
    const file = await exported();
    ALTERED[field]?.(file);
    const { code, err } = await cli.run("checks", "replay", await written(file), "--json");
    expect([code, JSON.parse(err).error.message.split(" is ")[0]]).toEqual([
      1,
      `The file was altered: its ${field}`,
    ]);
  });

  test.each([
    ["a time", { evaluated_at: "2030-13-15T12:00:00.000Z" }, "capsule.evaluated_at"],
    ["a source code", { source_code: "x" }, "capsule.source_code"],
    ["headers", { headers: [["x"]] }, "capsule.headers"],
    ["a signer", { signed_with: { kty: "RSA" } }, "capsule.signed_with"],
  ])("where %s is not as an export has it, although every hash fits", async (_, facts, field) => {
    const file = await exported();
    restated(file, facts);
    const { code, err } = await cli.run("checks", "replay", await written(file), "--json");
    expect([code, JSON.parse(err).error.message]).toEqual([
      1,
      `${field}: is not as \`holdfast checks export\` writes it`,
    ]);
  });

  test.each([["[]"], ["{}"], ['{"object":"check_export"}'], ["no JSON"]])("that is %p", async (text) => {
    const { code, err } = await cli.run("checks", "replay", await written(text), "--json");
    expect([code, JSON.parse(err).error.code]).toEqual([1, "validation_failed"]);
  });
});

test("a check that is not there, and one whose capsule is gone, are refused", async () => {
  const codeOf = async (id: string) =>
    JSON.parse((await cli.run("checks", "export", id, "--json")).err).error.code;
  expect(await codeOf("chk_none")).toBe("check_not_found");
  const { organisationId, mode } = ctx.reader.capsules.get(check)!;
  await ctx.store.execute({
    scope: { organisationId, mode },
    needs: { capsule: check },
    decide: ({ capsule }) => ({
      answer: true,
      change: { put: [], deleted: [{ kind: "capsule", row: capsule! }] },
    }),
  });
  expect(await codeOf(check)).toBe("capsule_not_found");
});
