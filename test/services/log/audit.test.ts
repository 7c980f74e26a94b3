import { afterEach, beforeEach, expect, test } from "bun:test";
import { refuseField } from "../../../src/core/errors.ts";
import { createTokens, newSigningKey } from "../../../src/platform/tokens.ts";
import { anchor } from "../../../src/services/log/anchor.ts";
import { auditSignatures } from "../../../src/services/log/audit.ts";
import { createTestContext, type TestContext } from "../../support/context.ts";
import { createCaller, createStage, open } from "../../support/stage.ts";

/** That the instance's keys have signed the log's checkpoints (README, "Trace"). */

let ctx: TestContext;
const [first, second] = [newSigningKey(), newSigningKey()];
beforeEach(async () => {
  ctx = createTestContext({ tokens: createTokens(first) });
  const stage = await createStage(ctx);
  await open(stage, await createCaller(stage));
});
afterEach(() => ctx.close());

const keep = (note: string) => ctx.store.keepCheckpoint({ size: 1, root: ctx.reader.log.root(1), note });

test("a ledger without checkpoints needs no keys", async () => {
  const none = {
    ...ctx.tokens,
    get jwks(): never {
      throw new Error("there is no key");
    },
  };
  expect(await auditSignatures({ ...ctx, tokens: none })).toEqual([]);
});

test("where the key is missing, that is what is said", async () => {
  await anchor(ctx);
  const none = {
    ...ctx.tokens,
    get jwks(): never {
      throw refuseField("HOLDFAST_SIGNING_KEY", "there is no key");
    },
  };
  const [said = "", ...more] = await auditSignatures({ ...ctx, tokens: none });
  expect(more).toEqual([]);
  expect(said).toStartWith(
    "the log: its signatures cannot be verified: HOLDFAST_SIGNING_KEY: there is no key",
  );
});

test("a checkpoint stays signed when its key is rotated, and not when the key is forgotten", async () => {
  await anchor(ctx);
  expect(await auditSignatures(ctx)).toEqual([]);
  const rotated = { ...ctx, tokens: createTokens(`${second}\n${first}`) };
  expect(await auditSignatures(rotated)).toEqual([]);
  const forgot = { ...ctx, tokens: createTokens(second) };
  expect(await auditSignatures(forgot)).toEqual(["checkpoint 1: no key of this instance signed it"]);
});

test.each([
  ["another digit in the signature", (note: string) => note.replace(/.{3}=\n$/, "AAA=\n")],
  ["no signature", (note: string) => note.slice(0, note.indexOf("\n\n") + 2)],
  [
    "a second signature that is wrong",
    (note: string) => `${note}${signatureLine(note).replace(/.{3}=\n$/, "AAA=\n")}`,
  ],
])("%s is named", async (_, change) => {
  // The note as it would have been signed, which is kept nowhere.
  let note = "";
  const keepCheckpoint = async (made: { readonly note: string }): Promise<boolean> => {
    note = made.note;
    return true;
  };
  await anchor({ ...ctx, store: { ...ctx.store, keepCheckpoint } });
  const changed = change(note);
  expect(changed).not.toBe(note);
  expect(await keep(changed)).toBe(true);
  expect(await auditSignatures(ctx)).toEqual(["checkpoint 1: no key of this instance signed it"]);
});

const signatureLine = (note: string): string => note.slice(note.indexOf("\n\n") + 2);
