import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { sha256 } from "../../../src/core/canonical.ts";
import { isRefusal } from "../../../src/core/errors.ts";
import { logNameOf } from "../../../src/core/log.ts";
import { parseSignedNote } from "../../../src/core/signed-note.ts";
import { checkProof, proofText, type SolvencyProof } from "../../../src/core/solvency/proof.ts";
import { parseStatement, type Statement, statementText } from "../../../src/core/solvency/statement.ts";
import { MINUTE_MS } from "../../../src/core/time.ts";
import type { Treasury } from "../../../src/core/treasury.ts";
import { chainOfMode } from "../../../src/core/x402/chains.ts";
import { statementsJob } from "../../../src/jobs/solvency.ts";
import { MACHINE } from "../../../src/services/admin/authority.ts";
import { fundBalance } from "../../../src/services/admin/balances.ts";
import { failPayoutOf, markPaid, submitPayouts } from "../../../src/services/admin/payouts.ts";
import { anchor, signedNoteOf } from "../../../src/services/log/anchor.ts";
import { fromOneSnapshot } from "../../../src/services/one-snapshot.ts";
import { auditNewestStatements } from "../../../src/services/solvency/audit.ts";
import { proveSolvency } from "../../../src/services/solvency/prove.ts";
import { listStatements } from "../../../src/services/solvency/read.ts";
import { signStatement } from "../../../src/services/solvency/sign.ts";
import { createTestContext, type TestContext } from "../../support/context.ts";
import { createStage, must, open, type Stage, settle, warrantIn } from "../../support/stage.ts";

let ctx: TestContext;
let stage: Stage;
beforeEach(async () => {
  ctx = createTestContext();
  stage = await createStage(ctx, { funds: "10000" });
});
afterEach(() => ctx.close());

const owe = async (payee: string, amount: string): Promise<void> => {
  const { id } = warrantIn(await open(stage, stage.operator, { payee, amount }));
  must(await settle(stage, stage.operator, id, "release"));
};

const mine = () => ({ organisation_id: stage.organisationId, mode: "live" }) as const;
const prove = async (
  asked: { payee?: string; statement?: number; asset?: string } = {},
): Promise<SolvencyProof> => must(await proveSolvency(ctx, MACHINE, { ...mine(), ...asked }));
const problems = async (proof: SolvencyProof) =>
  (await checkProof(proofText(proof), ctx.tokens.jwks)).problems;

test("a statement says what is owed, and each creditor finds its part in it", async () => {
  await owe("acme", "300");
  await owe("other", "20");
  must(await submitPayouts(ctx, MACHINE, { ...mine(), payee: "acme" }));
  await open(stage, stage.operator, { payee: "later", amount: "7" });
  must(await signStatement(ctx));
  const listed = must(await listStatements(ctx, MACHINE, {}));
  expect(listed.data).toMatchObject([
    {
      number: 1,
      leaf_index: expect.any(Number),
      checkpoint: 1,
      left_out: 0,
      assets: [
        {
          ...{ mode: "live", asset: "USDC", owed: "10000", available: "9673", held: "7" },
          ...{ payable: "20", submitted: "300", leaves: 3, holding: null },
        },
      ],
    },
  ]);
  for (const [payee, amount] of [
    [undefined, "9680"],
    ["acme", "300"],
    ["other", "20"],
  ] as const) {
    const proof = await prove(payee === undefined ? {} : { payee });
    expect(proof.entries.map(({ leaf }) => [leaf.payee, leaf.amount])).toEqual([[payee ?? null, amount]]);
    expect(await problems(proof)).toEqual([]);
  }
});

test("what moves later changes no earlier statement", async () => {
  await owe("acme", "300");
  must(await signStatement(ctx));
  const before = await prove({ payee: "acme" });
  const organisation = await prove();
  const [payout] = must(await submitPayouts(ctx, MACHINE, { ...mine(), payee: "acme" })).data;
  must(await markPaid(ctx, MACHINE, { payout_id: payout?.id ?? "", reference: "wire" }));
  must(await failPayoutOf(ctx, MACHINE, { payout_id: payout?.id ?? "", reason: "closed", returned: true }));
  await owe("acme", "50");
  await owe("new", "60");
  must(await signStatement(ctx));
  expect(await prove({ payee: "acme", statement: 1 })).toEqual(before);
  expect(await prove({ statement: 1 })).toEqual(organisation);
  const after = await prove({ payee: "acme" });
  expect(after.entries.map(({ leaf }) => leaf.amount)).toEqual(["350"]);
  expect(await problems(after)).toEqual([]);
  expect(after.entries[0]!.leaf.salt).not.toBe(before.entries[0]!.leaf.salt);
  expect(await proveSolvency(ctx, MACHINE, { ...mine(), payee: "new", statement: 1 })).toMatchObject({
    refused: "statement_not_found",
  });
});

