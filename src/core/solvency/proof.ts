import { canonicalJson, sha256 as hexSha256, sha256Bytes } from "../canonical.ts";
import { parseJsonText } from "../json-text.ts";
import { logNameOf } from "../log.ts";
import { checkCheckpoint, problemsOfPlace } from "../receipt/anchor.ts";
import type { Anchor } from "../receipt/form.ts";
import { shown } from "../receipt/say.ts";
import { keysOfJwks, type ReceiptKey } from "../receipt/signature.ts";
import { verifyEd25519 as verify } from "../receipt/verify.ts";
import { amount, count, exactly, hash, kind, list, ordinal, orNull, record, text } from "../shapes.ts";
import { bytesOfHex, noteKey, parseSignedNote, verifyNote } from "../signed-note.ts";
import { type LeafWire, nodeOfLeaf } from "./leaf.ts";
import { sumOwed } from "./owed.ts";
import { mode, parseStatement, type Statement, sum } from "./statement.ts";
import { rootOver, type Sibling } from "./sum-tree.ts";

/** A proof that what is owed to somebody is in a statement, as a file (docs/solvency, "The proof"). */
export type SolvencyProof = {
  readonly object: "solvency_proof";
  /** The signed note. */
  readonly statement: string;
  /** The key of the JWKS that signed it. */
  readonly kid: string;
  /** That the log has the statement, at a checkpoint. */
  readonly anchor: Omit<Anchor, "chain_ref">;
  readonly entries: readonly SolvencyEntry[];
};

export type SolvencyEntry = {
  readonly leaf: LeafWire;
  /** The siblings on the way up, the lowest first. */
  readonly path: readonly {
    readonly side: "left" | "right";
    readonly hash: string;
    readonly sum: string;
  }[];
};

/** The text of a file: RFC 8785 JSON and a newline. */
export const proofText = (proof: SolvencyProof): string => `${canonicalJson(proof)}\n`;

export const pathWire = (path: readonly Sibling[]): SolvencyEntry["path"] =>
  path.map(({ side, hash, sum }) => ({ side, hash: hash.toHex(), sum: sum.toString() }));

const form = record(
  {
    object: exactly("solvency_proof"),
    statement: text,
    kid: text,
    anchor: record({
      leaf_index: count,
      tree_size: ordinal,
      root: hash,
      proof: list(hash),
      checkpoint: text,
    }),
    entries: list(
      record({
        leaf: record({ organisation_id: text, mode, asset: text, payee: orNull(text), amount, salt: hash }),
        path: list(
          record({
            side: kind("left or right", (value) => value === "left" || value === "right"),
            ...{ hash, sum },
          }),
        ),
      }),
    ),
  },
  "a proof",
);

/** What a file proves, where it has no problems. */
export type CheckedProof = {
  readonly problems: readonly string[];
  readonly kid: string | null;
  readonly statement: Statement | null;
  /** The SHA-256 of the signed note, as the instance publishes it. */
  readonly statementHash: string | null;
  readonly leaves: readonly LeafWire[];
  /** The name of the log, and the size of the tree of its checkpoint. */
  readonly log: { readonly name: string; readonly size: number } | null;
};

const FORM_PROBLEMS_MAX = 5;

