import { join } from "node:path";
import { SQL } from "bun";
import { askOn } from "../../src/store/postgres/ledger-rows.ts";
import { makeTables } from "../../src/store/postgres/migrate.ts";
import { readDefinitions } from "../../src/store/postgres/schema.ts";
import { startPostgres } from "../support/postgres-server.ts";

/** `bun run keep-definitions` writes how PostgreSQL says that each object of the migrations is made. The audit compares with it. */
const postgres = await startPostgres();
try {
  const connection = await new SQL(await postgres.createDatabase(), { max: 1, bigint: true }).reserve();
  await makeTables(connection);
  const lines = [...(await readDefinitions(askOn(connection)))].map(
    ([what, { digest }]) => `${digest} ${what}\n`,
  );
  await Bun.write(
    join(import.meta.dir, "../../migrations/postgres/definitions.txt"),
    lines.sort((one, other) => (one.slice(64) < other.slice(64) ? -1 : 1)).join(""),
  );
  await connection.close({ timeout: 0 });
} finally {
  await postgres.close();
}
