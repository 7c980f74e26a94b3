import { canonicalJson, hashJson, sha256Bytes } from "../../src/core/canonical.ts";
import { formatCheckpoint } from "../../src/core/checkpoint.ts";
import { leafHash } from "../../src/core/merkle.ts";
import { RECEIPT_TYPE } from "../../src/core/receipt/signature.ts";
import { formatSignedNote, noteKey, signText } from "../../src/core/signed-note.ts";
import { createTokens, newSigningKey } from "../../src/platform/tokens.ts";
import type { Json } from "../support/client.ts";
import type { Case, Genuine } from "./genuine.ts";

/** Receipts that somebody altered: all of them must be refused by every verifier. */

type Change = (receipt: Json) => void;

const last = <Item>(list: readonly Item[]): Item => list.at(-1)!;
/** Another digit, or letter, at the end of what the pattern finds. */
const turned = (text: string, pattern: RegExp): string =>
  text.replace(pattern, (found) => found.slice(0, -1) + (found.endsWith("1") ? "2" : "1"));
/** Another first byte of the signature in this line of the checkpoint, after the key id and a time. */
const forged = (checkpoint: string, line: RegExp): string =>
  checkpoint.replace(line, (found) => turned(found, /^— \S+ .{22}/));

const LOG_LINE = /^— holdfast\/ins_\w+ .+\n/m;
const WITNESS_LINE = /^— \S+\/witness .+\n/m;

/** What anybody can do to a file. */
const BY_ANYBODY: Readonly<Record<string, Change>> = {
  "a digit of the amount": (r) => (r.warrant.amount = turned(r.warrant.amount, /^./)),
  "the payee": (r) => (r.warrant.payee += "."),
  "the mode": (r) => (r.mode = "sandbox"),
  "the share": (r) => (r.warrant.released_bps += 1),
  "a clause": (r) => (r.warrant.spec.clauses[0].equals = 404),
  "a clause's result": (r) => Object.assign(r.checks[0].details[1], { passed: true, reason_code: null }),
  "a check's score": (r) => (r.checks[0].score = 10_000),
  "an entry removed": (r) => r.trace.splice(1, 1),
  "two entries swapped": (r) => r.trace.splice(0, 2, r.trace[1], r.trace[0]),
  "an actor": (r) => (r.trace[0].payload.actor.id = "key_x"),
  "a hash of an entry": (r) => (r.trace[0].entry_hash = turned(r.trace[0].entry_hash, /^./)),
  "a hash of the proof": (r) => (r.anchor.proof[0] = turned(r.anchor.proof[0], /^./)),
  "the checkpoint's size": (r) => (r.anchor.checkpoint = turned(r.anchor.checkpoint, /\n[0-9]+/)),
  "a cosignature": (r) => (r.anchor.checkpoint = forged(r.anchor.checkpoint, WITNESS_LINE)),
  "a field more": (r) => (r.warrant.note = "paid in full"),
  "no anchor": (r) => (r.anchor = null),
  "no signature": (r) => (r.signature = null),
  "another signature": (r) => (r.signature = turned(r.signature, /\.[^.]{43}(?=[^.]{43}$)/)),
  "a bit of the signature": (r) => (r.signature = turned(r.signature, /\.[^.]*$/)),
  "bits of the signature that stand for nothing": (r) =>
    (r.signature =
      r.signature.slice(0, -1) + { A: "B", Q: "R", g: "h", w: "x" }[last([...r.signature]) as "A"]),
  "a signature in parts more": (r) => (r.signature += ".x"),
  "a header that signs by nothing": (r) => (r.signature = headed(r.signature, { alg: "none" })),
  "a header with another field": (r) => (r.signature = headed(r.signature, { crit: ["b64"] })),
};

function headed(signature: string, changed: object): string {
  const [head = "", body, end] = signature.split(".");
  const header = { ...JSON.parse(Buffer.from(head, "base64url").toString()), ...changed };
  return [Buffer.from(JSON.stringify(header)).toString("base64url"), body, end].join(".");
}

