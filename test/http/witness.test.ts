import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { parseSignedNote, verifyNote } from "../../src/core/signed-note.ts";
import { noteSignerOf, verifyEd25519 } from "../../src/platform/note-keys.ts";
import { NO_WITNESSES } from "../support/context.ts";
import { markRestored } from "../support/restored.ts";
import { type ShellService, startTestShell } from "../support/server.ts";
import { createTestLog, leavesForkedAt, type TestLog } from "../support/test-log.ts";

/** A witness as C2SP tlog-witness says. */

const PATH = "/.well-known/holdfast/witness";
const ORIGIN = "holdfast/ins_other";
const { key, sign } = noteSignerOf("holdfast/ins_w/witness", "cosignature", new Uint8Array(32).fill(9));

let log: TestLog;
let service: ShellService;
/** How many signatures the witness has verified. */
let verified = 0;
beforeEach(() => {
  log = createTestLog(ORIGIN, leavesForkedAt(40, 40, ""));
  service = startTestShell({
    witness: {
      ...NO_WITNESSES,
      logs: [{ origin: ORIGIN, keys: [log.key] }],
      signer: async () => ({ key, sign }),
      verify(...signed) {
        verified += 1;
        return verifyEd25519(...signed);
      },
    },
  });
});
afterEach(() => service.close());

const offer = async (body: string | Promise<string>) => {
  const { status, text, headers, code } = await service.post(`${PATH}/add-checkpoint`, await body, {
    headers: { "Content-Type": "text/plain" },
    key: null,
  });
  return { status, text, type: headers.get("content-type"), code };
};
const rows = () => service.everything().witnessed_logs;
/** The names and times of the lines of known keys in a note. */
const signers = async (note: string) => {
  const parsed = parseSignedNote(note);
  const lines = parsed && (await verifyNote(parsed, [key, log.key], verifyEd25519));
  return lines?.map(({ key: { name }, timestamp }) => [name, timestamp]);
};
const seconds = () => service.clock.now / 1_000;

describe("a log that its operator named", () => {
  test("gets a cosignature on its first checkpoint, and on one that continues it", async () => {
    const first = await offer(log.offer(0, 7));
    expect([first.status, first.type]).toEqual([200, "text/plain; charset=utf-8"]);
    expect(await signers((await log.note(7)) + first.text)).toEqual([
      [ORIGIN, null],
      [key.name, seconds()],
    ]);
    service.clock.now += 5_000;
    const second = await offer(log.offer(7, 12));
    expect(second.status).toBe(200);
    expect(await signers((await log.note(12)) + second.text)).toEqual([
      [ORIGIN, null],
      [key.name, seconds()],
    ]);
  });

  test("gets one on a checkpoint of no leaves", async () => {
    expect((await offer(log.offer(0, 0))).status).toBe(200);
    expect((await offer(log.offer(0, 3))).status).toBe(200);
  });

  test("hears where the witness stands, if it believes something else", async () => {
    expect(await offer(log.offer(5, 7))).toEqual({
      status: 409,
      text: "0\n",
      type: "text/x.tlog.size",
      code: null,
    });
    await offer(log.offer(0, 7));
    for (const [from, to] of [
      [0, 9],
      [6, 9],
      [8, 9],
      [0, 5],
      [5, 5],
    ] as const) {
      const { status, text } = await offer(log.offer(from, to));
      expect([status, text]).toEqual([409, "7\n"]);
    }
    expect(rows()).toHaveLength(1);
  });

  test("gets nothing where the proof does not verify, and the witness stays where it was", async () => {
    await offer(log.offer(0, 7));
    const before = rows();
    const right = await log.offer(7, 12);
    const proof = right.split("\n");
    proof.splice(2, 1);
    for (const wrong of [proof.join("\n"), right.replace(/^old 7\n[^\n]+\n/, "old 7\n")]) {
      expect((await offer(wrong)).status).toBe(422);
    }
    expect(rows()).toEqual(before);
    expect((await offer(right)).status).toBe(200);
  });

  test("gets nothing for a fork, whether it is longer or as long", async () => {
    await offer(log.offer(0, 12));
    const before = rows();
    const fork = createTestLog(ORIGIN, leavesForkedAt(10, 40, "fork"));
    expect((await offer(fork.offer(12, 20))).status).toBe(422);
    const same = await offer(fork.offer(12, 12));
    expect([same.status, same.text]).toEqual([409, "12\n"]);
    expect((await offer(fork.offer(12, 12))).type).toBe("text/x.tlog.size");
    expect(rows()).toEqual(before);
  });

  test("a proof that is too long is none, also for the checkpoint that is known", async () => {
    await offer(log.offer(0, 12));
    const padded = (await log.offer(12, 12)).replace("old 12\n", `old 12\n${btoa("a".repeat(32))}\n`);
    expect((await offer(padded)).status).toBe(422);
    const first = (await log.offer(0, 12)).replace("old 0\n", `old 0\n${btoa("a".repeat(32))}\n`);
    expect((await offer(first)).status).toBe(409);
  });

  test("gets the same answer for a minute, and then a newer one", async () => {
    const first = await offer(log.offer(0, 12));
    service.clock.now += 59_000;
    expect(await offer(log.offer(12, 12))).toEqual(first);
    service.clock.now += 1_000;
    const later = await offer(log.offer(12, 12));
    expect(await signers((await log.note(12)) + later.text)).toContainEqual([key.name, seconds()]);
  });

  test("of two requests at once one is too late", async () => {
    await offer(log.offer(0, 5));
    const answers = await Promise.all([offer(log.offer(5, 9)), offer(log.offer(5, 12))]);
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 409]);
  });

  test("what it adds to its checkpoint is signed with it", async () => {
    const note = await log.note(4, "an extension");
    const { status, text } = await offer(`old 0\n\n${note}`);
    expect(status).toBe(200);
    expect(await signers(note + text)).toHaveLength(2);
  });

  test("gets a signature of what it offers, where it adds something else to the same checkpoint", async () => {
    await offer(log.offer(0, 4));
    for (const extensions of [["one"], ["other"], []]) {
      const note = await log.note(4, ...extensions);
      const { status, text } = await offer(`old 4\n\n${note}`);
      expect([status, await signers(note + text)]).toEqual([
        200,
        [
          [ORIGIN, null],
          [key.name, seconds()],
        ],
      ]);
    }
  });
});

