/** `bun run receipts`: proofs of solvency, by a program of a stranger in Python 3, written from the page on solvency alone. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { proofText, type SolvencyProof } from "../../src/core/solvency/proof.ts";
import { MACHINE } from "../../src/services/admin/authority.ts";
import { fundBalance } from "../../src/services/admin/balances.ts";
import { proveSolvency } from "../../src/services/solvency/prove.ts";
import { signStatement } from "../../src/services/solvency/sign.ts";
import { verifySolvencyFile } from "../../src/services/solvency/verify.ts";
import type { Json } from "../support/client.ts";
import { createTestContext, type TestContext } from "../support/context.ts";
import { createStage, must, open, settle, warrantIn } from "../support/stage.ts";

const PROGRAM = join(import.meta.dir, "solvency.py");
const TEST_MS = 300_000;

let ctx: TestContext;
let folder: string;
let payees: SolvencyProof;
let organisations: SolvencyProof;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "holdfast-solvency-"));
  ctx = createTestContext();
  const stage = await createStage(ctx, { funds: "9223372036854775807" });
  const other = await createStage(ctx, { funds: "9223372036854775807" });
  const scope = { organisation_id: stage.organisationId, mode: "live" } as const;
  must(await fundBalance(ctx, MACHINE, { ...scope, asset: "EUR", amount: "7" }));
  for (const payee of ["acme", "Ünïcode “payee” \u{1f4b6}", "c", "d", "e"]) {
    const { id } = warrantIn(await open(stage, stage.operator, { payee, amount: "1000" }));
    must(await settle(stage, stage.operator, id, "release"));
  }
  await open(other, other.operator);
  must(await signStatement(ctx));
  payees = must(await proveSolvency(ctx, MACHINE, { ...scope, payee: "Ünïcode “payee” \u{1f4b6}" }));
  organisations = must(await proveSolvency(ctx, MACHINE, scope));
  writeFileSync(join(folder, "jwks.json"), JSON.stringify(ctx.tokens.jwks));
}, TEST_MS);
afterAll(async () => {
  await ctx?.close();
  rmSync(folder, { recursive: true, force: true });
});

/** Whether the program accepts a file, and what `holdfast solvency verify` says of it. */
async function accepted(text: string): Promise<readonly [python: boolean, ours: boolean]> {
  const file = join(folder, "proof.json");
  writeFileSync(file, text);
  const child = Bun.spawn(["python3", "-B", PROGRAM, file, join(folder, "jwks.json")], { stderr: "pipe" });
  const said = await child.stdout.text();
  const code = await child.exited;
  expect(code === 0).toBe(said === "The proof holds.\n");
  return [code === 0, (await verifySolvencyFile(text, ctx.tokens.jwks)).ok];
}

test(
  "what the instance wrote is accepted",
  async () => {
    expect(organisations.entries.map(({ leaf }) => leaf.asset)).toEqual(["EUR", "USDC"]);
    for (const proof of [payees, organisations])
      expect(await accepted(proofText(proof))).toEqual([true, true]);
  },
  TEST_MS,
);

type Changed = (proof: Json) => unknown;
const CHANGES: readonly (readonly [what: string, Changed])[] = [
  ["a larger amount", ({ entries }) => (entries[0].leaf.amount = "1001")],
  ["another payee", ({ entries }) => (entries[0].leaf.payee = "acme")],
  ["another mode", ({ entries }) => (entries[0].leaf.mode = "sandbox")],
  ["another asset", ({ entries }) => (entries[0].leaf.asset = "EUR")],
  ["another salt", ({ entries }) => (entries[0].leaf.salt = "0".repeat(64))],
  ["a further field of a leaf", ({ entries }) => (entries[0].leaf.note = "x")],
  [
    "the other side",
    ({ entries: [{ path }] }) => (path[0].side = path[0].side === "left" ? "right" : "left"),
  ],
  ["another sibling", ({ entries }) => (entries[0].path[0].hash = "0".repeat(64))],
  ["a smaller sum", ({ entries }) => (entries[0].path[0].sum = "1")],
  ["a negative sum", ({ entries }) => (entries[0].path[0].sum = `-${entries[0].path[0].sum}`)],
  ["a sum that wraps", ({ entries: [{ path }] }) => (path[0].sum = String(BigInt(path[0].sum) + 2n ** 128n))],
  ["a sum with a zero before it", ({ entries }) => (entries[0].path[0].sum = `0${entries[0].path[0].sum}`)],
  ["a step less", ({ entries }) => entries[0].path.pop()],
  ["a step more", ({ entries: [{ path }] }) => path.push(path[0])],
  ["an entry twice", ({ entries }) => entries.push(entries[0])],
  ["no entry", ({ entries }) => entries.pop()],
  [
    "another sum in the statement",
    (proof) => (proof.statement = proof.statement.replace(/"owed":"\d/, '"owed":"9')),
  ],
  [
    "another number of the statement",
    (proof) => (proof.statement = proof.statement.replace('"number":1', '"number":2')),
  ],
  ["another signature", (proof) => (proof.statement = proof.statement.replace(/.{6}=\n$/, "AAAAAA=\n"))],
  ["a second signature line", (proof) => (proof.statement += proof.statement.split("\n\n")[1])],
  ["another key", (proof) => (proof.kid = "x")],
  ["another place in the log", ({ anchor }) => (anchor.leaf_index -= 1)],
  ["another size of the log", ({ anchor }) => (anchor.tree_size += 1)],
  ["another root of the log", ({ anchor }) => (anchor.root = "0".repeat(64))],
  ["a shorter way in the log", ({ anchor }) => anchor.proof.pop()],
  [
    "another checkpoint",
    ({ anchor }) => (anchor.checkpoint = anchor.checkpoint.replace("holdfast/", "holdfast/x")),
  ],
  ["a line more under the checkpoint", ({ anchor }) => (anchor.checkpoint += "— other AAAAAAAA\n")],
  ["a further field", (proof) => (proof.more = 1)],
];

test.each(CHANGES)(
  "%s is refused",
  async (_, change) => {
    const copy: Json = structuredClone(payees);
    change(copy);
    expect(await accepted(proofText(copy))).toEqual([false, false]);
  },
  TEST_MS,
);

test("another form of the same JSON is refused", async () => {
  expect(await accepted(JSON.stringify(payees, null, 2))).toEqual([false, false]);
  expect(await accepted(proofText(payees).trimEnd())).toEqual([false, false]);
});