/** What only who has the instance's key can do: each is signed anew, so that another check than the signature must find it. */
const BY_THE_INSTANCE: Readonly<Record<string, Change>> = {
  "a digit of the amount": (r) => (r.warrant.amount = turned(r.warrant.amount, /^./)),
  "the payee": (r) => (r.warrant.payee += "."),
  "the mode": (r) => (r.mode = "sandbox"),
  "the share": (r) => (r.warrant.released_bps += 1),
  "the state": (r) => (r.warrant.state = "refunded"),
  "the time of the settlement": (r) => (r.warrant.settled_at = r.warrant.opened_at.replace("2030", "2031")),
  "the time of the opening": (r) => (r.warrant.opened_at = r.warrant.opened_at.replace("2030", "2029")),
  "a clause": (r) => (r.warrant.spec.clauses[0].equals = 404),
  "an actor": (r) => (r.trace[0].payload.actor.id = "key_x"),
  "a state beside the payload": (r) => (r.trace[1].to = "held"),
  "a beginning beside the payload": (r) => (r.trace[1].from = "frozen"),
  "an actor beside the payload": (r) => (r.trace[1].actor.id = "key_x"),
  "a time beside the payload": (r) =>
    (r.trace[1].recorded_at = r.trace[0].recorded_at.replace("2030", "2029")),
  "rules beside the payload": (r) => (r.trace[1].rules_hash = turned(r.trace[1].rules_hash, /^./)),
  "the agent of a payload": (r) => (r.trace[0].payload.agent_id = "agt_x"),
  "a hash of a payload": (r) => (r.trace[0].payload_hash = turned(r.trace[0].payload_hash, /^./)),
  "a hash of an entry": (r) => (r.trace[0].entry_hash = turned(r.trace[0].entry_hash, /^./)),
  "a number that a double does not hold": (r) => (r.warrant.more = 2 ** 53),
  "an entry removed": (r) => r.trace.splice(1, 1),
  "two entries swapped": (r) => r.trace.splice(0, 2, r.trace[1], r.trace[0]),
  "a number of an entry": (r) => (r.trace[1].sequence = 7),
  "a hash of the proof": (r) => (r.anchor.proof[0] = turned(r.anchor.proof[0], /^./)),
  "a proof cut short": (r) => r.anchor.proof.pop(),
  "a proof that is too long": (r) => r.anchor.proof.push(r.anchor.proof[0]),
  "a proof that begins too low": (r) => r.anchor.proof.unshift(r.anchor.proof[0]),
  "half a leaf": (r) => (r.anchor.leaf_index += 0.5),
  "another leaf": (r) => (r.anchor.leaf_index -= 1),
  "a leaf beyond the tree": (r) => (r.anchor.leaf_index += 4096),
  "another root": (r) => (r.anchor.root = turned(r.anchor.root, /^./)),
  "another size": (r) => (r.anchor.tree_size += 1),
  "the checkpoint's size": (r) => (r.anchor.checkpoint = turned(r.anchor.checkpoint, /\n[0-9]+/)),
  "the checkpoint's origin": (r) => (r.anchor.checkpoint = r.anchor.checkpoint.replace("ins_", "ins_0")),
  "the log's signature": (r) => (r.anchor.checkpoint = forged(r.anchor.checkpoint, LOG_LINE)),
  "the log's line": (r) => (r.anchor.checkpoint = r.anchor.checkpoint.replace(LOG_LINE, "")),
  "a cosignature": (r) => (r.anchor.checkpoint = forged(r.anchor.checkpoint, WITNESS_LINE)),
  "the witness's line": (r) => (r.anchor.checkpoint = r.anchor.checkpoint.replace(WITNESS_LINE, "")),
  "no anchor, though a witness is asked for": (r) => (r.anchor = null),
  "the instance in chain_ref": (r) => {
    r.anchor.chain_ref = r.anchor.chain_ref.replace("ins_", "ins_0");
    last<Json>(r.trace).chain_ref = r.anchor.chain_ref;
  },
};

/** What its instance can rewrite altogether, with every hash, in a log of its own that no witness has seen. */
const REWRITTEN: Readonly<Record<string, Change>> = {
  "the amount of one entry": (r) => (r.trace[1].payload.amount = "1"),
  "a version": (r) => (r.trace[1].payload.version = 9),
  "a beginning": (r) => (r.trace[1].from = r.trace[1].payload.from = "frozen"),
  "the warrant's id": (r) => (r.warrant.id += "0"),
  "a share of a hold": (r) => (r.trace[0].payload.released_bps = 10_000),
  "a share of more than all": (r) => shared(r, 10_001),
  "a partial release of all": (r) => shared(r, 10_000),
  "a partial release of nothing": (r) => shared(r, null),
  "an entry removed": (r) => r.trace.splice(1, 1),
  "two entries swapped": (r) => r.trace.splice(0, 2, r.trace[1], r.trace[0]),
  "the end cut off": (r) => cut(r),
};

function shared(receipt: Json, bps: number | null): void {
  receipt.warrant.released_bps = bps;
  last<Json>(receipt.trace).payload.released_bps = bps;
}

/** Leaves the settlement out, and says that what was before it is the end. */
function cut({ warrant, trace, checks }: Json): void {
  trace.pop();
  checks.pop();
  const { to, recorded_at } = last<Json>(trace).payload;
  Object.assign(warrant, { state: to, released_bps: null, settled_at: recorded_at });
}

/** Writes every hash of the trace anew, and puts its end into a log of its own. */
async function rewrite(receipt: Json, { signBytes, jwks }: Genuine): Promise<void> {
  const { warrant, trace, anchor } = receipt;
  let previous: string | null = null;
  for (const [sequence, entry] of (trace as Json[]).entries()) {
    entry.payload_hash = hashJson(entry.payload);
    const { payload_hash } = entry;
    entry.entry_hash = hashJson({ warrant_id: warrant.id, sequence, previous, payload_hash });
    previous = entry.entry_hash;
  }
  const root = leafHash(Uint8Array.fromHex(previous ?? ""));
  const [origin = ""] = anchor.checkpoint.split("\n");
  const text = formatCheckpoint({ origin, size: 1, root, extensions: [] });
  const publicKey = Uint8Array.fromBase64(jwks.keys[0]!.x, { alphabet: "base64url" });
  const key = noteKey(origin, "ed25519", publicKey, sha256Bytes);
  const checkpoint = formatSignedNote({ text, lines: [await signText(text, key, signBytes)] });
  Object.assign(anchor, { leaf_index: 0, tree_size: 1, root: root.toHex(), proof: [], checkpoint });
}

