import { createPrivateKey, generateKeyPairSync, type KeyObject, sign } from "node:crypto";
import { canonicalJson, sha256Bytes } from "../../src/core/canonical.ts";
import { formatCheckpoint } from "../../src/core/checkpoint.ts";
import { inclusionProof, leafHash, type NodeReader, nodeHash, rootOf } from "../../src/core/merkle.ts";
import { RECEIPT_TYPE } from "../../src/core/receipt/signature.ts";
import { cosign, formatSignedNote, type NoteKey, noteKey, signText } from "../../src/core/signed-note.ts";
import { createTokens, newSigningKey } from "../../src/platform/tokens.ts";
import type { Json } from "./client.ts";

/** An instance that signs receipts as docs/security, "Receipts" says, and a witness: for tests of the verifier alone. */

const signWith = (key: KeyObject) => (message: Uint8Array) => new Uint8Array(sign(null, message, key));
const publicBytes = (key: KeyObject): Uint8Array =>
  Uint8Array.fromBase64(key.export({ format: "jwk" }).x!, { alphabet: "base64url" });

export const ORIGIN = "holdfast/ins_1";
const COSIGNED_AT = 1_900_000_000;

export type Signer = {
  readonly jwks: { readonly keys: readonly Json[] };
  readonly witness: NoteKey;
  /** Signs a receipt; a signature that it has is replaced. */
  sign(receipt: Json, type?: string): Promise<Json>;
  /** Anchors a receipt's last entry at this place among leaves that are nobody's, and signs it. */
  anchor(
    receipt: Json,
    place?: { readonly index?: number; readonly size?: number; readonly chainRef?: string },
  ): Promise<Json>;
  /** A checkpoint as a note with both signatures. */
  checkpoint(size: number, root: Uint8Array, origin?: string): Promise<string>;
};

export function createSigner(): Signer {
  const pem = newSigningKey();
  const tokens = createTokens(`${pem}\n${newSigningKey()}`);
  const logKey = generateKeyPairSync("ed25519");
  const { x } = tokens.jwks.keys[0]!;
  const publicKey = Uint8Array.fromBase64(x, { alphabet: "base64url" });

  const signer = signWith(createPrivateKey(pem));
  const witness = noteKey("witness.example", "cosignature", publicBytes(logKey.publicKey), sha256Bytes);
  const self: Signer = {
    jwks: { keys: [...tokens.jwks.keys] },
    witness,
    async sign({ signature: _, ...rest }, type = RECEIPT_TYPE) {
      return { ...rest, signature: await tokens.sign(canonicalJson(rest), type) };
    },
    async anchor(receipt, { index = 3, size = 7, chainRef = "local:ins_1#1" } = {}) {
      const entryHash: string = receipt.trace.at(-1).entry_hash;
      const leaves = Array.from({ length: size }, (_, at) =>
        leafHash(at === index ? Uint8Array.fromHex(entryHash) : Uint8Array.of(at)),
      );
      const read: NodeReader = (level, at) =>
        level === 0 ? leaves[at]! : nodeHash(read(level - 1, 2 * at), read(level - 1, 2 * at + 1));
      const root = rootOf(size, read);
      const anchor = {
        leaf_index: index,
        tree_size: size,
        root: root.toHex(),
        proof: inclusionProof({ index, size }, read).map((hash) => hash.toHex()),
        checkpoint: await self.checkpoint(size, root),
        chain_ref: chainRef,
      };
      const trace = [...receipt.trace.slice(0, -1), { ...receipt.trace.at(-1), chain_ref: anchor.chain_ref }];
      return self.sign({ ...receipt, trace, anchor });
    },
    async checkpoint(size, root, origin = ORIGIN) {
      const text = formatCheckpoint({ origin, size, root, extensions: [] });
      const key = noteKey(origin, "ed25519", publicKey, sha256Bytes);
      const cosigned = await cosign(text, witness, COSIGNED_AT, signWith(logKey.privateKey));
      return formatSignedNote({ text, lines: [await signText(text, key, signer), cosigned] });
    },
  };
  return self;
}
