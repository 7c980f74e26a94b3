import { readMigrationFiles } from "drizzle-orm/migrator";

/**
 * Runs when the code is bundled or loaded. The SQL becomes a part of the code, so the executable needs no
 * files.
 */
export function embeddedMigrations() {
  return readMigrationFiles({ migrationsFolder: `${import.meta.dir}/../../../migrations` });
}
