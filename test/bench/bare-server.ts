import { Database } from "bun:sqlite";

/** A bare Bun.serve with SQLite, to compare the start with. Its arguments are a database file and a port. */
const [, , file = "", port] = process.argv;
const database = new Database(file);
database.run("PRAGMA journal_mode = WAL");
database.run("CREATE TABLE IF NOT EXISTS answers (id INTEGER PRIMARY KEY)");
const count = database.query("SELECT count(*) AS answers FROM answers");
Bun.serve({ hostname: "127.0.0.1", port: Number(port), fetch: () => Response.json(count.get()) });
