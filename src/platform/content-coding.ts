import { promisify } from "node:util";
import { brotliDecompress, gunzip, inflate, inflateRaw, type ZlibOptions, zstdDecompress } from "node:zlib";

/** HTTP content codings, undone within a limit (RFC 9110, 8.4). */
export type Decoded =
  | { readonly body: Uint8Array }
  | { readonly problem: "too_large" | "malformed" | "unknown" };

type Decode = (data: Uint8Array, options: ZlibOptions) => Promise<Uint8Array>;

const decodeGzip = promisify(gunzip) as Decode;
const decodeZlib = promisify(inflate) as Decode;
const decodeRaw = promisify(inflateRaw) as Decode;

/** "deflate" means zlib's format, but some servers send the bare one: its first byte cannot be zlib's. */
const decodeDeflate: Decode = (data, options) =>
  ((data[0] ?? 0) & 0x0f) === 8 ? decodeZlib(data, options) : decodeRaw(data, options);

const decodeZstdFrames = promisify(zstdDecompress) as Decode;

/** The library takes a frame that was cut off for a shorter body, so the frames are walked first. */
const decodeZstd: Decode = (data, options) =>
  hasWholeZstdFrames(data)
    ? decodeZstdFrames(data, options)
    : Promise.reject(new Error("a zstd frame that was cut off"));

const CODINGS: Readonly<Record<string, Decode>> = {
  gzip: decodeGzip,
  "x-gzip": decodeGzip,
  deflate: decodeDeflate,
  br: promisify(brotliDecompress) as Decode,
  zstd: decodeZstd,
};

/** What the fetcher asks for: what it can undo. */
export const ACCEPT_ENCODING = "gzip, deflate, br, zstd";
const CODINGS_MAX = 4;

/** The bytes with every coding of a `Content-Encoding` header undone, at most `bytesMax` at each step. */
export async function decodeContent(
  wire: Uint8Array,
  contentEncoding: string | null,
  bytesMax: number,
): Promise<Decoded> {
  const names = (contentEncoding ?? "")
    .split(",")
    .map((name) => name.trim().toLowerCase())
    .filter((name) => name !== "" && name !== "identity");
  if (names.length > CODINGS_MAX || names.some((name) => !Object.hasOwn(CODINGS, name)))
    return { problem: "unknown" };

  let body = wire;
  for (const name of names.reverse()) {
    // A response without content has nothing to undo, whatever it declares.
    if (body.length === 0) break;
    try {
      body = await (CODINGS[name] as Decode)(body, { maxOutputLength: bytesMax });
    } catch (error) {
      const code = (error as { code?: string }).code;
      return { problem: code === "ERR_BUFFER_TOO_LARGE" ? "too_large" : "malformed" };
    }
  }
  return body.length > bytesMax ? { problem: "too_large" } : { body };
}

const ZSTD_MAGIC = 0xfd2fb528;
const ZSTD_SKIPPABLE = 0x184d2a50;

/** Whether the bytes are complete Zstandard frames and nothing else (RFC 8878, 3.1). */
export function hasWholeZstdFrames(data: Uint8Array): boolean {
  const view = new DataView(data.buffer, data.byteOffset, data.byteLength);
  let at = 0;
  while (at < data.length) {
    if (at + 8 > data.length) return false;
    const magic = view.getUint32(at, true);
    const end = (magic & ~0x0f) >>> 0 === ZSTD_SKIPPABLE ? at + 8 + view.getUint32(at + 4, true) : null;
    const next = end ?? (magic === ZSTD_MAGIC ? endOfZstdFrame(view, at + 4) : null);
    if (next === null || next > data.length) return false;
    at = next;
  }
  return true;
}

/** Where the frame ends whose header stands at `at`; null where it is cut off or malformed. */
function endOfZstdFrame(view: DataView, at: number): number | null {
  const descriptor = view.getUint8(at);
  const singleSegment = (descriptor & 0x20) !== 0;
  const contentSizeBytes = [singleSegment ? 1 : 0, 2, 4, 8][descriptor >> 6] ?? 0;
  const dictionaryBytes = [0, 1, 2, 4][descriptor & 0x03] ?? 0;
  let next = at + 1 + (singleSegment ? 0 : 1) + dictionaryBytes + contentSizeBytes;
  for (let last = false; !last; ) {
    if (next + 3 > view.byteLength) return null;
    const header = view.getUint8(next) | (view.getUint8(next + 1) << 8) | (view.getUint8(next + 2) << 16);
    const type = (header >> 1) & 0x03;
    if (type === 3) return null;
    last = (header & 1) === 1;
    // A repeated byte is stored once, whatever size it unfolds to.
    next += 3 + (type === 1 ? 1 : header >> 3);
  }
  return next + ((descriptor & 0x04) !== 0 ? 4 : 0);
}