/** Every value in a JSON document, and how to put another one in its place. */
function* placesIn(
  value: unknown,
  put: (to: unknown) => unknown,
): Generator<[unknown, (to: unknown) => unknown]> {
  yield [value, put];
  if (typeof value !== "object" || value === null) return;
  for (const [name, one] of Object.entries(value))
    yield* placesIn(one, (to) => {
      const copy = structuredClone(value) as Record<string, unknown>;
      copy[name] = to;
      return put(copy);
    });
}

const otherThan = (value: unknown): readonly unknown[] => {
  if (typeof value === "string") return [`${value}0`, value.slice(1), "", "0", null, 7];
  if (typeof value === "number") return [value + 1, value - 1, String(value), null];
  if (value === null) return ["", 0];
  return Array.isArray(value) ? [[], value.toReversed().concat(value), {}, null] : [{}, [], null];
};

test("a proof of which any field is changed, missing or too much does not hold", async () => {
  for (let index = 0; index < 6; index++) await owe(`payee ${index}`, `${10 + index}`);
  must(await signStatement(ctx));
  const proof = await prove({ payee: "payee 3" });
  expect(proof.entries[0]!.path.length).toBeGreaterThan(1);
  expect(await problems(proof)).toEqual([]);
  const holding: string[] = [];
  for (const [value, put] of placesIn(proof, (to) => to)) {
    const others = otherThan(value).map(put);
    if (typeof value === "object" && value !== null && !Array.isArray(value)) {
      others.push(put({ ...value, more: 1 }));
      for (const name of Object.keys(value)) {
        const { [name]: _, ...less } = value as Record<string, unknown>;
        others.push(put(less));
      }
    }
    for (const other of others)
      if ((await problems(other as SolvencyProof)).length === 0) holding.push(JSON.stringify(other));
  }
  expect(holding).toEqual([]);
});

test("a proof of which any byte is changed does not hold", async () => {
  await owe("acme", "300");
  must(await signStatement(ctx));
  const bytes = new TextEncoder().encode(proofText(await prove({ payee: "acme" })));
  const holding: number[] = [];
  for (let at = 0; at < bytes.length; at++) {
    const changed = bytes.slice();
    changed[at] = changed[at]! ^ (1 + (at % 7));
    const { problems } = await checkProof(new TextDecoder().decode(changed), ctx.tokens.jwks);
    if (problems.length === 0) holding.push(at);
  }
  expect(holding).toEqual([]);
});

test("a proof does not hold with the keys of another instance", async () => {
  must(await signStatement(ctx));
  const other = createTestContext();
  const proof = proofText(await prove());
  expect((await checkProof(proof, other.tokens.jwks)).problems).not.toEqual([]);
  expect((await checkProof(proof, { keys: [] })).problems).not.toEqual([]);
  await other.close();
});

test("a statement leaves assets out where there are too many, those of the sandbox first, and none that a wallet holds", async () => {
  const treasury: Treasury = {
    ...{
      mode: "sandbox",
      chainId: chainOfMode("sandbox", 84_532)!,
      token: "0x1",
      asset: "ZZZ",
      address: "0x2",
    },
    limits: { payoutMax: 0n, dayMax: 0n },
  };
  for (let index = 0; index < 260; index++)
    must(
      await fundBalance(ctx, MACHINE, {
        ...{ organisation_id: stage.organisationId, mode: index < 5 ? "live" : "sandbox" },
        ...{ asset: `A${index}`, amount: "1" },
      }),
    );
  must(await signStatement({ ...ctx, treasuries: [treasury] }));
  const [{ assets, left_out } = { assets: [], left_out: 0 }] = must(
    await listStatements(ctx, MACHINE, {}),
  ).data;
  expect([assets.length, left_out]).toEqual([256, 6]);
  expect(assets.filter(({ mode }) => mode === "live")).toHaveLength(6);
  expect(assets.at(-1)).toMatchObject({
    ...{ asset: "ZZZ", owed: "0", leaves: 0 },
    holding: {
      chain: "eip155:84532",
      token: "0x1",
      address: "0x2",
      balance: null,
      block: null,
      block_hash: null,
    },
  });
  expect(assets.some(({ asset }) => asset === "A99")).toBeFalse();
  expect(await auditNewestStatements(ctx)).toEqual([]);
});