describe("a witness that was restored from a backup", () => {
  test("signs nothing before its operator has acknowledged that", async () => {
    await offer(log.offer(0, 5));
    await markRestored(service.ctx);
    const { status, code } = await offer(log.offer(5, 9));
    expect([status, code]).toEqual([403, "restore_unacknowledged"]);
    expect(rows()).toMatchObject([{ note: await log.note(5) }]);
    await markRestored(service.ctx, { acknowledgedAt: service.clock.now });
    expect((await offer(log.offer(5, 9))).status).toBe(200);
  });
});

test("a witness whose clock is behind its ledger signs no time of the future", async () => {
  const right = service.clock.now;
  service.clock.now += 3_600_000;
  await offer(log.offer(0, 5));
  const before = rows();
  service.clock.now = right;
  const { status, code } = await offer(log.offer(5, 9));
  expect([status, code, rows()]).toEqual([500, "internal_error", before]);
  service.clock.now += 3_600_000;
  expect((await offer(log.offer(5, 9))).status).toBe(200);
});

test("a key that a restore has lost signs nothing, also once the restore is acknowledged", async () => {
  const lose = (...keys: string[]) =>
    service.ctx.ledger.change("UPDATE instances SET lost_witness_keys = ?", JSON.stringify(keys));
  lose("00000000", key.id);
  await markRestored(service.ctx, { acknowledgedAt: service.clock.now });
  const { status, code } = await offer(log.offer(0, 5));
  expect([status, code, rows()]).toEqual([403, "restore_unacknowledged", []]);
  lose("00000000");
  await markRestored(service.ctx, { acknowledgedAt: service.clock.now + 1 });
  expect((await offer(log.offer(0, 5))).status).toBe(200);
});

describe("a checkpoint that nobody known has signed", () => {
  test("of another origin is 404", async () => {
    const other = createTestLog("holdfast/ins_stranger", ["a", "b"]);
    const { status, code } = await offer(other.offer(0, 2));
    expect([status, code]).toEqual([404, "log_not_found"]);
  });

  test("of a known origin is 403", async () => {
    const forger = createTestLog(ORIGIN, leavesForkedAt(40, 40, ""), 2);
    const { status, code } = await offer(forger.offer(0, 2));
    expect([status, code]).toEqual([403, "checkpoint_not_signed"]);
    const changed = (await log.offer(0, 2)).replace("\n2\n", "\n3\n");
    expect((await offer(changed)).status).toBe(403);
    expect(rows()).toEqual([]);
  });

  test("signatures of others are no harm, and are not kept", async () => {
    const stranger = createTestLog(ORIGIN, leavesForkedAt(40, 40, ""), 2);
    const line = (await stranger.note(3)).split("\n\n")[1] ?? "";
    expect((await offer((await log.offer(0, 3)) + line)).status).toBe(200);
    expect(rows()).toMatchObject([{ origin: ORIGIN, note: await log.note(3) }]);
  });
});

test("a signature that a stranger repeats is verified once and kept once, and the checkpoint stays readable", async () => {
  await offer(log.offer(0, 7));
  service.clock.now += 60_000;
  const repeated = async (from: number, to: number) => {
    const body = await log.offer(from, to);
    return body + body.slice(body.indexOf("\u2014")).repeat(99);
  };
  for (const [from, to] of [
    [7, 7],
    [7, 9],
  ] as const) {
    verified = 0;
    const { status, text: line } = await offer(repeated(from, to));
    expect([status, verified]).toEqual([200, 1]);
    const shown = await service.get(`${PATH}/checkpoint?origin=${encodeURIComponent(ORIGIN)}`);
    expect(shown.text).toBe((await log.note(to)) + line);
  }
});

describe("the form of a request", () => {
  test("what is not such a request is 400", async () => {
    for (const body of ["old 1", "{}", "", "\ufeffold 0\n\n"]) {
      const { status, code } = await offer(body);
      expect([status, code]).toEqual([400, "validation_failed"]);
    }
    expect((await offer(log.offer(0, 3).then((body) => body.replace("old 0", "old 4")))).status).toBe(400);
    const latin = await service.post(`${PATH}/add-checkpoint`, new Uint8Array([0x6f, 0xff]));
    expect([latin.status, latin.code]).toEqual([400, "validation_failed"]);
  });

  test("a body that is longer than any request is 400", async () => {
    const { status, code } = await offer("o".repeat(170_000));
    expect([status, code]).toEqual([400, "validation_failed"]);
  });
});

describe("the last checkpoint that was cosigned", () => {
  const read = (origin: string) => service.get(`${PATH}/checkpoint?origin=${encodeURIComponent(origin)}`);

  test("is shown with both signatures", async () => {
    const { text: line } = await offer(log.offer(0, 7));
    const { status, text } = await read(ORIGIN);
    expect([status, text]).toEqual([200, (await log.note(7)) + line]);
    await offer(log.offer(7, 8));
    expect((await read(ORIGIN)).text).toStartWith(`${ORIGIN}\n8\n`);
  });

  test("of a log that was not witnessed is 404", async () => {
    expect((await read(ORIGIN)).code).toBe("log_not_found");
  });
});
