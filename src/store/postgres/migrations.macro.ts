import { readdirSync, readFileSync } from "node:fs";

const FOLDER = `${import.meta.dir}/../../../migrations/postgres`;

/** Runs when the code is bundled or loaded. The SQL becomes a part of the code, so the executable needs no files. */
export function embeddedPostgresMigrations() {
  return readdirSync(FOLDER)
    .filter((file) => file.endsWith(".sql"))
    .sort()
    .map((file) => {
      const sql = readFileSync(`${FOLDER}/${file}`, "utf8");
      return { name: file.replace(/\.sql$/, ""), sql, hash: Bun.SHA256.hash(sql, "hex") };
    });
}

/**
 * Each object that these migrations make, with the SHA-256 of how PostgreSQL says that it is made (`schema.ts`): a line each, of a
 * digest and a name. `bun run keep-definitions` writes them.
 */
export const embeddedDefinitions = () =>
  readFileSync(`${FOLDER}/definitions.txt`, "utf8")
    .trimEnd()
    .split("\n")
    .map((line) => {
      const [digest = "", ...what] = line.split(" ");
      return [what.join(" "), digest];
    });
