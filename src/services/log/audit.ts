import { isRefusal, type Refusal } from "../../core/errors.ts";
import { type LogCheckpoint, logNameOf } from "../../core/log.ts";
import {
  type NoteKey,
  parseSignatureLines,
  parseSignedNote,
  type Verify,
  verifyNote,
} from "../../core/signed-note.ts";
import {
  type Cosignature,
  type LogToWitness,
  parseWitnessedNote,
  type WitnessedLog,
} from "../../core/witness.ts";
import type { Tokens } from "../../platform/tokens.ts";
import type { Store } from "../../store/store.ts";
import type { Context } from "../context.ts";
import { logKeysOf } from "./anchor.ts";

/** Whose signatures are known. */
export type Signers = {
  /** The instance's own keys. Asked for where there is something that they signed; it may throw a refusal. */
  readonly own: () => Pick<Tokens, "jwks">;
  readonly witnesses: readonly NoteKey[];
  /** The logs that this instance witnesses. */
  readonly logs: readonly LogToWitness[];
  readonly verify: Verify;
};

export const signersOf = ({ tokens, witness }: Context): Signers => ({
  own: () => tokens,
  witnesses: witness.witnesses.map(({ key }) => key),
  logs: witness.logs,
  verify: witness.verify,
});

const AT_ONCE = 1_000;
/** A note of a statement may be of 160 KiB. */
const STATEMENTS_AT_ONCE = 100;

type Reads = Pick<Store, "read">;
/** Called with how many more signatures were verified. */
type Did = (signatures: number) => void;

/**
 * Verifies the signatures that are kept: the instance's own under the log's checkpoints and the statements of solvency, those of the
 * witnesses under the checkpoints, and those of the logs that this instance witnesses. One message each. The instance's own keys that were rotated count.
 */
export async function auditSignatures(store: Reads, signers: Signers, did: Did): Promise<readonly string[]> {
  const witnessed = await store.read((reader) => reader.witnessedLogs.list());
  return [
    ...(await auditCheckpoints(store, signers, did)),
    ...(await auditStatements(store, signers, did)),
    ...(await auditCosignatures(store, signers, did)),
    ...(await Promise.all(witnessed.map((log) => auditWitnessed(log, signers)))).flat(),
  ];
}

/** How many there are. */
export const countSignatures = ({ read }: Reads): Promise<number> =>
  read(async ({ cosignatures, log, solvency }) => {
    const newest = await log.newestCheckpoint();
    const statement = await solvency.statement(null);
    return (newest?.number ?? 0) + (statement?.number ?? 0) + (await cosignatures.count());
  });

async function auditCheckpoints(
  { read }: Reads,
  { own, verify }: Signers,
  did: Did,
): Promise<readonly string[]> {
  const problems: string[] = [];
  let known: readonly NoteKey[] | null = null;
  for (let after = 0; ; ) {
    const { id, checkpoints } = await read(async ({ instance, log }) => ({
      id: (await instance.get()).id,
      checkpoints: await log.checkpointsAfter(after, AT_ONCE),
    }));
    const last = checkpoints.at(-1);
    if (!last) return problems;
    // A ledger without checkpoints needs no keys.
    const keys: readonly NoteKey[] | Refusal = known ?? keysOrRefusal(logNameOf(id), own);
    if (isRefusal(keys)) return [`the log: its signatures cannot be verified: ${keys.message}`];
    known = keys;
    for (const { number, note } of checkpoints)
      if (!(await isSigned(note, keys, verify)))
        problems.push(`checkpoint ${number}: no key of this instance signed it`);
    after = last.number;
    did(checkpoints.length);
  }
}

async function auditStatements(
  { read }: Reads,
  { own, verify }: Signers,
  did: Did,
): Promise<readonly string[]> {
  const problems: string[] = [];
  for (let before = Number.MAX_SAFE_INTEGER; ; ) {
    const { id, statements } = await read(async ({ instance, solvency }) => ({
      id: (await instance.get()).id,
      statements: await solvency.statements(before, STATEMENTS_AT_ONCE),
    }));
    const last = statements.at(-1);
    if (!last) return problems;
    const keys = keysOrRefusal(logNameOf(id), own);
    // The checkpoints' part says so: there is no statement without a checkpoint.
    if (isRefusal(keys)) return problems;
    for (const { number, note } of statements)
      if (!(await isSigned(note, keys, verify)))
        problems.push(`statement ${number}: no key of this instance signed it`);
    before = last.number;
    did(statements.length);
  }
}

/** A command throws a refusal where its keys are missing. The rest of the audit is then worth having all the same. */
function keysOrRefusal(name: string, own: Signers["own"]): readonly NoteKey[] | Refusal {
  try {
    return logKeysOf(name, own());
  } catch (error) {
    if (isRefusal(error)) return error;
    throw error;
  }
}

/** Signed by a key, and by no other key wrongly. */
/** Whether one of these keys signed the note. */
export async function isSigned(note: string, keys: readonly NoteKey[], verify: Verify): Promise<boolean> {
  const parsed = parseSignedNote(note);
  const verified = parsed && (await verifyNote(parsed, keys, verify));
  return verified !== null && verified.length > 0;
}

async function auditCosignatures(
  { read }: Reads,
  { witnesses, verify }: Signers,
  did: Did,
): Promise<readonly string[]> {
  const problems: string[] = [];
  for (let after = { size: -1, witness: "" }; ; ) {
    const page = await read(async ({ cosignatures, log }) => {
      const found = await cosignatures.after(after.size, after.witness, AT_ONCE);
      const of = async (kept: Cosignature) => ({ kept, checkpoint: await log.checkpointOf(kept.size) });
      return Promise.all(found.map(of));
    });
    for (const { kept, checkpoint } of page) {
      const problem = await problemOfCosignature(kept, checkpoint, witnesses, verify);
      if (problem) problems.push(`the signature of the witness ${kept.witness} at ${kept.size}: ${problem}`);
    }
    const last = page.at(-1);
    if (!last) return problems;
    after = last.kept;
    did(page.length);
  }
}

/** What was signed with a key that is not configured, or not any more, cannot be verified. */
async function problemOfCosignature(
  { size, witness, line }: Cosignature,
  checkpoint: LogCheckpoint | null,
  witnesses: readonly NoteKey[],
  verify: Verify,
): Promise<string | null> {
  // The ledger's own audit names it.
  if (checkpoint?.size !== size) return null;
  const lines = parseSignatureLines(line);
  const [signed, ...more] = lines ?? [];
  if (!lines || signed?.name !== witness || more.length > 0) return "it is not one signature of that name";
  const key = witnesses.find(({ name, id }) => name === witness && id === signed.id);
  if (!key) return null;
  const note = parseSignedNote(checkpoint.note);
  const verified = note && (await verifyNote({ text: note.text, lines }, [key], verify));
  return verified?.length === 1 ? null : "it is not the signature of its key on that checkpoint";
}

/** What this instance has witnessed of another log. Its own signature is made anew each time that it is asked for. */
async function auditWitnessed(
  { origin, note }: WitnessedLog,
  { logs, verify }: Signers,
): Promise<readonly string[]> {
  const what = `the witnessed log ${origin}`;
  if (!parseWitnessedNote(note, origin)) return [`${what}: its note is not a checkpoint of it`];
  const keys = logs.find((log) => log.origin === origin)?.keys;
  return !keys || (await isSigned(note, keys, verify)) ? [] : [`${what}: no key of that log signed its note`];
}
