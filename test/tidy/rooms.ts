import { join } from "node:path";
import { type Import, importsOf } from "./imports.ts";
import type { SourceFile } from "./source-files.ts";

/** Each room of src, and the rooms that it may import from besides itself. "types of x" allows `import type` alone. */
const ROOMS: Readonly<Record<string, readonly string[]>> = {
  core: [],
  seam: ["core"],
  // The tables and every statement, for both engines.
  sql: ["core", "seam"],
  sqlite: ["core", "seam", "sql", "migrations"],
  // It is audited in a file of SQLite, and copied from and into one.
  postgres: ["core", "seam", "sql", "sqlite", "migrations"],
  platform: ["core"],
  // A verb answers with a resource, and every room that shows answers reads them; the ledger keeps domain types alone.
  resources: ["core"],
  services: ["core", "resources", "seam", "types of platform"],
  // What the pages say is rendered from Markdown; of the code they know the catalogue of errors.
  docs: ["core"],
  http: ["core", "docs", "resources", "services"],
  console: ["core", "services"],
  cli: ["core", "types of resources", "services"],
  jobs: ["core", "services"],
  // The guided tour runs the whole service, as main does.
  demo: ["app", "config", "core", "types of resources", "services"],
  // The address of a database is read as every other setting is.
  config: ["core", "postgres"],
};
const COMPOSITION_ROOT = ["main", "app"];

/** The packages that core may use. */
const PACKAGES_OF_CORE = [
  "@noble/hashes",
  "@sinclair/typebox",
  "ajv",
  "ajv-formats",
  "canonicalize",
  "ipaddr.js",
  "json-p3",
  "multiformats",
  "re2js",
  "standardwebhooks",
  "structured-headers",
  "ulid",
];
/** Packages that only these rooms may use. Every other package is open to every room but core. */
const PACKAGES_OF_ROOMS: Readonly<Record<string, readonly string[]>> = {
  "bun:sqlite": ["sql", "sqlite", "postgres"],
  "drizzle-orm": ["sql", "sqlite", "postgres"],
  "@sigstore/bundle": ["platform"],
  "@sigstore/protobuf-specs": ["platform"],
  "@sigstore/verify": ["platform"],
  "@simplewebauthn/server": ["platform"],
  "@x402/core": ["platform"],
  "@x402/evm": ["platform"],
  commander: ["cli", "main"],
  elysia: ["http", "console", "app"],
  hono: ["console"],
  "htmx.org": ["console"],
  "d3-scale": ["console"],
  "d3-shape": ["console"],
};
const HASHING = /^\{ (createHash|createHmac|timingSafeEqual)(, (createHash|createHmac|timingSafeEqual))* \}$/;

/** Where a file of src is in no room, or imports what its room may not. */
export function roomProblems(file: SourceFile): string[] {
  const room = roomOf(file.path);
  if (room === null) return [`${file.path}: this is in no room that test/tidy/rooms.ts lists`];
  return importsOf(file).flatMap((found) => {
    const problem = found.specifier.startsWith(".")
      ? problemWithRoom(room, found, roomOf(join(file.path, "..", found.specifier)))
      : problemWithPackage(room, found);
    return problem === null ? [] : [`${file.path}:${found.line}: ${problem} (${found.specifier})`];
  });
}

const WITHOUT_ENGINE = ["core", "resources", "services", "http", "console", "cli", "jobs"];
const ENGINE = /sqlite|postgres|drizzle|\/store\/sql\//i;

/** Where a file of a room that knows the seam alone imports an engine, or the client of a database. */
export function engineProblems(file: SourceFile): string[] {
  const room = roomOf(file.path);
  if (room === null || !WITHOUT_ENGINE.includes(room)) return [];
  return importsOf(file)
    .filter(({ specifier, clause }) =>
      specifier === "bun" ? /\b(?:SQL|sql)\b/.test(clause) : ENGINE.test(specifier),
    )
    .map(({ specifier, line }) => `${file.path}:${line}: ${room} names an engine (${specifier})`);
}

/** `src/http/routes/x.ts` is in http; the store is two rooms; null for a path that is in none. */
function roomOf(path: string): string | null {
  if (path.startsWith("migrations/")) return "migrations";
  const engine = /^src\/store\/(sql|sqlite|postgres)\//.exec(path)?.[1];
  if (engine !== undefined) return engine;
  if (/^src\/store\/[^/]+$/.test(path)) return "seam";
  const name = /^src\/([a-z]+)(\/|\.ts$)/.exec(path)?.[1];
  return name !== undefined && (name in ROOMS || COMPOSITION_ROOT.includes(name)) ? name : null;
}

function problemWithRoom(from: string, found: Import, to: string | null): string | null {
  if (from === to || COMPOSITION_ROOT.includes(from)) return null;
  const allowed = ROOMS[from] ?? [];
  if (to !== null && allowed.includes(to)) return null;
  if (allowed.includes(`types of ${to}`))
    return found.typeOnly ? null : `${from} may import only types of ${to}`;
  return `${from} may not import ${to ?? "what is outside src"}, only ${allowed.join(", ") || "itself"}`;
}

function problemWithPackage(room: string, found: Import): string | null {
  const name = found.specifier.split("/", found.specifier.startsWith("@") ? 2 : 1).join("/");
  const only = PACKAGES_OF_ROOMS[name];
  if (only !== undefined && !only.includes(room)) return `only ${only.join(" and ")} may import ${name}`;
  if (room !== "core" || PACKAGES_OF_CORE.includes(name)) return null;
  if (found.specifier === "node:crypto" && HASHING.test(found.clause)) return null;
  return "core is pure: it may use the packages in test/tidy/rooms.ts, and the hashes of node:crypto";
}