test("of people who ask at once one gets a proof, and the others are told to ask again, each with a snapshot of their own", async () => {
  must(await signStatement(ctx));
  const ask = () => fromOneSnapshot(ctx, (reading) => proveSolvency(reading, MACHINE, mine()));
  const refused = (await Promise.all(Array.from({ length: 8 }, ask))).filter(isRefusal);
  expect(refused.map((one) => one.refused)).toEqual(Array(7).fill("rate_limit_exceeded"));
  expect(isRefusal(await ask())).toBeFalse();
});

test("an organisation that keeps asking gives way to another one that was refused, for a minute", async () => {
  const other = await createStage(ctx);
  must(await signStatement(ctx));
  const ask = () => proveSolvency(ctx, MACHINE, mine());
  const askOther = () => proveSolvency(ctx, MACHINE, { organisation_id: other.organisationId, mode: "live" });
  expect((await Promise.all([ask(), ask()])).map(isRefusal)).toEqual([false, true]);
  const [first, refused] = await Promise.all([ask(), askOther()]);
  expect(isRefusal(first)).toBeFalse();
  expect(refused).toMatchObject({ refused: "rate_limit_exceeded" });
  ctx.clock.now += MINUTE_MS - 1;
  expect(await ask()).toMatchObject({
    ...{ refused: "rate_limit_exceeded", message: expect.stringContaining("another organisation's turn") },
  });
  expect(isRefusal(await askOther())).toBeFalse();
  // Nobody was refused while that one was made, so the same organisation may go on.
  expect(isRefusal(await askOther())).toBeFalse();
  ctx.clock.now += 1;
  expect(isRefusal(await ask())).toBeFalse();
});

test("two processes that sign at once sign two statements, and the log has both", async () => {
  const [one, other] = await Promise.all([signStatement(ctx), signStatement(ctx)]);
  expect([must(one).number, must(other).number].sort()).toEqual([1, 2]);
  const { data } = must(await listStatements(ctx, MACHINE, {}));
  expect(data.every(({ checkpoint }) => checkpoint !== null)).toBeTrue();
});

test("the job signs where the newest statement is older than it may be, and not before", async () => {
  const job = statementsJob(24);
  const count = async () => must(await listStatements(ctx, MACHINE, {})).data.length;
  await job(ctx);
  await job(ctx);
  expect(await count()).toBe(1);
  ctx.clock.now += 24 * 3_600_000 - 1;
  await job(ctx);
  expect(await count()).toBe(1);
  ctx.clock.now += 1;
  await job(ctx);
  expect(await count()).toBe(2);
});

describe("an instance that signs what is not so, and puts it into its log, is found out by each creditor:", () => {
  /** The proof in a statement that the instance made otherwise. */
  async function proofIn(change: (statement: Statement) => Statement, lines = ""): Promise<SolvencyProof> {
    await owe("acme", "300");
    const { note: honest, seed } = must(await signStatement(ctx));
    const statement = parseStatement(parseSignedNote(honest)!.text)!;
    const text = statementText({ ...change(statement), number: 2 });
    const note = (await signedNoteOf(ctx.tokens, logNameOf(statement.instanceId), text)) + lines;
    expect(await ctx.store.keepStatement({ number: 2, note, seed, entryHash: sha256(note) })).toBeTrue();
    await anchor(ctx);
    return prove({ payee: "acme", statement: 2 });
  }
  const owing = (available: bigint) => (statement: Statement) => ({
    ...statement,
    assets: statement.assets.map((asset) => ({ ...asset, owed: { ...asset.owed, available } })),
  });

  test("the same statement under another number holds", async () => {
    expect(await problems(await proofIn((statement) => statement))).toEqual([]);
  });

  test("less in all than the root says", async () => {
    expect(await problems(await proofIn(owing(1n)))).toEqual([
      "entries[0] does not lead to the root of live USDC, or not to its sum",
    ]);
  });

  test("a signature line more", async () => {
    const proof = await proofIn((statement) => statement, "— other AAAAAAAA\n");
    expect(await problems(proof)).toEqual([
      `statement is not signed by the key ${JSON.stringify(proof.kid)} and by no other`,
    ]);
  });
});
