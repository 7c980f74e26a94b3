import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { formatCheckpoint } from "../../../src/core/checkpoint.ts";
import { logNameOf } from "../../../src/core/log.ts";
import { leafHash, verifyInclusion } from "../../../src/core/merkle.ts";
import { cosign, formatSignedNote, signText } from "../../../src/core/signed-note.ts";
import { formatAddCheckpoint, type Witness } from "../../../src/core/witness.ts";
import { noteSignerOf } from "../../../src/platform/note-keys.ts";
import type { WitnessAnswer } from "../../../src/platform/witness-client.ts";
import { anchor, logKeysOf } from "../../../src/services/log/anchor.ts";
import { readAnchor, readCheckpoint } from "../../../src/services/log/read.ts";
import { addCheckpoint } from "../../../src/services/witness/add-checkpoint.ts";
import { auditByWitness } from "../../../src/services/witness/audit.ts";
import { keepCosignature, offerCheckpoint } from "../../../src/services/witness/offer.ts";
import { ownLogOf } from "../../../src/services/witness/own-log.ts";
import { readWitnessed } from "../../../src/services/witness/read.ts";
import { showWitness } from "../../../src/services/witness/show.ts";
import { createTestContext, NO_WITNESSES, type TestContext } from "../../support/context.ts";
import { must } from "../../support/organisations.ts";
import { createCaller, createStage, open, SCRIPTED, type Stage } from "../../support/stage.ts";

const signer = noteSignerOf("holdfast/ins_w/witness", "cosignature", new Uint8Array(32).fill(9));
const URL = "https://w.example/witness";
const witness: Witness = { key: signer.key, url: URL };

let mine: TestContext;
let theirs: TestContext;
let stage: Stage;
/** Whether the witness shows what it has signed, as a Holdfast does. */
let shows: boolean;
let instead: WitnessAnswer | null;
beforeEach(async () => {
  [shows, instead] = [true, null];
  mine = createTestContext({
    ...SCRIPTED,
    witness: {
      ...NO_WITNESSES,
      witnesses: [witness],
      async ask(url, body): Promise<WitnessAnswer> {
        if (instead) return instead;
        if (body === undefined) {
          if (!shows) return { status: 404, text: "" };
          const note = await readWitnessed(theirs, decodeURIComponent(url.split("origin=")[1]!));
          return typeof note === "string" ? { status: 200, text: note } : { status: 404, text: "" };
        }
        const added = await addCheckpoint(theirs, body);
        if (added === "unproved") return { status: 422, text: "" };
        if ("refused" in added) return { status: 404, text: "" };
        return "stands" in added
          ? { status: 409, text: `${added.stands}\n` }
          : { status: 200, text: added.lines };
      },
    },
  });
  stage = await createStage(mine, { mode: "sandbox" });
  const { origin, keys } = await ownLogOf(mine);
  theirs = createTestContext({
    witness: { ...NO_WITNESSES, logs: [{ origin, keys }], signer: async () => signer },
  });
});
afterEach(async () => {
  await mine.close(/: no checkpoint has this size$/);
  await theirs.close();
});

/** Adds entries to the log, and signs a checkpoint; its size. */
async function grow(entries: number): Promise<number> {
  const caller = await createCaller(stage);
  for (let count = 0; count < entries; count++) await open(stage, caller);
  await anchor(mine);
  return (await ownLogOf(mine)).size();
}

/** The newest checkpoint is signed by the witness, and the signature is kept. */
async function cosigned(): Promise<void> {
  const log = await ownLogOf(mine);
  const newest = (await log.newest())!;
  const offered = await offerCheckpoint(mine, log, witness, newest, 0);
  if (offered.outcome !== "cosigned") throw new Error(offered.outcome);
  await keepCosignature(mine, witness.key.name, newest.size, offered.line);
}

/** The witness gets a checkpoint that this log signed, of a tree that it never had. */
async function showOtherLog(size: number): Promise<void> {
  const { id } = mine.reader.instance.get();
  const origin = logNameOf(id);
  const text = formatCheckpoint({ origin, size, root: new Uint8Array(32).fill(1), extensions: [] });
  const [key] = logKeysOf(origin, mine.tokens);
  const note = formatSignedNote({ text, lines: [await signText(text, key!, mine.tokens.signBytes)] });
  must((await addCheckpoint(theirs, formatAddCheckpoint(0, [], note))) as { lines: string });
}

const audit = async (named = URL) => must(await auditByWitness(mine, named));

