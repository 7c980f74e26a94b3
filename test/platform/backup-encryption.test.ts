import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Encrypter, generateX25519Identity, identityToRecipient } from "age-encryption";
import { decryptInPlace } from "../../src/platform/backup-encryption.ts";

/** What is not an encrypted backup as it was made. Encrypting itself costs seconds: test/process/backup.test.ts. */

const PASSPHRASE = "five words drawn at random";
/** Several pieces, and a part of one. */
const PLAIN = Buffer.alloc(200_000, "plain ");

let folder: string;
let file: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "holdfast-age-"));
  file = join(folder, "backup");
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** A file of age, whose passphrase is cheap to try. */
async function encrypted(): Promise<Uint8Array> {
  const encrypter = new Encrypter();
  encrypter.setPassphrase(PASSPHRASE);
  encrypter.setScryptWorkFactor(2);
  return encrypter.encrypt(PLAIN);
}

test("a file of age is decrypted in its place", async () => {
  writeFileSync(file, await encrypted());
  expect(await decryptInPlace(file, PASSPHRASE)).toBeNull();
  expect(readFileSync(file).equals(PLAIN)).toBeTrue();
  expect(readdirSync(folder)).toEqual(["backup"]);
});

test("a file that is not encrypted stays as it is, with a passphrase and without", async () => {
  writeFileSync(file, PLAIN);
  for (const passphrase of [PASSPHRASE, null]) expect(await decryptInPlace(file, passphrase)).toBeNull();
  expect(readFileSync(file).equals(PLAIN)).toBeTrue();
});

describe("refused by name:", () => {
  type Change = (bytes: Buffer) => Buffer | Promise<Buffer>;
  const asText =
    (change: (text: string) => string): Change =>
    (bytes) =>
      Buffer.from(change(bytes.toString("latin1")), "latin1");
  const flipped =
    (at: (bytes: Buffer) => number): Change =>
    (bytes) => {
      bytes[at(bytes)]! ^= 1;
      return bytes;
    };
  const DAMAGED = "file: it is damaged: it cannot be decrypted";
  const OTHERWISE = "file: it is encrypted, but not with a passphrase";
  const REFUSED: readonly (readonly [
    what: string,
    start: string,
    passphrase: string | null,
    change: Change,
  ])[] = [
    ["no passphrase", "--passphrase-file: is missing", null, (bytes) => bytes],
    [
      "another passphrase",
      "--passphrase-file: is not the passphrase",
      "five other words drawn",
      (bytes) => bytes,
    ],
    ["a flipped bit in its middle", DAMAGED, PASSPHRASE, flipped(() => 100_000)],
    ["a flipped bit at its end", DAMAGED, PASSPHRASE, flipped(({ length }) => length - 1)],
    [
      "a changed header",
      DAMAGED,
      PASSPHRASE,
      asText((text) => text.replace(/--- ./, (found) => (found.endsWith("A") ? "--- B" : "--- A"))),
    ],
    ["its last byte missing", DAMAGED, PASSPHRASE, (bytes) => bytes.subarray(0, -1)],
    [
      "its last piece missing",
      DAMAGED,
      PASSPHRASE,
      (bytes) => bytes.subarray(0, bytes.length - (PLAIN.length % 65_536) - 16),
    ],
    ["a byte more", DAMAGED, PASSPHRASE, (bytes) => Buffer.concat([bytes, Buffer.from("x")])],
    [
      "a passphrase that would cost gigabytes to try",
      OTHERWISE,
      PASSPHRASE,
      asText((text) => text.replace(/ 2\n/, " 20\n")),
    ],
    [
      "a header without an end",
      OTHERWISE,
      PASSPHRASE,
      () => Buffer.alloc(1_000_000, "age-encryption.org/v1 "),
    ],
    [
      "a file for somebody's key",
      OTHERWISE,
      PASSPHRASE,
      async () => {
        const encrypter = new Encrypter();
        encrypter.addRecipient(await identityToRecipient(await generateX25519Identity()));
        return Buffer.from(await encrypter.encrypt(PLAIN));
      },
    ],
  ];
  for (const [what, start, passphrase, change] of REFUSED) {
    test(what, async () => {
      writeFileSync(file, await change(Buffer.from(await encrypted())));
      const refused = await decryptInPlace(file, passphrase);
      expect(refused?.message.slice(0, start.length)).toBe(start);
    });
  }
});
