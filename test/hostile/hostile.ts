/**
 * `bun run hostile` sends the compiled server what strangers can send, and prints a table for each part: what was measured, the
 * result, its aim, and whether it is met. Parts can be named, such as `bun run hostile connections framing`. It fails where an
 * aim is missed.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Row, tableOf } from "../bench/table.ts";
import { measureConnections } from "./connections.ts";
import { measureDisk } from "./disk.ts";
import { measureFraming } from "./framing.ts";
import { measureMemory } from "./memory.ts";
import { measurePlaces } from "./places.ts";

/** Each part gets an empty folder of its own. */
const PARTS: Readonly<Record<string, (folder: string) => Promise<Row[]>>> = {
  connections: measureConnections,
  framing: measureFraming,
  places: measurePlaces,
  disk: measureDisk,
  memory: measureMemory,
};

const named = process.argv.slice(2);
const unknown = named.filter((name) => !(name in PARTS));
if (unknown.length > 0) {
  console.error(`there is no part ${unknown.join(", ")}; the parts are ${Object.keys(PARTS).join(", ")}`);
  process.exit(2);
}

const folder = mkdtempSync(join(tmpdir(), "holdfast-hostile-"));
process.once("exit", () => rmSync(folder, { recursive: true, force: true }));
for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, () => process.exit(130));

for (const [name, measure] of Object.entries(PARTS)) {
  if (named.length > 0 && !named.includes(name)) continue;
  console.log(`\n== hostile: ${name}`);
  try {
    const rows = await measure(mkdtempSync(join(folder, `${name}-`)));
    console.log(tableOf(rows));
    if (rows.some(({ verdict }) => verdict === "MISSED")) process.exitCode = 1;
  } catch (error) {
    // The other parts are measured all the same.
    console.error(error);
    process.exitCode = 1;
  }
}
// A part may leave connections open that nobody needs any more.
process.exit();