describe("a log that its witness knows", () => {
  test("agrees, by the witness's name or its URL, whether or not it shows what it signed", async () => {
    await grow(2);
    await cosigned();
    const size = await grow(3);
    expect(await audit(signer.key.name)).toMatchObject({ size: 2, agrees_to: 2, problem: null });
    expect(await audit(`${URL}/`)).toMatchObject({ witness: signer.key.name, size: 2, problem: null });
    shows = false;
    expect(await audit()).toMatchObject({ size, agrees_to: size, problem: null });
  });

  test("shows the signatures in its checkpoint, and to others what they need", async () => {
    await grow(1);
    await cosigned();
    expect((await readCheckpoint(mine))?.split("\n\u2014 ")).toHaveLength(3);
    const shown = await showWitness(mine);
    expect(shown.witness).toContain("=http://localhost:8080/.well-known/holdfast/witness");
    expect(shown.log).toHaveLength(1);
    const { witnessed } = await showWitness(theirs);
    expect(witnessed).toMatchObject([{ origin: expect.stringMatching(/^holdfast\/ins_/), size: 1 }]);
  });
});

describe("the proof that an entry is in the log", () => {
  const proofAt = (leafIndex: number) =>
    mine.store.read((reader) => readAnchor(mine, reader, { leafIndex, checkpoint: 1 }));
  const holds = async (leafIndex: number, size: number, lines: number) => {
    const found = (await proofAt(leafIndex))!;
    expect([found.size, found.note.split("\n\u2014 ").length - 1, found.chainRef?.endsWith("#1")]).toEqual([
      size,
      lines,
      true,
    ]);
    expect(found.note).toStartWith(`${(await ownLogOf(mine)).origin}\n${size}\n`);
    const leaf = leafHash((await mine.store.read(({ log }) => log.entryHashes(leafIndex, 1)))[0]!);
    expect(verifyInclusion({ index: leafIndex, leaf, ...found })).toBeTrue();
  };

  test("is at the first checkpoint that a witness signed, else at the first that covers it", async () => {
    await grow(2);
    await holds(1, 2, 1);
    await grow(2);
    await cosigned();
    await holds(1, 4, 2);
    await grow(1);
    await cosigned();
    await holds(1, 4, 2);
    await holds(4, 5, 2);
    await grow(1);
    await holds(5, 6, 1);
  });

  test("is at the first that all witnesses signed, where one was away for a while", async () => {
    const [a, b] = ["a", "b"].map((name, index) =>
      noteSignerOf(name, "cosignature", new Uint8Array(32).fill(20 + index)),
    );
    const both = [a!, b!].map(({ key }) => ({ key, url: URL }));
    const sign = async (size: number, ...names: string[]) => {
      const line = { name: "any", id: "00000000", signature: new Uint8Array(72) };
      for (const name of names) await keepCosignature(mine, name, size, line);
    };
    const sizeAt = async (leafIndex: number, witnesses: readonly Witness[]) => {
      const ctx = { ...mine, witness: { ...mine.witness, witnesses } };
      const found = await mine.store.read((reader) => readAnchor(ctx, reader, { leafIndex, checkpoint: 1 }));
      return found?.size;
    };
    for (let size = 1; size <= 6; size++) await grow(1);
    await sign(1, "former");
    await sign(2, "a");
    await sign(3, "b", "former", "other");
    expect(await sizeAt(0, both)).toBe(2);
    // Those of former witnesses are better than none.
    expect([await sizeAt(0, []), await sizeAt(2, [both[0]!])]).toEqual([1, 3]);
    await sign(4, "a", "b");
    await sign(5, "a", "b");
    await sign(6, "a");
    expect([await sizeAt(0, both), await sizeAt(3, both), await sizeAt(4, both)]).toEqual([4, 4, 5]);
    expect([await sizeAt(5, both), await sizeAt(0, both.slice(1))]).toEqual([6, 3]);
  });

  test("looks no further than a thousand signatures", async () => {
    const keep = (name: string, size: number) =>
      keepCosignature(mine, name, size, { name, id: "00000000", signature: new Uint8Array(72) });
    await Promise.all(Array.from({ length: 1_001 }, (_, index) => keep("a", index + 1)));
    await keep("a", 1_002);
    await keep("b", 1_002);
    const { bestSize } = mine.reader.cosignatures;
    expect([bestSize(1, ["a", "b"]), bestSize(2, ["a", "b"])]).toEqual([1, 1_002]);
  });
});

