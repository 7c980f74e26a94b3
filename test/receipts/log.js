/** The third question of the page on receipts (src/docs/receipts.md): whether it could be changed later without anybody seeing it. */
import { join, must, mustBeSigned, sha256, utf8 } from "./basics.js";

/** Rejects where the entry of this hash is not in the tree of the anchor, or where its log or a witness has not signed that. */
export async function checkAnchor(anchor, entryHash, keys, witnesses) {
  const leaf = await sha256([0], Uint8Array.fromHex(entryHash));
  const root = await rootOver(leaf, anchor.leaf_index, anchor.tree_size, anchor.proof);
  must(root.toHex() === anchor.root, "the entry is not in the tree");
  await checkCheckpoint(anchor, keys, witnesses);
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
