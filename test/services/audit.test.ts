import { afterEach, beforeEach, expect, test } from "bun:test";
import { refuseField } from "../../src/core/errors.ts";
import { createTokens, newSigningKey } from "../../src/platform/tokens.ts";
import { auditInstance } from "../../src/services/audit.ts";
import type { Context } from "../../src/services/context.ts";
import { anchor } from "../../src/services/log/anchor.ts";
import { auditReceipts, RECEIPTS } from "../../src/services/warrants/audit-receipts.ts";
import { createCommandLine } from "../support/command-line.ts";
import { createTestContext, type TestContext } from "../support/context.ts";
import { buildGoodLedger } from "../support/good-ledger.ts";
import { SCRIPTED } from "../support/stage.ts";

/** What `holdfast audit` computes anew, all of it together: the ledger, what was signed, and some receipts. */

let ctx: TestContext;
beforeEach(async () => {
  ctx = createTestContext({ ...SCRIPTED, tokens: createTokens(newSigningKey()) });
  await buildGoodLedger(ctx);
  await anchor(ctx);
});
afterEach(() => ctx.close());

const unwatched = () => {};

test("a good ledger has nothing to report, and its progress rises to all that there is", async () => {
  const shown: (readonly [number, number])[] = [];
  expect(await auditInstance(ctx, RECEIPTS, (done, total) => shown.push([done, total]))).toEqual([]);
  expect(shown.length).toBeGreaterThan(5);
  const { warrants } = ctx.reader;
  const settled = warrants.someSettled(RECEIPTS).length;
  for (const [index, [done, total]] of shown.entries()) {
    expect(done).toBeGreaterThanOrEqual(shown[index - 1]?.[0] ?? 0);
    expect(done).toBeLessThanOrEqual(total);
    expect(total).toBe(shown[0]![1]);
  }
  // A table of few rows counts nothing, since it is one slice.
  const [, total] = shown[0]!;
  expect(total).toBeGreaterThan(settled);
});

test("receipts are made of settled warrants, each once", async () => {
  const { warrants } = ctx.reader;
  const states = warrants.someSettled(RECEIPTS).map((id) => warrants.find(id)!.state);
  expect(new Set(states)).toEqual(new Set(["released", "partially_released", "refunded", "expired"]));
  expect(new Set(warrants.someSettled(RECEIPTS)).size).toBe(states.length);
  expect(warrants.someSettled(2).length).toBeLessThanOrEqual(2);
  const made: number[] = [];
  const ids = warrants.someSettled(RECEIPTS);
  expect(await auditReceipts(ctx, ids, (more) => made.push(more))).toEqual([]);
  expect(made).toEqual(states.map(() => 1));
});

test("all receipts are those of every settled warrant", () => {
  const all = ctx.ledger.allRows("warrants", "settled_at IS NOT NULL");
  expect(ctx.reader.warrants.someSettled(Number.MAX_SAFE_INTEGER)).toEqual(all.map(({ id }) => id as string));
});

test("a receipt that its reader would refuse is named", async () => {
  const [first] = ctx.reader.warrants.someSettled(RECEIPTS);
  const other = createTokens(newSigningKey());
  const elsewhere: Context = { ...ctx, tokens: { ...ctx.tokens, jwks: other.jwks } };
  const found = await auditReceipts(elsewhere, ctx.reader.warrants.someSettled(RECEIPTS), unwatched);
  expect(found[0]).toStartWith(`the receipt of warrant ${first}: the signature is by the key`);
  expect(await auditInstance(elsewhere, RECEIPTS, unwatched)).toEqual([
    "checkpoint 1: no key of this instance signed it",
    ...found,
  ]);
});

test("the command line says how many receipts are made", async () => {
  const elsewhere = { ...ctx, tokens: { ...ctx.tokens, jwks: createTokens(newSigningKey()).jwks } };
  const cli = createCommandLine(elsewhere);
  const refusedOf = async (count: string) => {
    const { out } = await cli.run("audit", "--receipts", count, "--json");
    const { problems } = JSON.parse(out) as { readonly problems: readonly string[] };
    return new Set(problems.flatMap((problem) => problem.match(/^the receipt of warrant \w+/) ?? [])).size;
  };
  const settled = ctx.reader.warrants.someSettled(Number.MAX_SAFE_INTEGER).length;
  expect([await refusedOf("0"), await refusedOf("1"), await refusedOf("all")]).toEqual([0, 1, settled]);
  expect((await cli.run("audit", "--receipts", "some")).err).toContain(
    "--receipts must be a whole number, or all",
  );
});

test("where the key is missing, that is said once", async () => {
  const missing = (): never => {
    throw refuseField("HOLDFAST_SIGNING_KEY", "there is no key");
  };
  const none: Context = { ...ctx, tokens: { ...ctx.tokens, sign: missing } };
  const found = await auditReceipts(none, ctx.reader.warrants.someSettled(RECEIPTS), unwatched);
  expect(found).toEqual(["no receipt can be made: HOLDFAST_SIGNING_KEY: there is no key"]);
});