describe("a witness that has signed another log", () => {
  test("of more leaves: the log was cut", async () => {
    await grow(2);
    await showOtherLog(5);
    for (shows of [true, false]) {
      const { size, agrees_to, problem } = await audit();
      expect([size, agrees_to]).toEqual([5, 0]);
      expect(problem).toContain("has signed this log at 5 leaves, and it has only 2 here");
    }
  });

  test("of as many or fewer leaves: the log was rewritten, above what it signed before", async () => {
    await grow(3);
    await showOtherLog(3);
    for (shows of [true, false]) {
      expect((await audit()).problem).toEndWith(
        "has signed another log at 3 leaves: this one was rewritten; of no earlier size is its signature kept here, so they part between the leaves 0 and 3",
      );
    }
    // What it has signed before, and is kept here.
    const log = await ownLogOf(mine);
    for (const at of [1, 2]) {
      const text = formatCheckpoint({
        origin: log.origin,
        size: at,
        root: at === 1 ? await log.root(1) : new Uint8Array(32),
        extensions: [],
      });
      const line = await cosign(text, signer.key, 1, signer.sign);
      await keepCosignature(mine, signer.key.name, at, line);
    }
    shows = true;
    expect(await audit()).toMatchObject({ size: 3, agrees_to: 1 });
  });
});

test("among very many signatures the largest that fits is found", async () => {
  const [few, many] = [2, 230];
  for (let size = 0; size < few; size++) {
    await grow(1);
    await cosigned();
  }
  const line = { name: signer.key.name, id: signer.key.id, signature: new Uint8Array(72) };
  const rewritten = Array.from({ length: many - few }, (_, index) => few + 1 + index);
  await Promise.all(rewritten.map((size) => keepCosignature(mine, signer.key.name, size, line)));
  const { id } = mine.reader.instance.get();
  const text = formatCheckpoint({
    ...{ origin: logNameOf(id), size: many + 1, root: new Uint8Array(32), extensions: [] },
  });
  const lines = [await cosign(text, signer.key, 1, signer.sign)];
  instead = { status: 200, text: formatSignedNote({ text, lines }) };
  expect(await audit()).toMatchObject({ size: many + 1, agrees_to: few });
});

test("what the witness signed with a former key does not hide what it signed with its key", async () => {
  const former = noteSignerOf(signer.key.name, "cosignature", new Uint8Array(32).fill(8));
  const log = await ownLogOf(mine);
  for (const by of [former, signer]) {
    const size = await grow(1);
    const text = formatCheckpoint({ origin: log.origin, size, root: await log.root(size), extensions: [] });
    await keepCosignature(mine, signer.key.name, size, await cosign(text, by.key, 1, by.sign));
  }
  await grow(1);
  await showOtherLog(3);
  expect(await audit()).toMatchObject({ size: 3, agrees_to: 2 });
});

describe("a witness that has forgotten what it signed", () => {
  /** The witness as it was before it signed anything. */
  async function fallsBack(): Promise<void> {
    const { witness } = theirs;
    await theirs.close();
    theirs = createTestContext({ witness });
  }

  test("is a problem, whether or not it shows where it stands", async () => {
    const first = await grow(2);
    const before = (await (await ownLogOf(mine)).newest())!;
    const kept = await grow(2);
    await cosigned();
    const newest = await grow(1);
    const forgot = (stood: number) =>
      `stood at ${stood} leaves, but its signature of this log at ${kept} leaves is kept here`;
    await fallsBack();
    must((await addCheckpoint(theirs, formatAddCheckpoint(0, [], before.note))) as { lines: string });
    const shown = await audit();
    expect(shown).toMatchObject({
      size: first,
      agrees_to: first,
      problem: expect.stringContaining(forgot(first)),
    });
    shows = false;
    const asked = await audit();
    expect(asked).toMatchObject({ size: newest, problem: expect.stringContaining(forgot(first)) });
    // By now it has signed more than what is kept.
    expect(await audit()).toMatchObject({ size: newest, problem: null });
  });

  test("is what went wrong where it then signed another log", async () => {
    await grow(3);
    await cosigned();
    await fallsBack();
    await showOtherLog(2);
    expect((await audit()).problem).toContain(
      "has signed another log at 2 leaves, but its signature of this log at 3 leaves is kept here",
    );
  });
});

describe("a witness that says nothing", () => {
  test("is a problem, which says why", async () => {
    await grow(1);
    instead = { failed: "source_timeout" };
    expect((await audit()).problem).toContain("does not say what it has signed: source_timeout");
    instead = { status: 500, text: "" };
    expect((await audit()).problem).toEndWith("answers 500");
  });

  test("is not believed what its key has not signed", async () => {
    await grow(1);
    instead = { status: 200, text: (await readCheckpoint(mine))! };
    expect((await audit()).problem).toEndWith("what it shows is not signed by its key");
    // Without a known key the log's own signature is what counts.
    expect(await audit("https://else.example")).toMatchObject({ size: 1, problem: null });
    instead = { status: 404, text: "" };
    expect((await audit("https://else.example")).problem).toContain("name it in HOLDFAST_WITNESSES");
  });

  test("a name that is not configured is refused", async () => {
    expect(await auditByWitness(mine, "nobody")).toMatchObject({ refused: "validation_failed" });
  });
});
