import { describe, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createTestContext } from "../support/context.ts";
import { SCRIPTED } from "../support/stage.ts";
import { type KeptLedger, replayAll, showAll } from "./ledgers/kept-ledger.ts";

/** Ledgers that earlier versions wrote. Each is opened, brought up to date, and says the same as ever. */
const FOLDER = join(import.meta.dir, "ledgers");
const VERSIONS = readdirSync(FOLDER).flatMap((name) => /^(.+)\.db\.gz$/.exec(name)?.[1] ?? []);

test("the ledger of the first version that keeps its tables is among them", () => {
  expect(VERSIONS).toContain("0.1.0");
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
