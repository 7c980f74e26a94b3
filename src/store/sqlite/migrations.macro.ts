import { readMigrationFiles } from "drizzle-orm/migrator";

/** Runs while the code is bundled or loaded: the generated SQL becomes part of it, so the binary needs no files. */
export function embeddedMigrations() {
  return readMigrationFiles({ migrationsFolder: `${import.meta.dir}/../../../migrations` });
}
