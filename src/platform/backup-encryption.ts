import { closeSync, fsyncSync, openSync, readSync, renameSync, writeSync } from "node:fs";
import { type Refusal, refuseField } from "../core/errors.ts";

/**
 * Backups are encrypted as files of age (age-encryption.org/v1): scrypt makes a key of the passphrase, and ChaCha20-Poly1305
 * encrypts in pieces of 64 KiB. So its own tools open them too (docs/operating, "Backups"). The library is loaded only where there is
 * something to encrypt.
 */

const CHUNK_BYTES = 1024 * 1024;

/** How an encrypted backup begins. Nothing else is given to the library, which would read a header of any length. */
const HEADER =
  /^age-encryption\.org\/v1\n-> scrypt [A-Za-z0-9+/]{22} (?:1[0-8]|[1-9])\n[A-Za-z0-9+/]{43}\n--- [A-Za-z0-9+/]{43}\n/;
const HEADER_BYTES_MAX = 256;
const BEGINNING = "age-encryption.org/";

/** Encrypts a file into another one, which is there and empty. The memory that it takes does not depend on their size. */
export async function encryptFile(from: string, to: string, passphrase: string): Promise<void> {
  const { Encrypter } = await import("age-encryption");
  const encrypter = new Encrypter();
  encrypter.setPassphrase(passphrase);
  await throughFiles(from, to, (plain) => encrypter.encrypt(plain));
}

/**
 * Decrypts a file in its place; one that is not encrypted stays as it is. Refused where the passphrase is missing or another,
 * and where the file is damaged.
 */
export async function decryptInPlace(file: string, passphrase: string | null): Promise<Refusal | null> {
  const beginning = beginningOf(file);
  if (!beginning.startsWith(BEGINNING)) return null;
  if (passphrase === null)
    return refuseField("--passphrase-file", "is missing, and this backup is encrypted: give its passphrase");
  if (!HEADER.test(beginning)) return refuseField("file", "it is encrypted, but not with a passphrase");
  const { Decrypter } = await import("age-encryption");
  const decrypter = new Decrypter();
  decrypter.addPassphrase(passphrase);
  const plain = `${file}.decrypted`;
  closeSync(openSync(plain, "wx", 0o600));
  try {
    await throughFiles(file, plain, (encrypted) => decrypter.decrypt(encrypted));
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    // The disk's own failures have a code.
    if (code !== undefined) throw error;
    return message.startsWith("no identity matched")
      ? refuseField("--passphrase-file", "is not the passphrase that this backup was encrypted to")
      : refuseField("file", `it is damaged: it cannot be decrypted (${message})`);
  }
  renameSync(plain, file);
  return null;
}

function beginningOf(file: string): string {
  const bytes = Buffer.alloc(HEADER_BYTES_MAX);
  const descriptor = openSync(file, "r");
  try {
    return bytes.toString("latin1", 0, readSync(descriptor, bytes));
  } finally {
    closeSync(descriptor);
  }
}

type Bytes = ReadableStream<Uint8Array>;

async function throughFiles(
  from: string,
  to: string,
  change: (bytes: Bytes) => Promise<Bytes>,
): Promise<void> {
  const source = openSync(from, "r");
  const target = openSync(to, "w");
  try {
    for await (const chunk of await change(readInPieces(source))) writeWhole(target, chunk);
    // No file gets its final name before it is on disk.
    fsyncSync(target);
  } finally {
    closeSync(source);
    closeSync(target);
  }
}

/** A file, read piece by piece as it is asked for. */
const readInPieces = (descriptor: number): Bytes =>
  new ReadableStream(
    {
      pull(controller) {
        const chunk = new Uint8Array(CHUNK_BYTES);
        const bytes = readSync(descriptor, chunk);
        if (bytes === 0) controller.close();
        else controller.enqueue(chunk.subarray(0, bytes));
      },
    },
    { highWaterMark: 0 },
  );

function writeWhole(descriptor: number, bytes: Uint8Array): void {
  for (let written = 0; written < bytes.length; ) {
    written += writeSync(descriptor, bytes, written, bytes.length - written);
  }
}
