import { closeSync, openSync, rmSync, writeSync } from "node:fs";
import { optionFailure } from "./failure.ts";

/**
 * Writes a new file that only its owner can read, part by part. Where the work fails, no file is left.
 *
 * @param write is called with a function that appends text
 */
export async function writeNewFile<Result>(
  file: string,
  write: (append: (text: string) => void) => Promise<Result>,
): Promise<Result> {
  const descriptor = openNew(file);
  let isWhole = false;
  try {
    const result = await write((text) => {
      const bytes = Buffer.from(text);
      for (let at = 0; at < bytes.length; ) at += writeSync(descriptor, bytes, at);
    });
    isWhole = true;
    return result;
  } finally {
    closeSync(descriptor);
    if (!isWhole) rmSync(file);
  }
}

function openNew(file: string): number {
  try {
    return openSync(file, "wx", 0o600);
  } catch (error) {
    const { code } = error as { code?: unknown };
    throw optionFailure(
      "<file>",
      code === "EEXIST" ? `${file} exists already; name a new one` : `cannot write ${file} (${code})`,
    );
  }
}
