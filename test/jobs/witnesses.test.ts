import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { formatVerifierKey, parseSignedNote, verifyNote } from "../../src/core/signed-note.ts";
import type { Witness } from "../../src/core/witness.ts";
import { witnessJob } from "../../src/jobs/witnesses.ts";
import { noteSignerOf, verifyEd25519 } from "../../src/platform/note-keys.ts";
import type { WitnessAnswer } from "../../src/platform/witness-client.ts";
import { addCheckpoint } from "../../src/services/witness/add-checkpoint.ts";
import type { Offered } from "../../src/services/witness/offer.ts";
import type { OwnLog } from "../../src/services/witness/own-log.ts";
import { createTestContext, NO_WITNESSES, type TestContext } from "../support/context.ts";
import { createTestLog, leavesForkedAt, type TestLog } from "../support/test-log.ts";

/** A log that offers its checkpoints to witnesses which are contexts of their own. */

const ORIGIN = "holdfast/ins_mine";

const ownLogOf = (log: TestLog, size: () => number): OwnLog => ({
  origin: ORIGIN,
  keys: [log.key],
  size: async () => size(),
  newest: async () => (size() === 0 ? null : { size: size(), note: await log.note(size()) }),
  root: async (at) => log.root(at),
  consistencyProof: async (from, to) => log.proof(from, to),
});

let log: TestLog;
let size: number;
let mine: TestContext;
let theirs: TestContext[];
let witnesses: Witness[];
/** What a witness answers in place of its own; null where it answers by itself. */
let instead: ((body: string) => Promise<WitnessAnswer>) | null;
let asked: string[];
let changes: string[];
let time: number;

beforeEach(() => {
  log = createTestLog(ORIGIN, leavesForkedAt(100, 100, ""));
  size = 0;
  [instead, asked, changes, time] = [null, [], [], 1_000_000];
  const signers = [1, 2].map((index) =>
    noteSignerOf(`holdfast/ins_w${index}/witness`, "cosignature", new Uint8Array(32).fill(100 + index)),
  );
  witnesses = signers.map(({ key }, index) => ({ key, url: `https://w${index + 1}.example/witness` }));
  theirs = signers.map((signer) =>
    createTestContext({
      witness: { ...NO_WITNESSES, logs: [{ origin: ORIGIN, keys: [log.key] }], signer: async () => signer },
    }),
  );
  mine = createTestContext({
    witness: {
      ...NO_WITNESSES,
      witnesses,
      async ask(url, body = "") {
        asked.push(url);
        if (instead && url.startsWith("https://w1.")) return instead(body);
        const index = witnesses.findIndex((witness) => url === `${witness.url}/add-checkpoint`);
        return answerOf(await addCheckpoint(theirs[index]!, body));
      },
    },
  });
});
afterEach(async () => {
  await mine.close(/: no checkpoint has this size$/);
  for (const one of theirs) await one.close();
});

/** As the route answers it. */
function answerOf(added: Awaited<ReturnType<typeof addCheckpoint>>): WitnessAnswer {
  if (added === "unproved") return { status: 422, text: "" };
  if ("refused" in added) return { status: 404, text: "" };
  return "stands" in added ? { status: 409, text: `${added.stands}\n` } : { status: 200, text: added.lines };
}

const onChange = ({ key }: Witness, offered: Offered): void => {
  changes.push(`${key.name}: ${offered.outcome}${"size" in offered ? ` ${offered.size}` : ""}`);
};
/** The jobs of both witnesses, which run together. */
function jobsOn(of: TestLog) {
  const options = { log: async () => ownLogOf(of, () => size), monotonicNow: () => time, onChange };
  const jobs = witnesses.map((witness) => witnessJob(mine, witness, options));
  return {
    run: () => Promise.all(jobs.map((job) => job.run())),
    failures: () => jobs.map((job) => job.failures()),
  };
}
const NEVER = { away: 0, behind: 0, parted: 0 };
const kept = (at: number) => mine.reader.cosignatures.of(at);
const signersAt = async (at: number) => {
  const note = parseSignedNote(
    (await log.note(at)) +
      kept(at)
        .map(({ line }) => line)
        .join(""),
  );
  const keys = [log.key, ...witnesses.map(({ key }) => key)];
  return (note && (await verifyNote(note, keys, verifyEd25519)))?.map(({ key }) => key.name);
};

describe("the newest checkpoint", () => {
  test("is signed by each witness, and the signatures are kept", async () => {
    const jobs = jobsOn(log);
    for (size of [3, 7, 50]) {
      await jobs.run();
      expect(await signersAt(size)).toEqual([ORIGIN, ...witnesses.map(({ key }) => key.name)]);
    }
    expect(changes).toEqual([]);
    expect(asked).toHaveLength(6);
    expect(jobs.failures()).toEqual([NEVER, NEVER]);
  });

  test("is not offered again once it is signed, nor before there is one", async () => {
    const jobs = jobsOn(log);
    await jobs.run();
    expect(asked).toEqual([]);
    size = 3;
    await jobs.run();
    await jobs.run();
    expect(asked).toHaveLength(2);
  });

  test("is offered from where the witness stands, also after a restart", async () => {
    size = 3;
    await jobsOn(log).run();
    size = 20;
    await jobsOn(log).run();
    expect(kept(20)).toHaveLength(2);
    // Nobody had to be asked where it stands.
    expect(asked).toHaveLength(4);
  });

  test("is offered once more after a restart: a witness says that it has signed more of the log", async () => {
    size = 9;
    await jobsOn(log).run();
    const before = kept(9);
    await addCheckpoint(theirs[0]!, await log.offer(9, 30));
    const again = jobsOn(log);
    await again.run();
    expect(changes).toEqual([`${witnesses[0]?.key.name}: behind 30`]);
    expect(asked).toHaveLength(4);
    time += 10_000;
    await again.run();
    expect(asked).toHaveLength(4);
    expect(kept(9)).toEqual(before);
  });

  test("is offered from where the witness says that it stands, where that is not known", async () => {
    await addCheckpoint(theirs[0]!, await log.offer(0, 9));
    size = 30;
    await jobsOn(log).run();
    expect(kept(30)).toHaveLength(2);
    expect(asked).toHaveLength(3);
  });
});

