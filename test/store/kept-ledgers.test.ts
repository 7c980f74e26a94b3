import { expect } from "bun:test";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openLedger } from "../../src/store/sqlite/open.ts";
import { createTestContext } from "../support/context.ts";
import { onlyEmbedded } from "../support/only-embedded.ts";
import { SCRIPTED } from "../support/stage.ts";
import { type KeptLedger, replayAll, showAll } from "./ledgers/kept-ledger.ts";

const { describe, test } = onlyEmbedded(import.meta.path);

/** Ledgers that earlier versions wrote. Each is opened, brought up to date, and says the same as ever. */
const FOLDER = join(import.meta.dir, "ledgers");
const VERSIONS = readdirSync(FOLDER).flatMap((name) => /^(.+)\.db\.gz$/.exec(name)?.[1] ?? []);

test("the ledger of the first version that keeps its tables is among them", () => {
  expect(VERSIONS).toContain("0.1.0");
});

test("what 0.1.0 released is owed to its payees from now on, but for what a wallet has paid", () => {
  const folder = mkdtempSync(join(tmpdir(), "holdfast-owed-"));
  writeFileSync(join(folder, "holdfast.db"), Bun.gunzipSync(readFileSync(join(FOLDER, "0.1.0.db.gz"))));
  const { raw } = openLedger(folder, "0.1.0", () => ({ id: "ins_none", createdAt: 0 }));
  const payees = raw
    .query(
      `SELECT mode, asset, payee, payees.payable, payees.submitted, paid_out FROM payees
       JOIN accounts ON accounts.position = account JOIN scopes ON scopes.position = scope ORDER BY payees.position`,
    )
    .values();
  const accounts = raw
    .query("SELECT payable, submitted FROM accounts WHERE paid > 0 ORDER BY position")
    .values();
  raw.close();
  rmSync(folder, { recursive: true });
  const EXACT = "0x00000000000000000000000000000000000000A1";
  expect(payees).toEqual([
    ["sandbox", "USDC", "acme", 100n, 0n, 0n],
    ["sandbox", "USDC", EXACT, 0n, 0n, 100n],
    ["live", "USDC", "acme", 290n, 0n, 0n],
    ["live", "HUGE", "acme", 1n, 0n, 0n],
    ["sandbox", "USDC", "acme", 100n, 0n, 0n],
  ]);
  expect(accounts).toEqual([
    [100n, 0n],
    [290n, 0n],
    [1n, 0n],
    [100n, 0n],
  ]);
});

describe.each(VERSIONS)("a ledger that %s wrote", (version) => {
  test("agrees with itself, answers every replay to the byte, and shows what it showed", async () => {
    const kept = JSON.parse(readFileSync(join(FOLDER, `${version}.json`), "utf8")) as KeptLedger;
    const folder = join(mkdtempSync(join(tmpdir(), "holdfast-kept-")), "data");
    mkdirSync(folder);
    const file = readFileSync(join(FOLDER, `${version}.db.gz`));
    writeFileSync(join(folder, "holdfast.db"), Bun.gunzipSync(file));
    const ctx = createTestContext(SCRIPTED, folder);
    ctx.clock.now += 60_000;
    expect(await ctx.store.audit()).toEqual([]);
    expect(await replayAll(ctx, kept.requests)).toEqual(kept.answers);
    expect(await showAll(ctx, kept.requests)).toEqual([...kept.shown]);
    await ctx.close();
  });
});
