import { closeSync, existsSync, linkSync, openSync, rmSync, writeSync } from "node:fs";
import { optionFailure } from "./failure.ts";

/**
 * Writes a new file that only its owner can read, part by part. It gets its name once it is whole: what is left of a run that was
 * killed ends in `.part`. Where the work fails, no file is left.
 *
 * @param write is called with a function that appends text
 */
export async function writeNewFile<Result>(
  file: string,
  write: (append: (text: string) => void) => Promise<Result>,
): Promise<Result> {
  if (existsSync(file)) throw fileFailure(file, "EEXIST");
  const part = `${file}.${process.pid}.part`;
  const descriptor = orFailure(file, () => openSync(part, "wx", 0o600));
  try {
    const result = await write((text) => {
      const bytes = Buffer.from(text);
      for (let at = 0; at < bytes.length; ) at += writeSync(descriptor, bytes, at);
    });
    // Unlike a rename it never replaces what somebody else has made meanwhile.
    orFailure(file, () => linkSync(part, file));
    return result;
  } finally {
    closeSync(descriptor);
    rmSync(part);
  }
}

function orFailure<Result>(file: string, work: () => Result): Result {
  try {
    return work();
  } catch (error) {
    throw fileFailure(file, (error as { code?: unknown }).code);
  }
}

const fileFailure = (file: string, code: unknown) =>
  optionFailure(
    "<file>",
    code === "EEXIST" ? `${file} exists already; name a new one` : `cannot write ${file} (${code})`,
  );
