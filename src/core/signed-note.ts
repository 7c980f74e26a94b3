/**
 * Signed notes (C2SP, signed-note), and the cosignatures of witnesses (C2SP, tlog-cosignature): a text, an empty line, and a line
 * for each signature. Nothing here needs more than a browser has, since receipts are verified there too. Hashing, signing and
 * verifying are arguments.
 */

/** What a key signs: the text itself (0x01), or a statement of a witness about the text at a time (0x04). */
export type NoteKeyType = "ed25519" | "cosignature";

/** A public key that is known, by the name and the id that its signature lines begin with. */
export type NoteKey = {
  readonly name: string;
  readonly type: NoteKeyType;
  /** 32 bytes. */
  readonly publicKey: Uint8Array;
  /** The first four bytes of a hash of the rest, as 8 hex digits in lower case. */
  readonly id: string;
};

export type SignatureLine = {
  readonly name: string;
  readonly id: string;
  /** Without the id before it. */
  readonly signature: Uint8Array;
};

export type SignedNote = {
  /** With its last newline. */
  readonly text: string;
  /** At least one. */
  readonly lines: readonly SignatureLine[];
};

export type Sha256 = (bytes: Uint8Array) => Uint8Array;
/** Signs a message with Ed25519 (RFC 8032). */
export type Sign = (message: Uint8Array) => Uint8Array | Promise<Uint8Array>;
/** Whether a signature is one of Ed25519 (RFC 8032). */
export type Verify = (
  publicKey: Uint8Array,
  message: Uint8Array,
  signature: Uint8Array,
) => boolean | Promise<boolean>;

/** A line that verified, and for a cosignature its time in seconds since 1970. */
export type VerifiedLine = {
  readonly key: NoteKey;
  readonly line: SignatureLine;
  readonly timestamp: number | null;
};

/** 16 signatures of the largest kind must fit (C2SP, signed-note, "Format"); this is a third more. */
export const NOTE_LENGTH_MAX = 160 * 1024;
const SIGNATURES_MAX = 100;
const KEY_NAME_LENGTH_MAX = 255;
const PUBLIC_KEY_BYTES = 32;
const SIGNATURE_BYTES = 64;
const ID_BYTES = 4;
const TIMESTAMP_BYTES = 8;

const TYPE_BYTES = { ed25519: 0x01, cosignature: 0x04 } as const satisfies Record<NoteKeyType, number>;

const SPACE_OR_PLUS = /[\p{White_Space}+]/u;
/** ASCII control characters other than newline. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what a note must not contain.
const CONTROL = /[\u0000-\u0009\u000b-\u001f]/;
const LINE = /^\u2014 ([^ ]+) ([A-Za-z0-9+/]+={0,2})$/;
const BASE64 = /^[A-Za-z0-9+/]*={0,2}$/;

const utf8 = new TextEncoder();

/** Whether a key, a log or a witness may have this name. */
export const isKeyName = (name: string): boolean =>
  name !== "" &&
  name.length <= KEY_NAME_LENGTH_MAX &&
  name.isWellFormed() &&
  !SPACE_OR_PLUS.test(name) &&
  !CONTROL.test(name);

/** A key with its id. Throws on a name that no key may have, and on a public key that is not 32 bytes. */
export function noteKey(name: string, type: NoteKeyType, publicKey: Uint8Array, sha256: Sha256): NoteKey {
  if (!isKeyName(name)) throw new TypeError("no key may have this name");
  if (publicKey.length !== PUBLIC_KEY_BYTES) throw new TypeError("an Ed25519 public key is 32 bytes");
  const hashed = sha256(join(utf8.encode(`${name}\n`), Uint8Array.of(TYPE_BYTES[type]), publicKey));
  return { name, type, publicKey, id: hexOf(hashed.subarray(0, ID_BYTES)) };
}

/** `name+id+base64`, as keys are handed to others (C2SP, signed-note, "Verifier keys"). */
export const formatVerifierKey = ({ name, type, publicKey, id }: NoteKey): string =>
  `${name}+${id}+${toBase64(join(Uint8Array.of(TYPE_BYTES[type]), publicKey))}`;

/** The key that such a text stands for; null where it stands for none of these types, or its id is not that of the rest. */
export function parseVerifierKey(text: string, sha256: Sha256): NoteKey | null {
  const [, name = "", id = "", encoded = ""] =
    /^([^+]+)\+([0-9a-f]{8})\+([A-Za-z0-9+/]{44}={0,2})$/.exec(text) ?? [];
  const bytes = fromBase64(encoded);
  if (!isKeyName(name) || bytes?.length !== 1 + PUBLIC_KEY_BYTES) return null;
  const type = (["ed25519", "cosignature"] as const).find((type) => TYPE_BYTES[type] === bytes[0]);
  if (type === undefined) return null;
  const key = noteKey(name, type, bytes.slice(1), sha256);
  return key.id === id ? key : null;
}

/** The note that a text is; null for every other text. Its signatures are not verified by this. */
export function parseSignedNote(note: string): SignedNote | null {
  if (note.length > NOTE_LENGTH_MAX || !note.isWellFormed() || CONTROL.test(note)) return null;
  const end = note.lastIndexOf("\n\n");
  if (end === -1) return null;
  const lines = parseSignatureLines(note.slice(end + 2));
  return lines && { text: note.slice(0, end + 1), lines };
}

