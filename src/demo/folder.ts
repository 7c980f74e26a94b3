import { mkdir, mkdtemp, readdir, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { type Refusal, refuseField } from "../core/errors.ts";

/** This file marks a folder that a demo made, so that a second run may use it again. */
const MARK = "DEMO.txt";
const MARK_TEXT = "`holdfast demo` made this folder. Nothing in it is real; delete it when you like.\n";

/** The log of the demo's server, in its folder. */
export const LOG = "server.log";

/**
 * The demo's data folder: a new temporary one, or the given one where it is new, empty or an earlier demo's. Any other folder is
 * refused, since it may hold a real ledger.
 */
export async function chooseFolder(given: string | null): Promise<string | Refusal> {
  const folder = given === null ? await mkdtemp(join(tmpdir(), "holdfast-demo-")) : resolve(given);
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const names = await readdir(folder);
  if (names.length > 0 && !names.includes(MARK)) {
    return refuseField(
      "--data",
      `${folder} is not empty, and no earlier demo made it; name a new or empty folder`,
    );
  }
  await writeFile(join(folder, MARK), MARK_TEXT);
  return folder;
}
