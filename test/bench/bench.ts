/**
 * `bun run bench` measures the compiled server and prints a table: what was measured, the result, its aim,
 * and whether it is met. Parts can be named, such as `bun run bench opens disk`. `--quick` measures fewer
 * rounds, and uses 100,000 warrants instead of a million.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { cpus, loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import { measureDisk } from "./disk.ts";
import { measureLists } from "./lists.ts";
import { refuseMissingWrk } from "./load.ts";
import { measureOpens } from "./opens.ts";
import { measurePages } from "./pages.ts";
import { measurePostgres } from "./postgres.ts";
import { inWords, type Scale } from "./scale.ts";
import { measureStart } from "./start.ts";
import { measureStatements } from "./statements.ts";
import { type Row, tableOf } from "./table.ts";
import { measureWaits } from "./waits.ts";

const PARTS: Readonly<Record<string, (scale: Scale) => Promise<Row[]>>> = {
  start: measureStart,
  opens: measureOpens,
  disk: measureDisk,
  lists: measureLists,
  pages: measurePages,
  waits: measureWaits,
  statements: measureStatements,
  postgres: measurePostgres,
};

const quick = process.argv.includes("--quick");
const named = process.argv.slice(2).filter((argument) => argument !== "--quick");
const unknown = named.filter((name) => !(name in PARTS));
if (unknown.length > 0) {
  console.error(`there is no part ${unknown.join(", ")}; the parts are ${Object.keys(PARTS).join(", ")}`);
  process.exit(2);
}

const folder = mkdtempSync(join(tmpdir(), "holdfast-bench-"));
const scale: Scale = { folder, rounds: quick ? 3 : 7, warrantsLarge: quick ? 100_000 : 1_000_000 };
process.once("exit", () => rmSync(folder, { recursive: true, force: true }));
for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, () => process.exit(130));
await main();

async function main(): Promise<void> {
  refuseMissingWrk();
  // Other work on the machine distorts the figures, so its load is printed too.
  const [others = 0] = loadavg();
  const rows: Row[] = [];
  for (const [name, measure] of Object.entries(PARTS)) {
    if (named.length > 0 && !named.includes(name)) continue;
    try {
      rows.push(...(await measure(scale)));
    } catch (error) {
      // The other parts may have taken an hour, so their figures are printed even where one part fails.
      console.error(error);
      rows.push({ what: name, measured: "failed", aim: "", verdict: "MISSED" });
      process.exitCode = 1;
    }
  }
  const [{ model = "an unknown processor" } = {}] = cpus();
  const sizes = quick
    ? `; quick: fewer rounds, and ${inWords(scale.warrantsLarge)} warrants for a million`
    : "";
  const machine = `${cpus().length} cores of ${model}, load ${others.toFixed(1)} before the run`;
  console.log(`\n${new Date().toISOString().slice(0, 10)}, ${machine}${sizes}\n`);
  console.log(tableOf(rows));
}
