import { anchorAddressOf, parseEvmChainRef } from "../chain-anchor.ts";
import { parseCheckpoint } from "../checkpoint.ts";
import { leafHash, verifyInclusion } from "../merkle.ts";
import {
  bytesOfHex,
  formatSignedNote,
  hexOf,
  isKeyName,
  type NoteKey,
  noteKey,
  parseSignedNote,
  type Sha256,
  type SignedNote,
  type Verify,
  verifyNote,
} from "../signed-note.ts";
import { SECOND_MS } from "../time.ts";
import { caip2Of } from "../x402/chains.ts";
import type { Anchor, Receipt } from "./form.ts";
import { shown } from "./say.ts";
import type { ReceiptKey } from "./signature.ts";

/**
 * The transaction that must be on a chain where a receipt names one. The chain is not asked here: whoever asks it finds, in the
 * block, a transaction to the address whose data is the text.
 */
export type OnChain = {
  /** Such as `eip155:8453`. */
  readonly network: string;
  readonly block: number;
  readonly address: string;
  readonly text: string;
};

/** A witness whose cosignature of the checkpoint verified. */
export type Cosigned = { readonly name: string; readonly at: string };

export type AnchorFound = {
  readonly problems: readonly string[];
  /** The name of the log: that of the instance. */
  readonly origin: string | null;
  readonly cosigned: readonly Cosigned[];
  /** The names on lines whose keys are not known. They prove nothing. */
  readonly unknownNames: readonly string[];
  /** Null where the receipt names no block of a chain. */
  readonly onChain: OnChain | null;
};

type Known = {
  /** Null where no keys are known. */
  readonly keys: readonly ReceiptKey[] | null;
  /** Those that must have cosigned. */
  readonly witnesses: readonly NoteKey[];
};

/** Checks that the settling entry is in the tree of the checkpoint, and that the checkpoint is the instance's. */
export async function checkAnchor(
  { trace }: Receipt,
  anchor: Anchor,
  known: Known,
  { sha256, verify }: { readonly sha256: Sha256; readonly verify: Verify },
): Promise<AnchorFound> {
  const settling = trace.at(-1);
  const problems = [...problemsOfPlace(anchor, settling?.entry_hash ?? "", "the settling entry", sha256)];
  if (settling && settling.chain_ref !== null && settling.chain_ref !== anchor.chain_ref)
    problems.push(
      `anchor.chain_ref is ${shown(anchor.chain_ref)}, but the settling entry says ${shown(settling.chain_ref)}`,
    );
  const rest = await checkCheckpoint(anchor, known, { sha256, verify });
  const note = parseSignedNote(anchor.checkpoint);
  const onChain = note && rest.origin !== null ? onChainOf(anchor, note, rest.origin, sha256) : null;
  return { ...rest, onChain, problems: [...problems, ...rest.problems] };
}

/** That an entry of the log is at its place in the tree. */
export function* problemsOfPlace(
  anchor: Omit<Anchor, "chain_ref">,
  entryHash: string,
  what: string,
  sha256: Sha256,
): Generator<string> {
  const inclusion = {
    index: anchor.leaf_index,
    size: anchor.tree_size,
    leaf: leafHash(bytesOfHex(entryHash), sha256),
    proof: anchor.proof.map(bytesOfHex),
    root: bytesOfHex(anchor.root),
  };
  if (!verifyInclusion(inclusion, sha256)) yield `anchor.proof does not lead from ${what} to anchor.root`;
}

/** That the checkpoint is of the tree that the anchor names, and of the instance. */
export async function checkCheckpoint(
  anchor: Anchor,
  known: Known,
  { sha256, verify }: { readonly sha256: Sha256; readonly verify: Verify },
): Promise<Omit<AnchorFound, "onChain">> {
  const note = parseSignedNote(anchor.checkpoint);
  return note
    ? checkNote(note, anchor, known, { sha256, verify })
    : {
        problems: ["anchor.checkpoint is not a signed note"],
        origin: null,
        cosigned: [],
        unknownNames: [],
      };
}

