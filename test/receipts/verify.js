/**
 * Verifies a receipt as the page on receipts says (src/docs/receipts.md), with what browsers, Node and Bun have: WebCrypto.
 * `verify(the receipt's text, the text of the JWKS, [the keys of witnesses])` rejects and says why, where it does not hold.
 */
const utf8 = (text) => new TextEncoder().encode(text);
const join = (...parts) => Uint8Array.from(parts.flatMap((part) => [...part]));
const sha256 = async (...parts) => new Uint8Array(await crypto.subtle.digest("SHA-256", join(...parts)));
const hashOf = async (value) => (await sha256(utf8(canonical(value)))).toHex();

function must(holds, what) {
  if (!holds) throw new Error(what);
}

function canonical(value) {
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  if (typeof value === "object" && value !== null) {
    const member = (key) => `${canonical(key)}:${canonical(value[key])}`;
    return `{${Object.keys(value).sort().map(member).join(",")}}`;
  }
  must(typeof value !== "number" || Math.abs(value) < 2 ** 53, "a number out of range");
  must(typeof value !== "string" || value.isWellFormed(), "a lone surrogate");
  return JSON.stringify(value);
}

const mustBeSame = (one, other, what) => must(canonical(one) === canonical(other), what);

function unpadded(text) {
  const bytes = Uint8Array.fromBase64(text, { alphabet: "base64url" });
  must(bytes.toBase64({ alphabet: "base64url", omitPadding: true }) === text, "not base64url");
  return bytes;
}

async function mustBeSigned(key, message, signature, what) {
  const imported = await crypto.subtle.importKey("raw", key, "Ed25519", false, ["verify"]);
  must(await crypto.subtle.verify("Ed25519", imported, signature, message), what);
}

async function rootOver(node, index, size, proof) {
  const isIn = Number.isInteger(index) && index >= 0 && index < size;
  must(isIn && proof.length > 0 === size > 1, "the entry is not in the tree");
  if (size === 1) return node;
  let left = 1;
  while (left * 2 < size) left *= 2;
  const [below, other] = [proof.slice(0, -1), Uint8Array.fromHex(proof.at(-1))];
  if (index < left) return sha256([1], await rootOver(node, index, left, below), other);
  return sha256([1], other, await rootOver(node, index - left, size - left, below));
}

async function checkTrace(mode, warrant, trace) {
  const { id: warrant_id, amount, asset, payee, spec, spec_hash, policy_version, rules_hash } = warrant;
  const terms = { warrant_id, mode, amount, asset, payee, spec_hash, policy_version, rules_hash };
  let [entry_hash, state, released_bps, settled_at] = [null, null, null, null];
  for (const [sequence, entry] of trace.entries()) {
    const payload = { ...entry.payload, ...terms, from: state, version: sequence + 1 };
    const payload_hash = await hashOf(payload);
    entry_hash = await hashOf({ warrant_id, sequence, previous: entry_hash, payload_hash });
    const { to, from, actor, recorded_at, released_bps: share } = payload;
    const copies = { to, from, actor, recorded_at, rules_hash, sequence, payload, payload_hash, entry_hash };
    mustBeSame(entry, { ...entry, ...copies }, `entry ${sequence} does not fit`);
    const fits = { released: share === 10_000, partially_released: share > 0 && share < 10_000 };
    must(fits[to] ?? share === null, `the share of entry ${sequence}`);
    [state, released_bps, settled_at] = [to, share, recorded_at];
  }
  const end = { state, released_bps, opened_at: trace[0].recorded_at, settled_at };
  mustBeSame(warrant, { ...warrant, ...end }, "it did not end so");
  must(["released", "partially_released", "refunded", "expired"].includes(state), "it is not settled");
  must(spec === null || (await hashOf(spec)) === spec_hash, "another spec");
}

async function checkCheckpoint({ checkpoint, tree_size, root, chain_ref }, keys, witnesses) {
  const end = checkpoint.lastIndexOf("\n\n") + 1;
  const text = checkpoint.slice(0, end);
  const [log, size, hash] = text.split("\n");
  must(size === String(tree_size) && Uint8Array.fromBase64(hash).toHex() === root, "another checkpoint");
  const [instance, place] = [log.replace("holdfast/", "local:"), (chain_ref ?? "").split("#")[0]];
  must(instance !== log && (place === instance || !place.startsWith("local:")), "another log");
  const logs = [...keys.values()].map((key) => ({ owner: log, key: join([1], key) }));
  const wanted = witnesses.map((line) => {
    const [, owner, key] = /^(.*?)\+.*?\+(.*)$/.exec(line);
    return { owner, key: Uint8Array.fromBase64(key) };
  });
  const found = new Set();
  for (const line of checkpoint.slice(end + 1, -1).split("\n")) {
    const [, name, encoded] = line.split(" ");
    const data = Uint8Array.fromBase64(encoded);
    for (const known of [...logs, ...wanted]) {
      const id = (await sha256(utf8(`${known.owner}\n`), known.key)).slice(0, 4);
      if (known.owner !== name || id.toHex() !== data.slice(0, 4).toHex()) continue;
      const at = known.key[0] === 4 ? 12 : 4;
      const time = at === 12 ? `cosignature/v1\ntime ${new DataView(data.buffer).getBigUint64(4)}\n` : "";
      await mustBeSigned(known.key.slice(1), utf8(time + text), data.slice(at), `the signature of ${name}`);
      found.add(known);
    }
  }
  const hasSigned = (one) => found.has(one);
  must(logs.some(hasSigned), "the log has not signed its checkpoint");
  must(wanted.every(hasSigned), "a witness has not signed the checkpoint");
}

export async function verify(receiptText, jwksText, witnesses = []) {
  const [{ signature, ...receipt }, jwks] = [JSON.parse(receiptText), JSON.parse(jwksText)];
  const keys = new Map(jwks.keys.map(({ kid, x }) => [kid, unpadded(x)]));
  for (const { kid, crv, kty, x } of jwks.keys) {
    const thumbprint = await hashOf({ crv, kty, x });
    must(unpadded(kid).toHex() === thumbprint && crv === "Ed25519", "a key is not what its kid says");
  }
  const [head, body, end, ...more] = signature.split(".");
  const { kid, ...header } = JSON.parse(new TextDecoder().decode(unpadded(head)));
  mustBeSame([header, more], [{ alg: "EdDSA", typ: "holdfast-receipt+jws" }, []], "another header");
  must(unpadded(body).toHex() === utf8(canonical(receipt)).toHex(), "what was signed is something else");
  await mustBeSigned(keys.get(kid), utf8(`${head}.${body}`), unpadded(end), "not the key's signature");
  const { mode, warrant, trace, anchor } = receipt;
  await checkTrace(mode, warrant, trace);
  must(anchor || witnesses.length === 0, "no witness has seen it yet");
  if (!anchor) return;
  const leaf = await sha256([0], Uint8Array.fromHex(trace.at(-1).entry_hash));
  const root = await rootOver(leaf, anchor.leaf_index, anchor.tree_size, anchor.proof);
  must(root.toHex() === anchor.root, "the entry is not in the tree");
  await checkCheckpoint(anchor, keys, witnesses);
}
