import { describe, expect, test } from "bun:test";
import {
  createHash,
  createPrivateKey,
  createPublicKey,
  type KeyObject,
  sign as signWith,
  verify as verifyWith,
} from "node:crypto";
import {
  cosign,
  formatSignatureLine,
  formatSignedNote,
  formatVerifierKey,
  isKeyName,
  type NoteKey,
  noteKey,
  parseSignedNote,
  parseVerifierKey,
  type Sign,
  signText,
  type Verify,
  verifyNote,
} from "../../src/core/signed-note.ts";

const sha256 = (bytes: Uint8Array): Uint8Array => createHash("sha256").update(bytes).digest();

const verify: Verify = (publicKey, message, signature) => {
  const x = Buffer.from(publicKey).toString("base64url");
  return verifyWith(
    null,
    message,
    createPublicKey({ key: { kty: "OKP", crv: "Ed25519", x }, format: "jwk" }),
    signature,
  );
};

/** A private key from its 32 bytes: PKCS8 with nothing else in it. */
const privateKeyOf = (seed: Uint8Array): KeyObject =>
  createPrivateKey({
    key: Buffer.concat([Buffer.from("302e020100300506032b657004220420", "hex"), seed]),
    format: "der",
    type: "pkcs8",
  });
const signerOf =
  (seed: Uint8Array): Sign =>
  (message) =>
    new Uint8Array(signWith(null, message, privateKeyOf(seed)));
const publicKeyOf = (seed: Uint8Array): Uint8Array =>
  new Uint8Array(
    Buffer.from(createPublicKey(privateKeyOf(seed)).export({ format: "jwk" }).x ?? "", "base64url"),
  );

/** The vectors of golang.org/x/mod/sumdb/note, the format's first implementation. */
const PETER = "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW";
const PETER_SEED = Buffer.from("AYEKFALVFGyNhPJEMzD1QIDr+Y7hfZx09iUvxdXHKDFz", "base64").subarray(1);
const ENOCH = "EnochRoot+af0cfe78+ATtqJ7zOtqQtYqOo0CpvDXNlMhV3HeJDpjrASKGLWdop";
const TEXT =
  "If you think cryptography is the answer to your problem,\nthen you don't know what your problem is.\n";
const PETER_LINE =
  "— PeterNeumann x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZb6KE6RyyBwJnAM=\n";
const ENOCH_LINE =
  "— EnochRoot rwz+eBzmZa0SO3NbfRGzPCpDckykFXSdeX+MNtCOXm2/5n2tiOHp+vAF1aGrQ5ovTG01oOTGwnWLox33WWd1RvMc+QQ=\n";

const keyOf = (text: string): NoteKey => {
  const key = parseVerifierKey(text, sha256);
  if (!key) throw new Error(`no key: ${text}`);
  return key;
};
const peter = keyOf(PETER);
const enoch = keyOf(ENOCH);

const opened = async (note: string, keys: readonly NoteKey[]): Promise<readonly string[] | null> => {
  const parsed = parseSignedNote(note);
  const verified = parsed && (await verifyNote(parsed, keys, verify));
  return verified?.map(({ key }) => key.name) ?? null;
};

describe("a verifier key", () => {
  const published = [
    PETER,
    ENOCH,
    // github.com/transparency-dev/formats, note_cosigv1_test.go: a log's key, and a witness's.
    "TEST+7997405c+AQcC+FTVKf0jlTdHDY3rbevmnKxxPjigCXlVtGe6RIr6",
    "remora.n621.de+da77ade7+BOvN63jn/bLvkieywe8R6UYAtVtNbZpXh34x7onlmtw2",
  ];
  for (const text of published) {
    test(`${text} is read, and written the same`, () => expect(formatVerifierKey(keyOf(text))).toBe(text));
  }

  test("says what it signs", () => {
    expect(peter.type).toBe("ed25519");
    expect(keyOf(published[3] ?? "").type).toBe("cosignature");
  });

  test("no part of one, and none with another character, is a key", () => {
    for (let from = 0; from <= PETER.length; from++) {
      for (let to = from + 1; to <= PETER.length; to++) {
        if (from === 0 && to === PETER.length) continue;
        expect(parseVerifierKey(PETER.slice(from, to), sha256)).toBeNull();
      }
      const other = String.fromCharCode(PETER.charCodeAt(from) + 1);
      if (from < PETER.length) {
        expect(parseVerifierKey(PETER.slice(0, from) + other + PETER.slice(from + 1), sha256)).toBeNull();
      }
    }
  });

  const refused = [
    [
      "a key that is too long, its id adjusted",
      "PeterNeumann+cc469956+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TWBADKEY==",
    ],
    [
      "an unknown type, its id adjusted",
      "PeterNeumann+173116ae+ZRpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW",
    ],
    ["two parts", "bananas.sigstore.dev+12344556"],
    ["what is not base64", "rekor.sigstore.dev+12345678+THIS_IS_NOT_BASE64!"],
    ["an id in upper case", PETER.replace("c74f20a3", "C74F20A3")],
  ] as const;
  for (const [name, text] of refused) {
    test(`${name} is refused`, () => expect(parseVerifierKey(text, sha256)).toBeNull());
  }
});