test("a checkpoint that somebody else offers first, while an older one is under way, is no alarm", async () => {
  size = 3;
  let before = 0;
  instead = async (body) => {
    if (before++ === 0) {
      size = 5;
      await addCheckpoint(theirs[0]!, await log.offer(0, 5));
    }
    return answerOf(await addCheckpoint(theirs[0]!, body));
  };
  await jobsOn(log).run();
  expect(await signersAt(5)).toEqual([ORIGIN, witnesses[0]!.key.name]);
  expect(changes).toEqual([]);
});

describe("a witness that does not sign", () => {
  const answers: readonly (readonly [string, WitnessAnswer, string])[] = [
    ["is away", { failed: "source_timeout" }, "away"],
    ["does not know the log", { status: 404, text: "" }, "away"],
    ["is broken", { status: 500, text: "<html>" }, "away"],
    ["answers nonsense", { status: 200, text: "yes\n" }, "away"],
    ["gives no size", { status: 409, text: "many\n" }, "away"],
    ["stands at a longer log", { status: 409, text: "99\n" }, "behind 99"],
    ["finds no proof", { status: 422, text: "" }, "parted 0"],
    ["finds another root", { status: 409, text: "0\n" }, "parted 0"],
  ];
  for (const [name, answer, change] of answers) {
    test(`${name}: the others sign, and it is reported once`, async () => {
      instead = async () => answer;
      size = 3;
      const jobs = jobsOn(log);
      await jobs.run();
      expect(kept(3).map(({ witness }) => witness)).toEqual([witnesses[1]!.key.name]);
      time += 3_600_000;
      await jobs.run();
      expect(changes).toEqual([`${witnesses[0]!.key.name}: ${change}`]);
      const [why = ""] = change.split(" ");
      expect(jobs.failures()).toEqual([{ ...NEVER, [why]: 2 }, NEVER]);
    });
  }

  test("is not believed where it signs with another key, or another checkpoint", async () => {
    const stranger = noteSignerOf("w", "cosignature", new Uint8Array(32).fill(50));
    const other = createTestContext({
      witness: {
        ...NO_WITNESSES,
        logs: [{ origin: ORIGIN, keys: [log.key] }],
        signer: async () => stranger,
      },
    });
    instead = async (body) => answerOf(await addCheckpoint(other, body));
    size = 3;
    await jobsOn(log).run();
    const signed = await addCheckpoint(theirs[0]!, await log.offer(0, 2));
    instead = async () => answerOf(signed);
    time += 3_600_000;
    await jobsOn(log).run();
    expect(kept(3).map(({ witness }) => witness)).toEqual([witnesses[1]!.key.name]);
    await other.close();
  });

  test("is asked again later and later, and signs when it is back", async () => {
    instead = async () => ({ failed: "source_unreachable" });
    size = 3;
    const jobs = jobsOn(log);
    const askedAt: number[] = [];
    for (let second = 0; second < 3_600; second++) {
      const before = asked.length;
      await jobs.run();
      if (asked.slice(before).some((url) => url.startsWith("https://w1."))) askedAt.push(second);
      time += 1_000;
    }
    expect(askedAt.slice(0, 4)).toEqual([0, 5, 15, 35]);
    const pauses = askedAt.slice(1).map((at, index) => at - askedAt[index]!);
    expect(Math.max(...pauses)).toBe(600);
    instead = null;
    size = 5;
    time += 600_000;
    await jobs.run();
    expect(kept(5)).toHaveLength(2);
    expect(changes).toEqual([`${witnesses[0]!.key.name}: away`, `${witnesses[0]!.key.name}: cosigned`]);
    // The next time that it is away it is asked again soon.
    instead = async () => ({ failed: "source_unreachable" });
    size = 6;
    await jobs.run();
    instead = null;
    time += 5_000;
    await jobs.run();
    expect(kept(6)).toHaveLength(2);
  });

  test("that stands elsewhere each time is left after three attempts", async () => {
    let said = 0;
    instead = async () => ({ status: 409, text: `${++said}\n` });
    size = 50;
    await jobsOn(log).run();
    expect(said).toBe(3);
  });
});

describe("a log that was rewritten", () => {
  test("gets no signature more, whether it is shorter, as long or longer", async () => {
    size = 20;
    await jobsOn(log).run();
    const fork = createTestLog(ORIGIN, leavesForkedAt(10, 100, "fork"));
    for (const [of, change] of [
      [15, "behind 20"],
      [20, "parted 20"],
      [40, "parted 20"],
    ] as const) {
      size = of;
      changes = [];
      await jobsOn(fork).run();
      if (of !== 20) expect(kept(of)).toEqual([]);
      // Each is asked by a job of its own.
      expect(changes.sort()).toEqual(witnesses.map(({ key }) => `${key.name}: ${change}`).sort());
    }
    // The log that they know is still signed.
    size = 41;
    await jobsOn(log).run();
    expect(kept(41)).toHaveLength(2);
  });
});

test("a verifier key names the witness", () => {
  expect(formatVerifierKey(witnesses[0]!.key)).toStartWith("holdfast/ins_w1/witness+");
});
