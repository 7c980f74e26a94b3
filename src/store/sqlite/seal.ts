import { appendFileSync, closeSync, openSync, readSync, statSync, truncateSync } from "node:fs";

/**
 * The end of a backup: a line with the digest of all before it, so that what is lost or changed anywhere in the file is found,
 * also where no audit looks. The engine does not read that far.
 */
const FORMAT = 1;
const sealOf = (digest: string): string => `\nholdfast backup ${FORMAT} ${digest}\n`;
const SEAL = /^\nholdfast backup (\d) ([0-9a-f]{64})\n$/;
const SEAL_BYTES = sealOf("0".repeat(64)).length;

const CHUNK_BYTES = 1024 * 1024;

export const sealFile = (file: string): void =>
  appendFileSync(file, sealOf(readFrom(file, 0, statSync(file).size).digest));

/** Takes the seal off, or says why not: there is none, it is of a newer form, or the file is not what was sealed. */
export function unsealFile(file: string): "opened" | "none" | "newer" | "broken" {
  const length = statSync(file).size - SEAL_BYTES;
  if (length < 0) return "none";
  const [, format, digest] = SEAL.exec(readFrom(file, length, SEAL_BYTES).start) ?? [];
  if (format === undefined) return "none";
  if (Number(format) > FORMAT) return "newer";
  if (digest !== readFrom(file, 0, length).digest) return "broken";
  truncateSync(file, length);
  return "opened";
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
      if (read === 0) start = chunk.toString("latin1", 0, Math.min(bytes, SEAL_BYTES));
      read += bytes;
    }
    return { digest: hasher.digest("hex"), start };
  } finally {
    closeSync(descriptor);
  }
}