describe("signing", () => {
  test("writes the note of the published vector", async () => {
    const line = await signText(TEXT, peter, signerOf(PETER_SEED));
    expect(formatSignedNote({ text: TEXT, lines: [line] })).toBe(`${TEXT}\n${PETER_LINE}`);
    expect(noteKey("PeterNeumann", "ed25519", publicKeyOf(PETER_SEED), sha256)).toEqual(peter);
  });

  test("a text that does not end in a newline, or has a control character, is a fault", async () => {
    const sign = signerOf(PETER_SEED);
    expect(signText("abc", peter, sign)).rejects.toThrow("lines without control characters");
    expect(signText("a\tbc\n", peter, sign)).rejects.toThrow("lines without control characters");
    expect(cosign("abc", peter, 1, sign)).rejects.toThrow("lines without control characters");
  });
});

describe("reading a note", () => {
  test("a text with empty lines ends at the last one", () => {
    const text = "one\n\ntwo\n\n";
    const parsed = parseSignedNote(`${text}\n${PETER_LINE}`);
    expect(parsed?.text).toBe(text);
    expect(parsed && formatSignedNote(parsed)).toBe(`${text}\n${PETER_LINE}`);
  });

  test("the example of the specification is read and written the same", () => {
    const note =
      "Ognuno sta solo sul cuor della terra\ntrafitto da un raggio di sole:\n\ned è subito sera.\n\n— quasimodo.example/salvatore NnugSzTjtVAewIS+Z/iJhUPeFDkO/5QQ2i5ddnGITLlC+EhfLW9oJKONrMouFSQU0xMcXxj99ihAQwaqP3ZekRwNtIc=\n";
    const parsed = parseSignedNote(note);
    expect(parsed?.lines.map(({ name, id }) => [name, id])).toEqual([
      ["quasimodo.example/salvatore", "367ba04b"],
    ]);
    expect(parsed && formatSignedNote(parsed)).toBe(note);
  });

  const malformed: readonly (readonly [string, string])[] = [
    ["the text alone", TEXT],
    ["no signature line", `${TEXT}\n`],
    ["no newline at its end", `${TEXT}\n${PETER_LINE.slice(0, -1)}`],
    ["another character in place of the last newline", `${TEXT}\n${PETER_LINE.slice(0, -1)}X`],
    ["a control character", `\u0001${TEXT}\n${PETER_LINE}`],
    ["a carriage return", `${TEXT.replace("\n", "\r\n")}\n${PETER_LINE}`],
    ["a lone surrogate", `\ud800${TEXT}\n${PETER_LINE}`],
    ["a name with a space", `${TEXT}\n${PETER_LINE.replace("PeterNeumann", "Bad Name")}`],
    [
      "a name with a space that is not ASCII",
      `${TEXT}\n${PETER_LINE.replace("PeterNeumann", "Bad\u0085Name")}`,
    ],
    ["a name with a plus", `${TEXT}\n${PETER_LINE.replace("PeterNeumann", "Bad+Name")}`],
    ["a line that is no signature", `${TEXT}\n${PETER_LINE}Unexpected line.\n`],
    ["a line that begins with a hyphen", `${TEXT}\n${PETER_LINE.replace("—", "-")}`],
    ["base64 without its padding", `${TEXT}\n${PETER_LINE.replace("=", "")}`],
    ["base64 that is not canonical", `${TEXT}\n${PETER_LINE.replace("JnAM=", "JnAN=")}`],
    ["an id without a signature", `${TEXT}\n— PeterNeumann x08gow==\n`],
    ["101 signatures", `${TEXT}\n${PETER_LINE.repeat(101)}`],
    ["more than the longest note", `${"a".repeat(160 * 1024)}\n\n${PETER_LINE}`],
  ];
  for (const [name, note] of malformed) {
    test(`${name}: not a note`, () => expect(parseSignedNote(note)).toBeNull());
  }

  test("16 signatures of the largest kind are read", () => {
    const line = formatSignatureLine({ name: "w", id: "00000001", signature: new Uint8Array(5_000) });
    expect(parseSignedNote(`${TEXT}\n${line.repeat(16)}`)?.lines).toHaveLength(16);
  });
});

