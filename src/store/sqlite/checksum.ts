import { appendFileSync, closeSync, openSync, readSync, statSync, truncateSync } from "node:fs";

/**
 * The version of the last line of a backup. That line has a digest of everything before it, so that damage
 * anywhere in the file is found, also where no audit looks. SQLite ignores the line.
 */
const FORMAT = 1;
const checksumOf = (digest: string): string => `\nholdfast backup ${FORMAT} ${digest}\n`;
const CHECKSUM = /^\nholdfast backup (\d) ([0-9a-f]{64})\n$/;
const CHECKSUM_BYTES = checksumOf("0".repeat(64)).length;

const CHUNK_BYTES = 1024 * 1024;

export const appendChecksum = (file: string): void =>
  appendFileSync(file, checksumOf(readFrom(file, 0, statSync(file).size).digest));

/**
 * Removes the checksum and answers `taken`. Otherwise: there is none, it has a newer form, or the file
 * differs from it.
 */
export function takeChecksum(file: string): "taken" | "none" | "newer" | "wrong" {
  const length = statSync(file).size - CHECKSUM_BYTES;
  if (length < 0) return "none";
  const [, format, digest] = CHECKSUM.exec(readFrom(file, length, CHECKSUM_BYTES).start) ?? [];
  if (format === undefined) return "none";
  if (Number(format) > FORMAT) return "newer";
  if (digest !== readFrom(file, 0, length).digest) return "wrong";
  truncateSync(file, length);
  return "taken";
}

/** Reads a part of a file of any size: its SHA-256 in lower-case hex, and its beginning. */
function readFrom(file: string, position: number, length: number): { digest: string; start: string } {
  const descriptor = openSync(file, "r");
  try {
    const hasher = new Bun.CryptoHasher("sha256");
    const chunk = Buffer.allocUnsafe(Math.min(CHUNK_BYTES, length));
    let start = "";
    for (let read = 0; read < length; ) {
      const bytes = readSync(descriptor, chunk, 0, Math.min(chunk.length, length - read), position + read);
      if (bytes === 0) throw new Error(`${file} became shorter`);
      hasher.update(chunk.subarray(0, bytes));
      if (read === 0) start = chunk.toString("latin1", 0, Math.min(bytes, CHECKSUM_BYTES));
      read += bytes;
    }
    return { digest: hasher.digest("hex"), start };
  } finally {
    closeSync(descriptor);
  }
}
