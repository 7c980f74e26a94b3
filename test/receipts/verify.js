/**
 * Verifies a receipt as the page on receipts says (src/docs/receipts.md), with what browsers, Node and Bun have: WebCrypto.
 *
 *     verify(the receipt's text, the text of the JWKS, [the keys of witnesses])   rejects and says why, where it does not hold
 */

const utf8 = new TextEncoder();

function must(holds, what) {
  if (!holds) throw new Error(what);
}

const bytesOfHex = (hex) => Uint8Array.from(hex.match(/../g), (digits) => Number.parseInt(digits, 16));
const hexOf = (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
const toBase64 = (bytes) => btoa(String.fromCharCode(...bytes));
const fromBase64 = (text) => Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
const toBase64url = (bytes) => toBase64(bytes).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
const join = (...parts) => Uint8Array.from(parts.flatMap((part) => [...part]));

function fromBase64url(text) {
  const bytes = fromBase64(text.replaceAll("-", "+").replaceAll("_", "/"));
  must(toBase64url(bytes) === text, "not base64url");
  return bytes;
}

const sha256 = async (bytes) => new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
const hashOf = async (value) => hexOf(await sha256(utf8.encode(canonical(value))));

async function isSigned(key, message, signature) {
  const imported = await crypto.subtle.importKey("raw", key, "Ed25519", false, ["verify"]);
  return crypto.subtle.verify("Ed25519", imported, signature, message);
}

/** RFC 8785. JavaScript writes strings and numbers as it says, and sorts by UTF-16 units. */
function canonical(value) {
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  if (typeof value === "object" && value !== null) {
    const members = Object.keys(value)
      .sort()
      .map((key) => `${canonical(key)}:${canonical(value[key])}`);
    return `{${members.join(",")}}`;
  }
  must(typeof value !== "number" || Math.abs(value) < 2 ** 53, "a number out of range");
  must(typeof value !== "string" || value.isWellFormed(), "a lone surrogate");
  return JSON.stringify(value);
}

const isSame = (one, other) => canonical(one) === canonical(other);

async function checkSignature({ signature, ...rest }, keys) {
  const [head, body, end, ...more] = signature.split(".");
  const { alg, typ, kid, ...others } = JSON.parse(new TextDecoder().decode(fromBase64url(head)));
  const isOurs = alg === "EdDSA" && typ === "holdfast-receipt+jws" && Object.keys(others).length === 0;
  must(isOurs && more.length === 0, "another header");
  must(toBase64url(utf8.encode(canonical(rest))) === body, "what was signed is something else");
  const signed = await isSigned(keys.get(kid), utf8.encode(`${head}.${body}`), fromBase64url(end));
  must(signed, "not the key's signature");
}

async function checkTrace(mode, warrant, trace) {
  must(warrant.spec === null || (await hashOf(warrant.spec)) === warrant.spec_hash, "spec_hash is wrong");
  const { id: warrant_id, amount, asset, payee, spec_hash, policy_version, rules_hash } = warrant;
  const terms = { warrant_id, mode, amount, asset, payee, spec_hash, policy_version, rules_hash };
  let previous = null;
  let state = null;
  for (const [sequence, entry] of trace.entries()) {
    const { payload, payload_hash } = entry;
    const link = { warrant_id, sequence, previous, payload_hash };
    must((await hashOf(payload)) === payload_hash, `payload_hash of entry ${sequence}`);
    must((await hashOf(link)) === entry.entry_hash, `entry_hash of entry ${sequence}`);
    must(
      payload.from === state && payload.version === sequence + 1 && entry.sequence === sequence,
      "the order",
    );
    must(isSame({ ...payload, ...terms }, payload), `the terms of entry ${sequence}`);
    const { to, from, actor, recorded_at, released_bps: share } = payload;
    must(
      isSame({ ...entry, to, from, actor, recorded_at, rules_hash }, entry),
      `what entry ${sequence} says`,
    );
    const isPart = to === "partially_released";
    const fits = isPart ? share > 0 && share < 10_000 : share === (to === "released" ? 10_000 : null);
    must(fits, `the share of entry ${sequence}`);
    [previous, state] = [entry.entry_hash, to];
  }
  const [first, { released_bps, recorded_at: settled_at }] = [trace[0].payload, trace.at(-1).payload];
  const ends = { state, released_bps, opened_at: first.recorded_at, settled_at };
  must(isSame({ ...warrant, ...ends }, warrant), "the end");
  must(["released", "partially_released", "refunded", "expired"].includes(state), "it is not settled");
}

async function checkInclusion(entryHash, { leaf_index, tree_size, proof, root }) {
  let [f, s] = [BigInt(leaf_index), BigInt(tree_size) - 1n];
  must(f <= s, "no such leaf");
  let node = await sha256(join([0], bytesOfHex(entryHash)));
  for (const other of proof.map(bytesOfHex)) {
    must(s > 0n, "the proof is too long");
    const isRight = f % 2n === 1n || f === s;
    node = await sha256(isRight ? join([1], other, node) : join([1], node, other));
    for (; isRight && f % 2n === 0n && f > 0n; s /= 2n) f /= 2n;
    [f, s] = [f / 2n, s / 2n];
  }
  must(s === 0n && hexOf(node) === root, "the entry is not in the tree");
}

async function checkCheckpoint({ checkpoint, tree_size, root, chain_ref }, keys, witnesses) {
  const end = checkpoint.lastIndexOf("\n\n") + 1;
  const text = checkpoint.slice(0, end);
  const [origin, size, encoded] = text.split("\n");
  must(size === String(tree_size) && hexOf(fromBase64(encoded)) === root, "another checkpoint");
  const [instance, place] = [origin.replace("holdfast/", "local:"), (chain_ref ?? "").split("#")[0]];
  must(instance !== origin && (place === instance || !place.startsWith("local:")), "another log");
  const logs = [...keys.values()].map((key) => ({ name: origin, key: join([1], key) }));
  const wanted = witnesses.map((line) => {
    const [name, , ...key] = line.split("+");
    return { name, key: fromBase64(key.join("+")) };
  });
  const found = new Set();
  for (const line of checkpoint.slice(end + 1, -1).split("\n")) {
    const [, name, encoded] = line.split(" ");
    const data = fromBase64(encoded);
    for (const known of [...logs, ...wanted]) {
      const id = (await sha256(join(utf8.encode(`${known.name}\n`), known.key))).slice(0, 4);
      if (known.name !== name || hexOf(id) !== hexOf(data.slice(0, 4))) continue;
      const at = known.key[0] === 4 ? 12 : 4;
      const time = at === 12 ? new DataView(data.buffer).getBigUint64(4) : null;
      const message = utf8.encode(time === null ? text : `cosignature/v1\ntime ${time}\n${text}`);
      must(await isSigned(known.key.slice(1), message, data.slice(at)), `the signature of ${name}`);
      found.add(known);
    }
  }
  must(
    logs.some((log) => found.has(log)),
    "the log has not signed its checkpoint",
  );
  must(
    wanted.every((witness) => found.has(witness)),
    "a witness has not signed the checkpoint",
  );
}

export async function verify(receiptText, jwksText, witnesses = []) {
  const [receipt, jwks] = [JSON.parse(receiptText), JSON.parse(jwksText)];
  const keys = new Map(jwks.keys.map(({ kid, x }) => [kid, fromBase64url(x)]));
  for (const { kid, crv, kty, x } of jwks.keys) {
    const thumbprint = await sha256(utf8.encode(canonical({ crv, kty, x })));
    must(toBase64url(thumbprint) === kid && crv === "Ed25519", "not what its kid says");
  }
  await checkSignature(receipt, keys);
  await checkTrace(receipt.mode, receipt.warrant, receipt.trace);
  must(receipt.anchor || witnesses.length === 0, "no witness has seen it yet");
  if (!receipt.anchor) return;
  await checkInclusion(receipt.trace.at(-1).entry_hash, receipt.anchor);
  await checkCheckpoint(receipt.anchor, keys, witnesses);
}