describe("verifying a note", () => {
  const both = `${TEXT}\n${PETER_LINE}${ENOCH_LINE}`;
  test("lines of known keys verify, and others are passed over", async () => {
    expect(await opened(both, [peter])).toEqual(["PeterNeumann"]);
    expect(await opened(both, [peter, enoch])).toEqual(["PeterNeumann", "EnochRoot"]);
    expect(await opened(both, [])).toEqual([]);
  });

  test("a line that has the name or the id of a known key, but not both, is passed over", async () => {
    expect(await opened(`${TEXT}\n${PETER_LINE.replace("PeterNeumann", "Carmen")}`, [peter])).toEqual([]);
    expect(await opened(`${TEXT}\n${PETER_LINE.replace("x08g", "xxxx")}`, [peter])).toEqual([]);
  });

  test("a line of a known key that does not verify spoils the note", async () => {
    const forged = PETER_LINE.replace("9UG", "9UH");
    expect(await opened(`${TEXT}\n${forged}${ENOCH_LINE}`, [peter, enoch])).toBeNull();
    expect(await opened(`${TEXT}\n${PETER_LINE}${forged}`, [peter])).toBeNull();
    const longer = `${PETER_LINE.slice(0, 60)}ABCD${PETER_LINE.slice(60)}`;
    expect(await opened(`${TEXT}\n${longer}`, [peter])).toBeNull();
  });

  test("no character of the text can change", async () => {
    for (let at = 0; at < TEXT.length; at++) {
      const changed = `${TEXT.slice(0, at)}~${TEXT.slice(at + 1)}`;
      expect(await opened(`${changed}\n${PETER_LINE}`, [peter])).toBeNull();
    }
  });
});

describe("a cosignature", () => {
  const text = "test\n123\nf+7CoKgXKE/tNys9TTXcr/ad6U/K3xvznmzew9y6SP0=\n";
  const witness = noteKey("witness.example/w1", "cosignature", publicKeyOf(PETER_SEED), sha256);
  const log = noteKey("witness.example/w1", "ed25519", publicKeyOf(PETER_SEED), sha256);

  test("is of the text and the time, as the specification writes them", async () => {
    const messages: string[] = [];
    const line = await cosign(text, witness, 1_679_315_147, (message) => {
      messages.push(new TextDecoder().decode(message));
      return new Uint8Array(64).fill(7);
    });
    expect(messages).toEqual([`cosignature/v1\ntime 1679315147\n${text}`]);
    expect(Buffer.from(line.signature.subarray(0, 8)).toString("hex")).toBe("00000000641850cb");
    expect(line.signature).toHaveLength(72);
  });

  test("gives the time of the published example", async () => {
    // github.com/transparency-dev/formats, note_cosigv1_test.go. Its key is not published.
    const published =
      "— w ZGhGuQAAAABm/qTPeyKXD+R2rzyQsxPiP8mXum7qq/iF0u4vanlqJyocWODBt97w9uL+8qT7S5gxEHWWOworDcFiEBYJXORmnFBOBA==\n";
    const note = parseSignedNote(`${text}\n${published}`);
    const key = { ...witness, name: "w", id: "646846b9" };
    const verified = note && (await verifyNote(note, [key], () => true));
    expect(verified?.map(({ timestamp }) => timestamp)).toEqual([1_727_964_367]);
  });

  test("verifies with its key and gives its time", async () => {
    const line = await cosign(text, witness, 1_727_964_367, signerOf(PETER_SEED));
    const verified = await verifyNote({ text, lines: [line] }, [witness], verify);
    expect(verified).toEqual([{ key: witness, line, timestamp: 1_727_964_367 }]);
  });

  test("does not verify at another time, over another text, or cut short", async () => {
    const line = await cosign(text, witness, 1_727_964_367, signerOf(PETER_SEED));
    const later = { ...line, signature: line.signature.with(7, 0) };
    expect(await verifyNote({ text, lines: [later] }, [witness], verify)).toBeNull();
    expect(await verifyNote({ text: `${text}x\n`, lines: [line] }, [witness], verify)).toBeNull();
    const short = { ...line, signature: line.signature.subarray(0, 71) };
    expect(await verifyNote({ text, lines: [short] }, [witness], verify)).toBeNull();
    // Whatever a verifier says of it.
    for (const bytes of [0, 7, 8, 71, 73]) {
      const other = { ...line, signature: new Uint8Array(bytes) };
      expect(await verifyNote({ text, lines: [other] }, [witness], () => true)).toBeNull();
    }
  });

  test("a time that no number holds exactly is refused, whoever signed it", async () => {
    const line = await cosign(text, witness, 2 ** 53, signerOf(PETER_SEED));
    expect(await verifyNote({ text, lines: [line] }, [witness], verify)).toBeNull();
  });

  test("is not the signature of a log with the same key, nor the other way round", async () => {
    const line = await cosign(text, witness, 1_727_964_367, signerOf(PETER_SEED));
    expect(witness.id).not.toBe(log.id);
    expect(await verifyNote({ text, lines: [line] }, [log], verify)).toEqual([]);
    const asLog = { ...(await signText(text, log, signerOf(PETER_SEED))), id: witness.id };
    expect(await verifyNote({ text, lines: [asLog] }, [witness], verify)).toBeNull();
  });
});

test("a key's name has no space, plus or control character, and is not empty or endless", () => {
  for (const name of ["a", "holdfast/inst_01", "example.com/log42", "é"]) expect(isKeyName(name)).toBeTrue();
  for (const name of ["", "a b", "a\u00a0b", "a+b", "a\u0001", "\ud800", "a".repeat(256)]) {
    expect(isKeyName(name)).toBeFalse();
  }
});