/** What is verified against other keys than those that signed. */
function* withOtherKeys({ jwks }: Case): Generator<readonly [name: string, jwks: object]> {
  const { keys } = JSON.parse(jwks) as { keys: readonly Json[] };
  const [other] = createTokens(newSigningKey()).jwks.keys;
  yield ["the keys of another instance", { keys: [other] }];
  yield ["another key under the same name", { keys: keys.map(({ kid }) => ({ ...other, kid })) }];
  yield ["a key of another type", { keys: keys.map((key) => ({ ...key, crv: "X25519" })) }];
  yield ["no keys", { keys: [] }];
}

/**
 * The receipt after a change, with every hash and the log written anew by the instance: with no change, only a witness sees that
 * the log is another.
 */
export async function rewritten(genuine: Genuine, change: Change = () => {}): Promise<Case> {
  const { cosigned, sign } = genuine;
  const receipt = JSON.parse(cosigned.receipt);
  change(receipt);
  await rewrite(receipt, genuine);
  const { signature: _, ...rest } = receipt;
  const signature = await sign(canonicalJson(rest), RECEIPT_TYPE);
  return { ...cosigned, receipt: JSON.stringify({ ...rest, signature }), witnesses: [] };
}

export async function tamperedOf(genuine: Genuine): Promise<readonly Case[]> {
  const { cosigned, sign } = genuine;
  const original = cosigned.receipt;
  const altered = (change: Change): Json => {
    const receipt = JSON.parse(original);
    change(receipt);
    if (JSON.stringify(receipt) === original) throw new Error("a change that changes nothing");
    return receipt;
  };
  const cases: Case[] = Object.entries(BY_ANYBODY).map(([name, change]) => ({
    ...{ ...cosigned, name: `altered: ${name}` },
    receipt: JSON.stringify(altered(change)),
  }));
  for (const [name, change] of Object.entries(BY_THE_INSTANCE)) {
    const { signature: _, ...rest } = altered(change);
    const signature = await sign(canonicalJson(rest), RECEIPT_TYPE);
    cases.push({
      ...{ ...cosigned, name: `signed anew: ${name}` },
      receipt: JSON.stringify({ ...rest, signature }),
    });
  }
  for (const [name, change] of Object.entries(REWRITTEN))
    cases.push({ ...(await rewritten(genuine, change)), name: `rewritten: ${name}` });
  const unseen = await rewritten(genuine);
  cases.push({ ...unseen, name: "rewritten, and not as the witness saw it", witnesses: cosigned.witnesses });
  for (const [name, leaf] of [
    ["a leaf after the only one", 1],
    ["a leaf before it", -1],
  ] as const) {
    const { signature: _, ...rest } = JSON.parse(unseen.receipt);
    rest.anchor.leaf_index = leaf;
    const signature = await sign(canonicalJson(rest), RECEIPT_TYPE);
    cases.push({ ...unseen, name: `rewritten: ${name}`, receipt: JSON.stringify({ ...rest, signature }) });
  }
  const { signature: _, ...rest } = JSON.parse(original);
  const voucher = await sign(canonicalJson(rest), "holdfast-voucher+jwt");
  cases.push({
    ...{ ...cosigned, name: "a signature of another type" },
    receipt: JSON.stringify({ ...rest, signature: voucher }),
  });
  // No canonical form has a lone surrogate, so it is written by hand.
  const surrogate = (text: string): string => text.replace("LONE", "\\ud800");
  const lone = { ...rest, more: "LONE" };
  const signature = await sign(surrogate(canonicalJson(lone)), RECEIPT_TYPE);
  cases.push({
    ...{ ...cosigned, name: "signed anew: a lone surrogate" },
    receipt: surrogate(JSON.stringify({ ...lone, signature })),
  });
  for (const [name, jwks] of withOtherKeys(cosigned))
    cases.push({ ...cosigned, name, jwks: JSON.stringify(jwks) });
  return [...cases, ...withOtherWitnesses(cosigned)];
}

function withOtherWitnesses(cosigned: Case): readonly Case[] {
  const [witness = ""] = cosigned.witnesses;
  const [name = "", , encoded = ""] = witness.split("+");
  const bytes = Buffer.from(encoded, "base64");
  bytes[5]! ^= 1;
  const idOf = (text: string) =>
    new Bun.CryptoHasher("sha256").update(`${text}\n`).update(bytes).digest("hex").slice(0, 8);
  const other = `${name}+${idOf(name)}+${bytes.toString("base64")}`;
  return [{ ...cosigned, name: "a witness that has not signed", witnesses: [witness, other] }];
}
