import { createCipheriv, createDecipheriv, createHmac, randomBytes } from "node:crypto";

/**
 * Encrypts secrets that must be read again, such as the signing secrets of webhooks. The ledger stores the
 * encrypted text. It also shows what this instance has written, or another one with the same master key.
 */
export type Vault = {
  /** Encrypts. `name` says what the secret belongs to; it cannot be decrypted under another name. */
  encrypt(secret: string, name: string): string;
  /** Decrypts. Throws where the text was not encrypted with this key, under this name. */
  decrypt(encrypted: string, name: string): string;
  /** HMAC-SHA256 of a text, under a key that is derived for what the name says. */
  mac(text: string, name: string): Buffer;
};

const CIPHER = "aes-256-gcm";
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
export const MASTER_KEY_BYTES = 32;

/**
 * AES-256-GCM with the instance's master key. The encrypted text is base64 of the nonce, the tag and the
 * ciphertext.
 */
export function createVault(masterKey: Uint8Array): Vault {
  return {
    encrypt(secret, name) {
      const nonce = randomBytes(NONCE_BYTES);
      const cipher = createCipheriv(CIPHER, masterKey, nonce).setAAD(Buffer.from(name));
      const text = Buffer.concat([cipher.update(secret, "utf8"), cipher.final()]);
      return Buffer.concat([nonce, cipher.getAuthTag(), text]).toString("base64");
    },
    decrypt(encrypted, name) {
      const bytes = Buffer.from(encrypted, "base64");
      const nonce = bytes.subarray(0, NONCE_BYTES);
      const decipher = createDecipheriv(CIPHER, masterKey, nonce, { authTagLength: TAG_BYTES })
        .setAAD(Buffer.from(name))
        .setAuthTag(bytes.subarray(NONCE_BYTES, NONCE_BYTES + TAG_BYTES));
      const text = bytes.subarray(NONCE_BYTES + TAG_BYTES);
      return Buffer.concat([decipher.update(text), decipher.final()]).toString("utf8");
    },
    mac(text, name) {
      const key = createHmac("sha256", masterKey).update(`mac ${name}`).digest();
      return createHmac("sha256", key).update(text).digest();
    },
  };
}