async function checkNote(
  note: SignedNote,
  anchor: Anchor,
  { keys, witnesses }: Known,
  { sha256, verify }: { readonly sha256: Sha256; readonly verify: Verify },
): Promise<Omit<AnchorFound, "onChain">> {
  const checkpoint = parseCheckpoint(note.text);
  if (!checkpoint)
    return {
      problems: ["anchor.checkpoint is not the checkpoint of a log"],
      origin: null,
      cosigned: [],
      unknownNames: [],
    };
  const { origin, size, root } = checkpoint;
  const problems = [...problemsOfText(anchor, origin, size, root)];
  // No key has a name that cannot stand in a line, so none has signed such a log.
  const signers = isKeyName(origin) ? (keys ?? []) : [];
  const logKeys = signers.map(({ publicKey }) => noteKey(origin, "ed25519", publicKey, sha256));
  const verified = await verifyNote(note, [...logKeys, ...witnesses], verify);
  if (verified === null) problems.push("a signature of anchor.checkpoint does not verify");
  const lines = verified ?? [];
  if (keys && verified && !lines.some(({ key }) => logKeys.includes(key)))
    problems.push(`anchor.checkpoint is not signed by a key of ${shown(origin)} that is among the keys`);
  const cosigned = lines.flatMap(({ key, timestamp }) =>
    timestamp === null ? [] : [{ name: key.name, at: isoSeconds(timestamp) }],
  );
  for (const witness of witnesses)
    if (verified && !lines.some(({ key }) => key === witness))
      problems.push(
        `anchor.checkpoint has no cosignature of the witness ${shown(witness.name)} with the key ${witness.id}`,
      );
  const knownLines = lines.map(({ line }) => line);
  const unknownNames = note.lines.filter((line) => !knownLines.includes(line)).map(({ name }) => name);
  return { problems, origin, cosigned, unknownNames: verified ? unknownNames : [] };
}

/** The transaction's data is the note as the log signed it. The lines of witnesses come after the log's own, and are not in it. */
function onChainOf(
  { chain_ref }: Anchor,
  { text, lines }: SignedNote,
  origin: string,
  sha256: Sha256,
): OnChain | null {
  const place = parseEvmChainRef(chain_ref ?? "");
  if (place === null) return null;
  const { chainId, block } = place;
  const ofLog = formatSignedNote({ text, lines: lines.slice(0, 1) });
  return { network: caip2Of(chainId), block, address: anchorAddressOf(origin, sha256), text: ofLog };
}

/** The checkpoint is of the tree that the anchor names, and of the instance that its reference names. */
function* problemsOfText(anchor: Anchor, origin: string, size: number, root: Uint8Array): Generator<string> {
  if (!/^holdfast\/./.test(origin)) yield `anchor.checkpoint is of ${shown(origin)}, which is no Holdfast`;
  if (size !== anchor.tree_size)
    yield `anchor.tree_size is ${anchor.tree_size}, but the checkpoint says ${size}`;
  if (hexOf(root) !== anchor.root)
    yield `anchor.root is ${shown(anchor.root)}, but the checkpoint says ${shown(hexOf(root))}`;
  const [, instance = null] = /^local:([^#]*)#[1-9][0-9]*$/.exec(anchor.chain_ref ?? "") ?? [];
  if (instance !== null && `holdfast/${instance}` !== origin)
    yield `anchor.chain_ref is ${shown(anchor.chain_ref)}, but the checkpoint is of ${shown(origin)}`;
  if (anchor.chain_ref?.startsWith("eip155:") && parseEvmChainRef(anchor.chain_ref) === null)
    yield `anchor.chain_ref is ${shown(anchor.chain_ref)}, which names no block of a chain, such as eip155:8453#1234`;
}

/** A time in seconds; as it is where it is too large to be written as one. */
function isoSeconds(seconds: number): string {
  const time = new Date(seconds * SECOND_MS);
  return Number.isNaN(time.getTime()) ? String(seconds) : time.toISOString();
}
