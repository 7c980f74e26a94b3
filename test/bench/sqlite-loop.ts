import { Database } from "bun:sqlite";
import { join } from "node:path";

/** Six rows a transaction, durable, on this disk: the least that any ledger of this shape pays. Prints requests/s by batch. */
const [, , folder = "."] = process.argv;
const SECONDS = 2;
const database = new Database(join(folder, "loop.db"), { create: true });
database.run("PRAGMA journal_mode = WAL");
database.run("PRAGMA synchronous = FULL");
const text = "x".repeat(300);
const inserts = Array.from({ length: 6 }, (_, table) => {
  database.run(`CREATE TABLE t${table} (id TEXT PRIMARY KEY, amount INTEGER, body TEXT)`);
  return database.query(`INSERT INTO t${table} VALUES (?, ?, ?)`);
});
let id = 0;
for (const batch of [1, 8, 64]) {
  const endsAt = performance.now() + SECONDS * 1_000;
  let requests = 0;
  while (performance.now() < endsAt) {
    database.run("BEGIN IMMEDIATE");
    for (let count = 0; count < batch; count++, requests++) {
      for (const insert of inserts) insert.run(`row_${String(id++).padStart(20, "0")}`, 100, text);
    }
    database.run("COMMIT");
  }
  console.log(`${batch} ${Math.round(requests / SECONDS)}`);
}
