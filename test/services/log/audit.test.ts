import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { refuseField } from "../../../src/core/errors.ts";
import { cosign, type NoteKey, parseSignedNote } from "../../../src/core/signed-note.ts";
import { type NoteSigner, noteSignerOf } from "../../../src/platform/note-keys.ts";
import { createTokens, newSigningKey } from "../../../src/platform/tokens.ts";
import type { Context } from "../../../src/services/context.ts";
import { anchor } from "../../../src/services/log/anchor.ts";
import { auditSignatures, countSignatures, signersOf } from "../../../src/services/log/audit.ts";
import { addCheckpoint } from "../../../src/services/witness/add-checkpoint.ts";
import { keepCosignature } from "../../../src/services/witness/offer.ts";
import { createTestContext, NO_WITNESSES, type TestContext } from "../../support/context.ts";
import { createCaller, createStage, open } from "../../support/stage.ts";
import { createTestLog, leavesForkedAt } from "../../support/test-log.ts";

/** That the signatures which are kept are those of their keys: of the log, its witnesses, and the logs that are witnessed (docs/security, "The audit"). */

let ctx: TestContext;
const [first, second] = [newSigningKey(), newSigningKey()];
beforeEach(async () => {
  ctx = createTestContext({ tokens: createTokens(first) });
  const stage = await createStage(ctx);
  await open(stage, await createCaller(stage));
});
afterEach(() => ctx.close());

/** What the audit says with these keys, and that it has counted as many signatures as there are. */
async function audit(of: Context): Promise<readonly string[]> {
  let counted = 0;
  const found = await auditSignatures(of.store, signersOf(of), (more) => {
    counted += more;
  });
  if (!found.some((problem) => problem.includes("cannot be verified")))
    expect(counted).toBe(await countSignatures(of.store));
  return found;
}

const keep = (note: string) => ctx.store.keepCheckpoint({ size: 1, root: ctx.reader.log.root(1), note });

test("a ledger without checkpoints needs no keys", async () => {
  const none = {
    ...ctx.tokens,
    get jwks(): never {
      throw new Error("there is no key");
    },
  };
  expect(await audit({ ...ctx, tokens: none })).toEqual([]);
});

test("where the key is missing, that is what is said", async () => {
  await anchor(ctx);
  const none = {
    ...ctx.tokens,
    get jwks(): never {
      throw refuseField("HOLDFAST_SIGNING_KEY", "there is no key");
    },
  };
  const [said = "", ...more] = await audit({ ...ctx, tokens: none });
  expect(more).toEqual([]);
  expect(said).toStartWith(
    "the log: its signatures cannot be verified: HOLDFAST_SIGNING_KEY: there is no key",
  );
});

test("a checkpoint stays signed when its key is rotated, and not when the key is forgotten", async () => {
  await anchor(ctx);
  expect(await audit(ctx)).toEqual([]);
  const rotated = { ...ctx, tokens: createTokens(`${second}\n${first}`) };
  expect(await audit(rotated)).toEqual([]);
  const forgot = { ...ctx, tokens: createTokens(second) };
  expect(await audit(forgot)).toEqual(["checkpoint 1: no key of this instance signed it"]);
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
  expect(await audit(ctx)).toEqual(["checkpoint 1: no key of this instance signed it"]);
});

const signatureLine = (note: string): string => note.slice(note.indexOf("\n\n") + 2);

describe("the signature of a witness", () => {
  const signer = noteSignerOf("w.example", "cosignature", new Uint8Array(32).fill(9));
  const other = noteSignerOf("w.example", "cosignature", new Uint8Array(32).fill(8));
  const knowing = (...keys: readonly NoteKey[]): Context => ({
    ...ctx,
    witness: { ...NO_WITNESSES, witnesses: keys.map((key) => ({ key, url: "https://w.example" })) },
  });
  /** Keeps the signature of a text under a size. */
  async function keepSigned(by: NoteSigner, size: number, text: string, name = "w.example"): Promise<void> {
    await keepCosignature(ctx, name, size, await cosign(text, by.key, 1_700_000_000, by.sign));
  }
  const signed = () => parseSignedNote(ctx.reader.log.newestCheckpoint()!.note)!.text;

  test("is verified with the key that is configured", async () => {
    await anchor(ctx);
    await keepSigned(signer, 1, signed());
    expect(await audit(knowing(signer.key))).toEqual([]);
  });

  const UNLIKE = "it is not the signature of its key on that checkpoint";
  const forger = { ...other, key: { ...other.key, id: signer.key.id } };
  const altered = () => signed().replace("\n1\n", "\n2\n");
  const FORGED: readonly (readonly [string, () => Promise<void>, string])[] = [
    ["of another text", () => keepSigned(signer, 1, altered()), `w.example at 1: ${UNLIKE}`],
    ["by a key that only says its id", () => keepSigned(forger, 1, signed()), `w.example at 1: ${UNLIKE}`],
    [
      "under another name",
      () => keepSigned(signer, 1, signed(), "v.example"),
      "v.example at 1: it is not one signature of that name",
    ],
  ];
  test.each(FORGED)("%s is named", async (_, forge, problem) => {
    await anchor(ctx);
    await forge();
    expect(await audit(knowing(signer.key))).toEqual([`the signature of the witness ${problem}`]);
  });

  test("cannot be verified where its key is not known, and is not held against it", async () => {
    await anchor(ctx);
    await keepSigned(signer, 1, "another text\n");
    expect(await audit(knowing())).toEqual([]);
    // A witness that was restored has a new key under its old name.
    expect(await audit(knowing(other.key))).toEqual([]);
  });
});

describe("a log that this instance witnesses", () => {
  const origin = "log.example";
  const log = createTestLog(origin, leavesForkedAt(9, 9, ""));
  const forged = createTestLog(origin, leavesForkedAt(0, 9, "other"));
  const witnessing = (...keys: readonly NoteKey[]): Context => ({
    ...ctx,
    witness: { ...NO_WITNESSES, logs: keys.length === 0 ? [] : [{ origin, keys }] },
  });

  test("has signed what is kept of it", async () => {
    const witness = witnessing(log.key);
    expect(await addCheckpoint(witness, await log.offer(0, 5))).toMatchObject({ lines: expect.any(String) });
    expect(await audit(witness)).toEqual([]);
    const row = ctx.reader.witnessedLogs.get(origin)!;
    const change = (note: string) =>
      ctx.store.execute({
        scope: null,
        needs: { witnessedLog: origin },
        decide: ({ witnessedLog: before }) => ({
          answer: null,
          change: { put: [{ kind: "witnessedLog", before, row: { ...row, note } }] },
        }),
      });
    await change((await forged.note(5)).replace(/— .*/, row.note.split("\n\n")[1]!.trim()));
    expect(await audit(witness)).toEqual([`the witnessed log ${origin}: no key of that log signed its note`]);
    expect(await audit(witnessing())).toEqual([]);
    await change("nothing");
    expect(await audit(witness)).toEqual([`the witnessed log ${origin}: its note is not a checkpoint of it`]);
  });
});
