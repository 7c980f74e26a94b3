import { promisify } from "node:util";
import { EVIDENCE_BYTES_MAX } from "../core/clauses/limits.ts";

/**
 * How the bodies in capsules are compressed: zstd, on another thread. Its decoder does not notice a body that was cut off, so who
 * decompresses compares the hash. node:zlib takes 2 ms to load, so the first body loads it.
 */

export async function compressBody(body: Uint8Array): Promise<Uint8Array> {
  const { zstdCompress } = await import("node:zlib");
  return promisify(zstdCompress)(body);
}

/** @throws where it is not compressed, or longer than evidence may be */
export async function decompressBody(bytes: Uint8Array): Promise<Uint8Array> {
  const { zstdDecompress } = await import("node:zlib");
  const decompress = promisify(zstdDecompress) as (
    bytes: Uint8Array,
    options: { readonly maxOutputLength: number },
  ) => Promise<Uint8Array>;
  return decompress(bytes, { maxOutputLength: EVIDENCE_BYTES_MAX });
}
