import { afterAll, beforeAll, expect, test } from "bun:test";
import { existsSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { MACHINE } from "../../src/services/admin/authority.ts";
import { fundBalance, showBalances } from "../../src/services/admin/balances.ts";
import { type CommandLine, createCommandLine } from "../support/command-line.ts";
import { createTestContext, type TestContext } from "../support/context.ts";
import { createStage, must, open, SCRIPTED, type Stage, settle, warrantIn } from "../support/stage.ts";

/** Payouts, corrections and statements, from the command line. */

let ctx: TestContext;
let cli: CommandLine;
let stage: Stage;
let account: readonly string[];
beforeAll(async () => {
  ctx = createTestContext(SCRIPTED);
  cli = createCommandLine(ctx);
  stage = await createStage(ctx, { mode: "sandbox", funds: "5000000" });
  account = ["--organisation", stage.organisationId, "--mode", "sandbox"];
});
afterAll(() => ctx.close());

async function release(payee: string, amount: string): Promise<void> {
  const { id } = warrantIn(await open(stage, stage.operator, { payee, amount }));
  must(await settle(stage, stage.operator, id, "release"));
}
const fileOf = (name: string): string => join(ctx.folder, name);
const linesOf = (name: string): readonly string[] =>
  readFileSync(fileOf(name), "utf8").split(/\r?\n/).slice(0, -1);
const payoutsOf = async (status: string) =>
  (await cli.json("payouts", "list", ...account, "--status", status)).data as {
    id: string;
    amount: string;
  }[];

test("from a release to a payment that came back", async () => {
  await release("acme", "1500000");
  await release('=2+3, "x"', "500000");
  const owed = await cli.run("payouts", "list", ...account);
  expect(owed.out).toContain("1.50 USDC");
  const submitted = await cli.run("payouts", "submit", ...account);
  expect(submitted.out).toStartWith("2 submitted, sandbox.");
  expect((await cli.run("payouts", "submit", ...account)).out).toBe(
    "Nothing is owed that you pay by your own means, sandbox.\n",
  );
  const typed = await cli.run("payouts", "submit", ...account, "--payee", "Acme", "--asset", "EURC");
  expect(typed).toMatchObject({ code: 0, out: "Nothing is owed to Acme in EURC, sandbox.\n" });
  const [second, first] = await payoutsOf("submitted");
  expect([first?.amount, second?.amount]).toEqual(["1500000", "500000"]);
  for (const _ of ["once", "and again"]) {
    const paid = await cli.run("payouts", "mark-paid", first!.id, "--reference", "wire 17");
    expect(paid).toMatchObject({ code: 0, err: "" });
    expect(paid.out).toMatch(/^The payout is paid\.[\s\S]*acme[\s\S]*1\.50 USDC[\s\S]*wire 17/);
  }
  const other = await cli.run("payouts", "mark-paid", first!.id, "--reference", "wire 18");
  expect(other).toMatchObject({ code: 1, out: "" });
  expect(other.err).toContain(`The payout ${first!.id} was marked as paid with the reference wire 17.`);
  const failed = await cli.json("payouts", "fail", second!.id, "--reason", "no such account");
  expect(failed).toMatchObject({ status: "failed", reason: "no such account" });
  const back = await cli.json("payouts", "fail", first!.id, "--reason", "closed", "--returned");
  expect(back).toMatchObject({ status: "failed", version: 3 });
  expect(await payoutsOf("owed")).toMatchObject([
    { id: null, amount: "1500000" },
    { id: null, amount: "500000" },
  ]);
});

test("an export is a new file of CSV, whatever a payee is called", async () => {
  const done = await cli.json("payouts", "export", fileOf("failed.csv"), ...account, "--status", "failed");
  expect(done).toEqual({ object: "export", file: fileOf("failed.csv"), rows: 2 });
  const [header, ...rows] = linesOf("failed.csv");
  expect(header).toBe(
    "id,status,payee,asset,amount,rail,reference,reason,waits_for,transaction,created_at,ended_at",
  );
  expect(rows[0]).toContain(`,failed,"'=2+3, ""x""",USDC,500000,book,,no such account,`);
  expect(rows[1]).toContain(",failed,acme,USDC,1500000,book,wire 17,closed,");
  expect(statSync(fileOf("failed.csv")).mode & 0o777).toBe(0o600);
  const again = await cli.run("payouts", "export", fileOf("failed.csv"), ...account);
  expect(again.err).toContain("exists already; name a new one");
  const none = await cli.run(
    "payouts",
    "export",
    fileOf("none.csv"),
    "--organisation",
    "org_none",
    "--mode",
    "live",
  );
  expect([none.code, existsSync(fileOf("none.csv"))]).toEqual([1, false]);
});

test("an export has its name once it is whole: an interrupted one is not taken for all of it", async () => {
  const names = () => readdirSync(ctx.folder).filter((name) => name.startsWith("whole.csv"));
  const during: (readonly string[])[] = [];
  const watching = createCommandLine(ctx, {
    startProgress: () => ({ update: () => void during.push(names()), stop: async () => {} }),
  });
  const line = ["export", fileOf("whole.csv"), ...account];
  for (const command of [
    ["payouts", ...line, "--status", "failed"],
    ["statements", ...line],
  ]) {
    expect(await watching.run(...command)).toMatchObject({ code: 0 });
    expect(names()).toEqual(["whole.csv"]);
    rmSync(fileOf("whole.csv"));
  }
  expect(during).toHaveLength(2);
  for (const seen of during) expect(seen).toEqual([expect.stringMatching(/^whole\.csv\..+\.part$/)]);
});

test("a deposit is corrected, and a second run says the same", async () => {
  const scope = { organisation_id: stage.organisationId, mode: "sandbox" } as const;
  const { id } = must(await fundBalance(ctx, MACHINE, { ...scope, amount: "700", asset: "EURC" }));
  const line = ["balances", "correct", id, "--amount", "70", "--reason", "a digit too many"];
  const corrected = await cli.run(...line);
  expect(corrected.out).toStartWith("The deposit is corrected.");
  expect(await cli.run(...line)).toEqual(corrected);
  expect(must(await showBalances(ctx, MACHINE, scope)).balances).toContainEqual({
    ...{ asset: "EURC", available: "70", held: "0", paid: "0" },
  });
  const { data } = await cli.json("deposits", "list", ...account);
  expect(data).toMatchObject([{ id, amount: "700", counts_for: "70" }, { counts_for: "5000000" }]);
});

test("a list that goes on after something that was never in it is refused, not empty", async () => {
  const other = await createStage(ctx, { mode: "sandbox", funds: "1" });
  const theirs = ["--organisation", other.organisationId, "--mode", "sandbox"];
  const { data } = await cli.json("deposits", "list", ...theirs);
  for (const list of [
    ["payouts", "list", ...account, "--status", "failed", "--starting-after", "pay_none"],
    ["payouts", "list", ...account, "--starting-after", "pay_none"],
    [
      "payouts",
      "list",
      ...theirs,
      "--status",
      "failed",
      "--starting-after",
      (await payoutsOf("failed"))[0]!.id,
    ],
    ["deposits", "list", ...account, "--starting-after", "dep_none"],
    ["deposits", "list", ...account, "--starting-after", (data as { id: string }[])[0]!.id],
  ]) {
    const refused = await cli.run(...list);
    expect([list, refused.code, refused.out]).toEqual([list, 1, ""]);
    expect(refused.err).toContain("--starting-after must be the next_cursor of an earlier page");
  }
});

test("a statement has every posting of the period, and ends with the balances", async () => {
  const all = await cli.json("statements", "export", fileOf("all.csv"), ...account);
  const { balances } = must(
    await showBalances(ctx, MACHINE, { organisation_id: stage.organisationId, mode: "sandbox" }),
  );
  expect(all.balances).toEqual(expect.arrayContaining([...balances]));
  const [header, ...rows] = linesOf("all.csv");
  expect(header).toStartWith(
    "recorded_at,asset,kind,cause_id,payee,available,held,paid,payable,submitted,available_after",
  );
  expect(all.rows).toBe(rows.length);
  const kinds = rows.map((row) => row.split(",")[2]);
  expect(new Set(kinds)).toEqual(
    new Set([
      "deposit",
      "hold",
      "settlement",
      "payout_submitted",
      "payout_paid",
      "payout_failed",
      "correction",
    ]),
  );

  ctx.clock.now += 60_000;
  const from = new Date(ctx.now()).toISOString();
  await release("acme", "7");
  ctx.clock.now += 60_000;
  const to = new Date(ctx.now()).toISOString();
  await release("acme", "8");
  const period = await cli.run(
    ...["statements", "export", fileOf("part.jsonl"), ...account, "--asset", "USDC"],
    ...["--from", from, "--to", to, "--format", "jsonl"],
  );
  expect(period.out).toStartWith(`2 postings written to ${fileOf("part.jsonl")}.`);
  const lines = linesOf("part.jsonl").map((line) => JSON.parse(line) as Record<string, string>);
  expect(lines).toMatchObject([
    { kind: "hold", payee: "acme", available: "-7", held: "7", held_after: "7", paid_after: "2000000" },
    { kind: "settlement", held: "-7", paid: "7", payable: "7", held_after: "0", paid_after: "2000007" },
  ]);
  expect(lines[0]!.cause_id).toStartWith("wrt_");
  const wrong = await cli.run("statements", "export", fileOf("x"), ...account, "--from", to, "--to", from);
  expect(wrong.err).toContain("--to must be after from");
  const none = await cli.run("statements", "export", fileOf("x"), ...account, "--asset", "usdc");
  expect(none.err).toContain("--asset must be an asset that came in, such as EURC, USDC");
  expect(existsSync(fileOf("x"))).toBe(false);
});