/** Checks a proof without a ledger or a network. */
export async function checkProof(file: string, jwks: unknown): Promise<CheckedProof> {
  const nothing = { kid: null, statement: null, statementHash: null, leaves: [], log: null };
  const parsed = parseJsonText(file);
  if ("problem" in parsed) return { ...nothing, problems: [`the file ${parsed.problem}`] };
  const unlike = [...form(parsed.value, "")].slice(0, FORM_PROBLEMS_MAX);
  if (unlike.length > 0) return { ...nothing, problems: unlike };
  const proof = onlyKnown(parsed.value as SolvencyProof);
  const keys = keysOfJwks(jwks, sha256Bytes);
  if (typeof keys === "string") return { ...nothing, problems: [keys] };
  const problems: string[] = [];
  if (proofText(proof) !== file)
    problems.push(
      "the file is not as it was written: not in its canonical form, or with fields that a proof does not have",
    );
  const signed = await checkStatement(proof, keys);
  problems.push(...signed.problems);
  const { statement } = signed;
  if (statement) problems.push(...problemsOfEntries(proof, statement));
  const statementHash = hexSha256(proof.statement);
  problems.push(...problemsOfPlace(proof.anchor, statementHash, "the statement", sha256Bytes));
  const known = { keys, witnesses: [] };
  const inLog = await checkCheckpoint({ ...proof.anchor, chain_ref: null }, known, {
    sha256: sha256Bytes,
    verify,
  });
  problems.push(...inLog.problems);
  if (statement && inLog.origin !== null && inLog.origin !== logNameOf(statement.instanceId))
    problems.push(`anchor.checkpoint is of ${shown(inLog.origin)}, and not of the instance of the statement`);
  if (inLog.unknownNames.length > 0)
    problems.push("anchor.checkpoint has signatures that a proof does not have");
  return {
    ...{ problems, kid: proof.kid, statement, statementHash, leaves: proof.entries.map(({ leaf }) => leaf) },
    log: inLog.origin === null ? null : { name: inLog.origin, size: proof.anchor.tree_size },
  };
}

async function checkStatement(
  { statement: note, kid }: SolvencyProof,
  keys: readonly ReceiptKey[],
): Promise<{ readonly statement: Statement | null; readonly problems: readonly string[] }> {
  const parsed = parseSignedNote(note);
  const statement = parsed && parseStatement(parsed.text);
  if (!parsed || !statement)
    return { statement: null, problems: ["statement is not a signed statement of solvency"] };
  const key = keys.find((one) => one.kid === kid);
  if (!key) return { statement, problems: [`the key ${shown(kid)} is not among the keys`] };
  const signer = noteKey(logNameOf(statement.instanceId), "ed25519", key.publicKey, sha256Bytes);
  const verified = parsed.lines.length === 1 ? await verifyNote(parsed, [signer], verify) : null;
  return {
    statement,
    problems:
      verified?.length === 1 ? [] : [`statement is not signed by the key ${shown(kid)} and by no other`],
  };
}

function* problemsOfEntries({ entries }: SolvencyProof, { assets }: Statement): Generator<string> {
  if (entries.length === 0) yield "entries must not be empty";
  const seen = new Set<string>();
  for (const [index, { leaf, path }] of entries.entries()) {
    const what = `entries[${index}]`;
    const name = canonicalJson([leaf.organisation_id, leaf.mode, leaf.asset, leaf.payee]);
    if (seen.has(name)) yield `${what} is of the same creditor as another one`;
    seen.add(name);
    const stated = assets.find(({ mode, asset }) => mode === leaf.mode && asset === leaf.asset);
    if (!stated) {
      yield `${what}: the statement has no ${leaf.mode} ${leaf.asset}`;
      continue;
    }
    const root = rootOrNull(leaf, path);
    if (root === null || root.hash.toHex() !== stated.root || root.sum !== sumOwed(stated.owed))
      yield `${what} does not lead to the root of ${leaf.mode} ${leaf.asset}, or not to its sum`;
  }
}

function rootOrNull(leaf: LeafWire, path: SolvencyEntry["path"]) {
  try {
    return rootOver(
      nodeOfLeaf(leaf),
      path.map(({ side, hash, sum }) => ({ side, hash: bytesOfHex(hash), sum: BigInt(sum) })),
    );
  } catch (error) {
    if (error instanceof RangeError) return null;
    throw error;
  }
}

/** The proof without fields that have no meaning here. */
const onlyKnown = ({ object, statement, kid, anchor, entries }: SolvencyProof): SolvencyProof => ({
  ...{ object, statement, kid },
  anchor: {
    ...{ leaf_index: anchor.leaf_index, tree_size: anchor.tree_size, root: anchor.root },
    ...{ proof: anchor.proof, checkpoint: anchor.checkpoint },
  },
  entries: entries.map(({ leaf, path }) => ({
    leaf: {
      ...{ organisation_id: leaf.organisation_id, mode: leaf.mode, asset: leaf.asset },
      ...{ payee: leaf.payee, amount: leaf.amount, salt: leaf.salt },
    },
    path: path.map(({ side, hash, sum }) => ({ side, hash, sum })),
  })),
});
