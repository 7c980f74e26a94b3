import { promisify } from "node:util";
import type { ZlibOptions } from "node:zlib";

/** A body after its HTTP content codings were undone within a limit, or why that failed (RFC 9110, 8.4). */
export type Decoded =
  | { readonly body: Uint8Array }
  | { readonly problem: "too_large" | "malformed" | "unknown" };

type Decode = (data: Uint8Array, options: ZlibOptions) => Promise<Uint8Array>;

/** node:zlib takes 2 ms to load, so the first body with a coding loads it, and not the start. */
const decodeBy =
  (name: "brotliDecompress" | "gunzip" | "inflate" | "inflateRaw"): Decode =>
  async (data, options) => {
    const zlib = await import("node:zlib");
    return (promisify(zlib[name]) as Decode)(data, options);
  };

const decodeGzip = decodeBy("gunzip");
const decodeZlib = decodeBy("inflate");
const decodeRaw = decodeBy("inflateRaw");

/** "deflate" means zlib's format, but some servers send a bare deflate stream. The first byte says which of the two it is. */
const decodeDeflate: Decode = (data, options) =>
  ((data[0] ?? 0) & 0x0f) === 8 ? decodeZlib(data, options) : decodeRaw(data, options);

/** zstd is not supported: the runtime's decoder reports no error for a body that was cut off. */
const CODINGS: Readonly<Record<string, Decode>> = {
  gzip: decodeGzip,
  "x-gzip": decodeGzip,
  deflate: decodeDeflate,
  br: decodeBy("brotliDecompress"),
};

/** The codings that the fetcher asks for. It can undo each of them. */
export const ACCEPT_ENCODING = "gzip, deflate, br";
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
    // A response may name a coding and have no content; then there is nothing to undo.
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
