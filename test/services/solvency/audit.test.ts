import { afterEach, beforeEach, expect, test } from "bun:test";
import { sha256 } from "../../../src/core/canonical.ts";
import { logNameOf } from "../../../src/core/log.ts";
import { parseSignedNote } from "../../../src/core/signed-note.ts";
import { parseStatement, type Statement, statementText } from "../../../src/core/solvency/statement.ts";
import { createTokens, newSigningKey } from "../../../src/platform/tokens.ts";
import { anchor, signedNoteOf } from "../../../src/services/log/anchor.ts";
import { auditSignatures, signersOf } from "../../../src/services/log/audit.ts";
import { auditNewestStatements } from "../../../src/services/solvency/audit.ts";
import { signStatement } from "../../../src/services/solvency/sign.ts";
import { createTestContext, type TestContext } from "../../support/context.ts";
import { createStage, must, open, settle, warrantIn } from "../../support/stage.ts";

/** What `holdfast audit` says of statements: those that say something else than the ledger, though they are signed and in the log. */

let ctx: TestContext;
let signed: Statement;
let seed: string;
/** What the ledger's own audit says at the end. */
let planted: RegExp | undefined;
beforeEach(async () => {
  planted = undefined;
  ctx = createTestContext();
  const stage = await createStage(ctx, { funds: "1000" });
  for (const payee of ["acme", "other"]) {
    const { id } = warrantIn(await open(stage, stage.operator, { payee, amount: "10" }));
    must(await settle(stage, stage.operator, id, "release"));
  }
  const kept = must(await signStatement(ctx));
  seed = kept.seed;
  signed = parseStatement(parseSignedNote(kept.note)!.text)!;
});
afterEach(() => ctx.close(planted));

/** Keeps a statement as a buggy or dishonest signer would have made it, and puts it into the log. */
async function keep(changed: Partial<Statement>, tokens = ctx.tokens): Promise<void> {
  const text = statementText({ ...signed, number: 2, ...changed });
  const note = await signedNoteOf(tokens, logNameOf(signed.instanceId), text);
  expect(await ctx.store.keepStatement({ number: 2, note, seed, entryHash: sha256(note) })).toBeTrue();
  await anchor(ctx);
}

const [asset] = [() => signed.assets[0]!];
const withAsset = (changed: Partial<Statement["assets"][number]>) => ({
  assets: [{ ...asset(), ...changed }],
});

test("a statement that is right, also of before the newest postings, disagrees with nothing", async () => {
  await keep({});
  expect(await auditNewestStatements(ctx)).toEqual([]);
  expect(await ctx.store.audit()).toEqual([]);
});

const WRONG: readonly (readonly [what: string, () => Partial<Statement>, RegExp])[] = [
  [
    "less owed",
    () => withAsset({ owed: { ...asset().owed, payable: 19n } }),
    /^statement 2: of live USDC payable was 20, and it says 19$/,
  ],
  [
    "another root",
    () => withAsset({ root: "0".repeat(64) }),
    /^statement 2: of live USDC its root is not that/,
  ],
  [
    "fewer creditors",
    () => withAsset({ leaves: 2 }),
    /^statement 2: of live USDC something was owed to 3, and it says 2$/,
  ],
  ["an asset left out", () => ({ assets: [] }), /^statement 2: leaves out 1 assets, and says 0$/],
  [
    "an asset that nothing is owed of",
    () => ({ leftOut: 1 }),
    /^statement 2: leaves out 0 assets, and says 1$/,
  ],
  [
    "a posting that is not there",
    () => ({ posting: 99_999 }),
    /^statement 2: is at the posting 99999, and the ledger has \d+$/,
  ],
  [
    "an earlier posting",
    () => ({ posting: signed.posting - 1 }),
    /^statement 2: of live USDC held was 10, and it says 0$/,
  ],
  ["another number", () => ({ number: 3 }), /^statement 2: is the statement 3 of /],
  ["another instance", () => ({ instanceId: "ins_other" }), /^statement 2: is the statement 2 of ins_other$/],
];
test.each(WRONG)("a statement with %s is named", async (_, changed, problem) => {
  await keep(changed());
  const problems = await auditNewestStatements(ctx);
  expect(problems[0]).toMatch(problem);
});

test("a statement that another key signed is named", async () => {
  await keep({}, createTokens(newSigningKey()));
  expect(await auditSignatures(ctx.store, signersOf(ctx), () => {})).toEqual([
    "statement 2: no key of this instance signed it",
  ]);
});

test("payees that do not add up to their accounts are named, and nothing is signed over them", async () => {
  ctx.ledger.unguarded(() => {
    ctx.ledger.change("UPDATE payees SET payable = payable - 1 WHERE payee = 'acme'");
  });
  planted = /payee/;
  const problem = "the payees of live USDC do not sum up to what their accounts say; run holdfast audit";
  expect(await auditNewestStatements(ctx)).toEqual([`statement 1: ${problem}`]);
  await expect(signStatement(ctx)).rejects.toThrow(problem);
});
