/**
 * Verifies a receipt as the page on receipts says (src/docs/receipts.md), with what browsers, Node and Bun have: WebCrypto.
 * `verify(the receipt's text, the text of the JWKS, [the keys of witnesses])` rejects and says why, where it does not hold.
 */
import { canonical, hashOf, must, mustBeSame, mustBeSigned, unpadded, utf8 } from "./basics.js";
import { checkAnchor } from "./log.js";

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
  if (anchor) await checkAnchor(anchor, trace.at(-1).entry_hash, keys, witnesses);
}