/** One signature line or more, each with its newline; null for every other text. */
export function parseSignatureLines(text: string): readonly SignatureLine[] | null {
  if (!text.endsWith("\n")) return null;
  const lines = text.slice(0, -1).split("\n");
  if (lines.length > SIGNATURES_MAX) return null;
  const parsed = lines.map(parseSignatureLine).filter((line) => line !== null);
  return parsed.length === lines.length ? parsed : null;
}

function parseSignatureLine(text: string): SignatureLine | null {
  const [, name = "", encoded = ""] = LINE.exec(text) ?? [];
  const bytes = fromBase64(encoded);
  if (!isKeyName(name) || bytes === null || bytes.length <= ID_BYTES) return null;
  return { name, id: hexOf(bytes.subarray(0, ID_BYTES)), signature: bytes.slice(ID_BYTES) };
}

export const formatSignatureLine = ({ name, id, signature }: SignatureLine): string =>
  `\u2014 ${name} ${toBase64(join(bytesOfHex(id), signature))}\n`;

export const formatSignedNote = ({ text, lines }: SignedNote): string =>
  `${text}\n${lines.map(formatSignatureLine).join("")}`;

/** The line of a key of type `ed25519`. Throws on a text that no note may have. */
export async function signText(text: string, key: NoteKey, sign: Sign): Promise<SignatureLine> {
  requireText(text);
  return { name: key.name, id: key.id, signature: await sign(utf8.encode(text)) };
}

/**
 * The line of a key of type `cosignature`: it states that the text is of the largest consistent tree that the witness has seen.
 *
 * @param timestamp in seconds since 1970
 */
export async function cosign(
  text: string,
  key: NoteKey,
  timestamp: number,
  sign: Sign,
): Promise<SignatureLine> {
  requireText(text);
  const time = new Uint8Array(TIMESTAMP_BYTES);
  new DataView(time.buffer).setBigUint64(0, BigInt(timestamp));
  return { name: key.name, id: key.id, signature: join(time, await sign(cosigned(text, timestamp))) };
}

function requireText(text: string): void {
  if (!text.endsWith("\n") || !text.isWellFormed() || CONTROL.test(text)) {
    throw new TypeError("a note's text is lines without control characters");
  }
}

/**
 * The lines of known keys. Lines of others are passed over, as they say nothing. Null where a line of a known key does not
 * verify: then the whole note is not to be believed (C2SP, signed-note, "Signatures").
 */
export async function verifyNote(
  { text, lines }: SignedNote,
  keys: readonly NoteKey[],
  verify: Verify,
): Promise<readonly VerifiedLine[] | null> {
  const verified: VerifiedLine[] = [];
  for (const line of lines) {
    const key = keys.find(({ name, id }) => name === line.name && id === line.id);
    if (!key) continue;
    // Whoever repeats a line must not make others verify it each time.
    const same = verified.find((one) => one.key === key && isSameLine(one.line, line));
    const found = same ? { ...same, line } : await verifyLine(text, line, key, verify);
    if (found === null) return null;
    verified.push(found);
  }
  return verified;
}

const isSameLine = (one: SignatureLine, other: SignatureLine): boolean =>
  one.signature.length === other.signature.length &&
  one.signature.every((byte, index) => byte === other.signature[index]);

async function verifyLine(
  text: string,
  line: SignatureLine,
  key: NoteKey,
  verify: Verify,
): Promise<VerifiedLine | null> {
  const isCosignature = key.type === "cosignature";
  const timestampBytes = isCosignature ? TIMESTAMP_BYTES : 0;
  const { signature } = line;
  if (signature.length !== timestampBytes + SIGNATURE_BYTES) return null;
  const timestamp = isCosignature ? timestampOf(signature) : null;
  if (timestamp !== null && !Number.isSafeInteger(timestamp)) return null;
  const message = timestamp === null ? utf8.encode(text) : cosigned(text, timestamp);
  const isGood = await verify(key.publicKey, message, signature.slice(timestampBytes));
  return isGood ? { key, line, timestamp } : null;
}

const timestampOf = (signature: Uint8Array): number =>
  Number(new DataView(signature.buffer, signature.byteOffset).getBigUint64(0));

/** What a cosignature signs (C2SP, tlog-cosignature, "Ed25519 signed message"). */
const cosigned = (text: string, timestamp: number): Uint8Array =>
  utf8.encode(`cosignature/v1\ntime ${timestamp}\n${text}`);

/** The bytes of base64 with its padding, as only one text encodes them; null for every other text. */
export function fromBase64(text: string): Uint8Array | null {
  if (text.length % 4 !== 0 || !BASE64.test(text)) return null;
  const bytes = Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  return toBase64(bytes) === text ? bytes : null;
}

export const toBase64 = (bytes: Uint8Array): string =>
  btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""));

/** In lower case. */
export const hexOf = (bytes: Uint8Array): string =>
  Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");

export const bytesOfHex = (hex: string): Uint8Array =>
  Uint8Array.from(hex.match(/../g) ?? [], (digits) => Number.parseInt(digits, 16));

function join(...parts: readonly Uint8Array[]): Uint8Array {
  const all = new Uint8Array(parts.reduce((length, part) => length + part.length, 0));
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}
