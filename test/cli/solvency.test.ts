import { afterAll, beforeAll, expect, test } from "bun:test";
import { existsSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Treasury } from "../../src/core/treasury.ts";
import { chainOfMode } from "../../src/core/x402/chains.ts";
import { type CommandLine, createCommandLine } from "../support/command-line.ts";
import { createTestContext, type TestContext } from "../support/context.ts";
import { markRestored } from "../support/restored.ts";
import { createStage, must, open, SCRIPTED, type Stage, settle, warrantIn } from "../support/stage.ts";

/** What is owed and held, statements and proofs, from the command line. */

const TREASURY: Treasury = {
  ...{
    mode: "sandbox",
    chainId: chainOfMode("sandbox", 84532)!,
    token: `0x${"ab".repeat(20)}`,
    asset: "USDC",
  },
  limits: { payoutMax: 0n, dayMax: 0n },
  address: `0x${"cd".repeat(20)}`,
};

let ctx: TestContext;
let cli: CommandLine;
let stage: Stage;
let account: readonly string[];
let held: bigint | null = 5_000_001n;
beforeAll(async () => {
  const holdingOf = async () =>
    held === null
      ? ({ away: "timeout" } as const)
      : {
          balance: held,
          block: 7,
          blockHash: `0x${"0".repeat(64)}`,
          blockTime: ctx.clock.now,
          newestTime: ctx.clock.now,
        };
  ctx = createTestContext({ ...SCRIPTED, treasuries: [TREASURY], holdingOf });
  cli = createCommandLine(ctx);
  stage = await createStage(ctx, { mode: "sandbox", funds: "5000000" });
  account = ["--organisation", stage.organisationId, "--mode", "sandbox"];
  const { id } = warrantIn(await open(stage, stage.operator, { payee: "acme", amount: "1500000" }));
  must(await settle(stage, stage.operator, id, "release"));
  ctx.clock.now += 600_000;
});
afterAll(() => ctx.close());

const fileOf = (name: string): string => join(ctx.folder, name);
function jwksFile(): string {
  writeFileSync(fileOf("jwks.json"), JSON.stringify(ctx.tokens.jwks));
  return fileOf("jwks.json");
}

test("what is owed stands beside what the chain holds", async () => {
  const enough = await cli.run("solvency");
  expect(enough).toMatchObject({ code: 0, err: "" });
  expect(enough.out).toMatch(
    /sandbox\s+USDC\s+5\.00 USDC\s+3\.50 USDC.*1\.50 USDC.*5\.000001 USDC\s+0\.000001 USDC\s+enough/,
  );
  expect(enough.out).toContain(`${TREASURY.address} on eip155:84532 at block 7`);
  held = 4_999_999n;
  const { out } = await cli.run("solvency");
  expect(out).toMatch(/4\.999999 USDC\s+-0\.000001 USDC\s+LESS THAN OWED/);
  held = null;
  expect((await cli.run("solvency")).out).toMatch(/unknown\n.*the chain does not say \(timeout\)/);
  expect(await cli.json("solvency")).toMatchObject({
    data: [{ object: "solvency", owes: "5000000", holds: null, judgement: "unknown", away: "timeout" }],
  });
});

test("a statement is signed, listed, proved and verified", async () => {
  expect((await cli.run("solvency", "list")).out).toContain("No statement was signed so far");
  expect((await cli.run("solvency", "prove", fileOf("none.json"), ...account)).err).toContain(
    "No statement of solvency was signed so far.",
  );
  expect(existsSync(fileOf("none.json"))).toBeFalse();
  held = 5_000_000n;
  const signed = await cli.run("solvency", "sign");
  expect(signed).toMatchObject({ code: 0, err: "" });
  expect(signed.out).toMatch(
    /^The statement 1 is signed, and in the log\.[\s\S]*sandbox\s+USDC\s+5\.00 USDC\s+2\s+5\.00 USDC/,
  );
  const { data } = await cli.json("solvency", "list");
  expect(data).toMatchObject([{ object: "solvency_statement", number: 1, checkpoint: 1 }]);
  const [{ hash }] = data as [{ hash: string }];
  expect((await cli.run("solvency", "list")).out).toContain(hash);

  const wrote = await cli.run("solvency", "prove", fileOf("acme.json"), ...account, "--payee", "acme");
  expect(wrote.out).toBe(`Written to ${fileOf("acme.json")}: 1.50 USDC.\n`);
  expect(statSync(fileOf("acme.json")).mode & 0o777).toBe(0o600);
  const verified = await cli.run("solvency", "verify", fileOf("acme.json"), "--jwks", jwksFile());
  expect(verified).toMatchObject({ code: 0, err: "" });
  expect(verified.out).toMatch(/^The proof holds[\s\S]*1\.50 USDC to acme[\s\S]*5\.00 USDC to 2 creditors/);
  expect(verified.out).toContain(hash);

  writeFileSync(
    fileOf("more.json"),
    readFileSync(fileOf("acme.json"), "utf8").replace('"1500000"', '"1500001"'),
  );
  const refused = await cli.run("solvency", "verify", fileOf("more.json"), "--jwks", jwksFile());
  expect(refused.code).toBe(1);
  expect(refused.out).toContain("entries[0] does not lead to the root of sandbox USDC");
});

test("what cannot be proved is said", async () => {
  const prove = (...flags: string[]) =>
    cli.run("solvency", "prove", fileOf("refused.json"), ...account, ...flags);
  expect((await prove("--payee", "nobody")).err).toContain(
    "says that nothing is owed to this payee in sandbox",
  );
  expect((await prove("--asset", "EUR")).err).toContain(
    "says that nothing of EUR is owed to the organisation",
  );
  expect((await prove("--statement", "9")).err).toContain("There is no statement of solvency 9.");
  expect((await prove("--statement", "x")).err).toContain("--statement must be an integer");
  expect(existsSync(fileOf("refused.json"))).toBeFalse();
});

test("a restored ledger signs nothing before somebody has acknowledged it", async () => {
  await markRestored(ctx);
  expect((await cli.run("solvency", "sign")).err).toContain("holdfast restore acknowledge");
  expect((await cli.json("solvency", "list")).data).toHaveLength(1);
});
