import { appendFileSync, closeSync, openSync, readSync, statSync, truncateSync } from "node:fs";

/**
 * The end of a backup: a line with the digest of all before it, so that what is lost or changed anywhere in the file is found,
 * also where no audit looks. The engine does not read that far.
 */
const FORMAT = 1;
const checksumOf = (digest: string): string => `\nholdfast backup ${FORMAT} ${digest}\n`;
const CHECKSUM = /^\nholdfast backup (\d) ([0-9a-f]{64})\n$/;
const CHECKSUM_BYTES = checksumOf("0".repeat(64)).length;

const CHUNK_BYTES = 1024 * 1024;

export const appendChecksum = (file: string): void =>
  appendFileSync(file, checksumOf(readFrom(file, 0, statSync(file).size).digest));

/** Takes the checksum off, or says why not: there is none, it is of a newer form, or the file is not what it was made of. */
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

/** A part of a file, however large: its SHA-256, lower-case hex, and how it starts. */
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
