import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Facts } from "./parties.ts";
import { inWords, say } from "./scale.ts";

export type Filled = { readonly data: string; readonly facts: Facts; readonly idsFile: string };

/** The files that decide the content of a filled folder: the tables, and the programs that fill them. */
const MADE_BY = ["fill.ts", "fill-warrant.ts", "parties.ts", "opening.ts"];
const MIGRATIONS = join(import.meta.dir, "../../migrations");

const NAME = "holdfast-bench-filled-";
/** How long a folder that was filled by other code is kept: another working copy may still use it. */
const KEPT_MS = 86_400_000;

/**
 * A folder with this many warrants, which this run may change. It is a copy. The original stays in the
 * system's temporary folder, under a name that changes with the tables and the filler, so that the next run
 * need not fill it again.
 */
export async function filledFolder(warrants: number, into: string): Promise<Filled> {
  const original = join(tmpdir(), `${NAME}${await hashOfMaking()}-${warrants}`);
  if (!existsSync(original)) await fill(original, warrants);
  const copy = join(into, `filled-${warrants}`);
  if (!existsSync(copy)) {
    say(`copying the folder of ${inWords(warrants)} warrants`);
    run(["cp", "-r", "--reflink=auto", original, copy]);
  }
  const facts = JSON.parse(readFileSync(join(copy, "facts.json"), "utf8")) as Facts;
  return { data: join(copy, "data"), facts, idsFile: join(copy, "ids") };
}

async function fill(original: string, warrants: number): Promise<void> {
  for (const name of readdirSync(tmpdir()).filter((one) => one.startsWith(NAME))) {
    const other = join(tmpdir(), name);
    if (Date.now() - statSync(other).mtimeMs > KEPT_MS) rmSync(other, { recursive: true, force: true });
  }
  // Only a complete folder gets the final name.
  const draft = `${original}.part`;
  rmSync(draft, { recursive: true, force: true });
  mkdirSync(draft);
  say(`filling ${original} with ${inWords(warrants)} warrants, once`);
  const program = [process.execPath, join(import.meta.dir, "fill.ts")];
  run([
    "nice",
    ...program,
    join(draft, "data"),
    String(warrants),
    join(draft, "facts.json"),
    join(draft, "ids"),
  ]);
  renameSync(draft, original);
}

function run(command: string[]): void {
  const { success } = Bun.spawnSync(command, { stdout: "ignore", stderr: "inherit" });
  if (!success) throw new Error(`${command.slice(0, 3).join(" ")} failed`);
}

async function hashOfMaking(): Promise<string> {
  const hasher = new Bun.CryptoHasher("sha256");
  const migrations = [...new Bun.Glob("**/*.sql").scanSync(MIGRATIONS)].sort();
  for (const file of migrations) hasher.update(await Bun.file(join(MIGRATIONS, file)).bytes());
  for (const file of MADE_BY) hasher.update(await Bun.file(join(import.meta.dir, file)).bytes());
  return hasher.digest("hex").slice(0, 12);
}
