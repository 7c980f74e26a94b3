import { describe, expect, test } from "bun:test";
import * as zlib from "node:zlib";
import { ACCEPT_ENCODING, decodeContent } from "../../src/platform/content-coding.ts";

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
const compressors: Record<string, (data: Uint8Array) => Uint8Array> = {
  gzip: zlib.gzipSync,
  "x-gzip": zlib.gzipSync,
  deflate: zlib.deflateSync,
  br: zlib.brotliCompressSync,
};
const textOf = async (wire: Uint8Array, coding: string | null, bytesMax = 1_000): Promise<unknown> => {
  const decoded = await decodeContent(wire, coding, bytesMax);
  return "problem" in decoded ? decoded.problem : new TextDecoder().decode(decoded.body);
};

describe.each(Object.entries(compressors))("%s", (name, compress) => {
  test("is undone", async () => {
    expect(await textOf(compress(bytes("hello")), name)).toBe("hello");
    expect(await textOf(compress(bytes("hello")), ` ${name.toUpperCase()} , identity`)).toBe("hello");
    expect(await textOf(compress(bytes("x".repeat(1_000))), name)).toBe("x".repeat(1_000));
  });

  test("is undone up to the limit and no further", async () => {
    expect(await textOf(compress(bytes("x".repeat(1_001))), name)).toBe("too_large");
    expect(await textOf(compress(new Uint8Array(20_000_000)), name)).toBe("too_large");
  });

  test("is malformed when it is cut off anywhere, or is something else", async () => {
    const wire = compress(bytes("hello hello hello, and something more to say"));
    for (let length = 1; length < wire.length; length++)
      expect([length, await textOf(wire.slice(0, length), name)]).toEqual([length, "malformed"]);
    expect(await textOf(bytes("hello"), name)).toBe("malformed");
  });

  test("has nothing to undo in an empty body", async () => {
    expect(await textOf(new Uint8Array(), name)).toBe("");
  });
});

test("a bare deflate stream is undone too", async () => {
  expect(await textOf(zlib.deflateRawSync("hello"), "deflate")).toBe("hello");
});

test("several codings are undone from the last to the first", async () => {
  const wire = zlib.brotliCompressSync(zlib.gzipSync("hello"));
  expect(await textOf(wire, "gzip, br")).toBe("hello");
  expect(await textOf(wire, "br, gzip")).toBe("malformed");
});

test.each(["snappy", "gzip, compress", "toString", "gzip,gzip,gzip,gzip,gzip"])(
  "%p is unknown",
  async (coding) => {
    expect(await textOf(bytes("hello"), coding)).toBe("unknown");
  },
);

test("without a coding the bytes are the body, within the limit", async () => {
  for (const coding of [null, "", "identity"]) expect(await textOf(bytes("hello"), coding)).toBe("hello");
  expect(await textOf(bytes("hello"), null, 4)).toBe("too_large");
});

test("every coding that is asked for is undone", async () => {
  for (const name of ACCEPT_ENCODING.split(", ")) {
    const compress = compressors[name];
    expect([name, compress && (await textOf(compress(bytes("hello")), name))]).toEqual([name, "hello"]);
  }
});

test("zstd is unknown, though the body is whole", async () => {
  expect(await textOf(zlib.zstdCompressSync(bytes("hello")), "zstd")).toBe("unknown");
});
