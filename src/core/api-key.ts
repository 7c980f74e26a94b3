import { sha256 } from "./canonical.ts";
import { MODES, type Mode } from "./roles.ts";

/** An agent's credential; only a hash of the secret is kept. */
export type ApiKey = {
  readonly id: string;
  readonly organisationId: string;
  readonly agentId: string;
  readonly mode: Mode;
  readonly secretHash: string;
  readonly lastFour: string;
  readonly createdAt: number;
  /** When the key ends by itself. It is set when a newer key replaces this one. */
  readonly expiresAt: number | null;
  /** Written by a job, so it may be ten seconds behind. */
  readonly lastUsedAt: number | null;
  readonly revokedAt: number | null;
};

/** A key is a prefix, 30 base62 digits (178 random bits), and 6 digits of CRC-32 (docs/concepts, "Identifiers"). */
const PREFIXES: Readonly<Record<Mode, string>> = { sandbox: "hf_test_", live: "hf_live_" };
const BASE62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const RANDOM_LENGTH = 30;
const CHECKSUM_LENGTH = 6;
const BODY = new RegExp(`^[0-9A-Za-z]{${RANDOM_LENGTH + CHECKSUM_LENGTH}}$`);

function checksum(text: string): string {
  let rest = Bun.hash.crc32(text);
  let digits = "";
  for (let count = 0; count < CHECKSUM_LENGTH; count++) {
    digits = BASE62.charAt(rest % 62) + digits;
    rest = Math.floor(rest / 62);
  }
  return digits;
}

/** A new secret. `randomByte` is a cryptographic source of uniform bytes. */
export function newApiKeySecret(mode: Mode, randomByte: () => number): string {
  let secret = PREFIXES[mode];
  while (secret.length < PREFIXES[mode].length + RANDOM_LENGTH) {
    const byte = randomByte();
    // 248 = 4 × 62. The bytes from 248 up would make some digits more likely than others.
    if (byte < 248) secret += BASE62.charAt(byte % 62);
  }
  return secret + checksum(secret);
}

/** Whether a text has the form and the checksum of a key. A mistyped key fails here, before any look-up. */
export function looksLikeApiKey(secret: string): boolean {
  const prefix = MODES.map((mode) => PREFIXES[mode]).find((candidate) => secret.startsWith(candidate));
  if (prefix === undefined || !BODY.test(secret.slice(prefix.length))) return false;
  return checksum(secret.slice(0, -CHECKSUM_LENGTH)) === secret.slice(-CHECKSUM_LENGTH);
}

/** How a key ended, which cannot be undone; null while it works. */
export function endOf(key: ApiKey, now: number): "revoked" | "expired" | null {
  if (key.revokedAt !== null) return "revoked";
  return key.expiresAt !== null && key.expiresAt <= now ? "expired" : null;
}

/** Only this hash of a secret is stored. A fast hash is safe, since the secret has many random bits. */
export const hashSecret = (secret: string): string => sha256(secret);
