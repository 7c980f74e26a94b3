/** The style that matters, held by a test: the rooms of src, what their text may not say, files and versions. */
import { describe, expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

const REPOSITORY = join(import.meta.dir, "..");
const LINES_MAX = 350;

type SourceFile = { readonly path: string; readonly text: string; readonly lines: readonly string[] };
type Import = {
  readonly specifier: string;
  readonly names: string;
  readonly typeOnly: boolean;
  readonly line: number;
};

const read = (path: string): string => readFileSync(join(REPOSITORY, path), "utf8");
const isOurs = (path: string): boolean => !path.includes("node_modules/");
const filesOf = (pattern: string): SourceFile[] =>
  [...new Bun.Glob(pattern).scanSync(REPOSITORY)]
    .filter(isOurs)
    .sort()
    .map((path) => {
      const text = read(path);
      return { path, text, lines: text.split("\n") };
    });

const sources = filesOf("src/**/*.{ts,tsx}");
const tests = filesOf("test/**/*.{ts,tsx}");

describe("who may import whom", () => {
  // Each room, and the rooms it may import from besides itself. "types of x" is `import type` only.
  const ROOMS: Record<string, readonly string[]> = {
    core: [],
    seam: ["core"],
    sqlite: ["core", "seam", "migrations"],
    platform: ["core"],
    services: ["core", "seam", "types of platform"],
    http: ["core", "services"],
    console: ["core", "services"],
    cli: ["core", "services"],
    jobs: ["core", "services"],
    // The guided tour runs the whole service, as main does.
    demo: ["app", "config", "core", "services"],
    config: ["core"],
  };
  const COMPOSITION_ROOT = ["main", "app"];

  // Packages that only some rooms may know; every other package is open to every room but core.
  const PACKAGES_OF_CORE = [
    "@sinclair/typebox",
    "ajv",
    "ajv-formats",
    "canonicalize",
    "ipaddr.js",
    "json-p3",
    "multiformats",
    "re2js",
    "standardwebhooks",
    "ulid",
  ];
  const PACKAGES_OF_ROOMS: Record<string, readonly string[]> = {
    "bun:sqlite": ["sqlite"],
    "drizzle-orm": ["sqlite"],
    "@simplewebauthn/server": ["platform"],
    "@x402/core": ["platform"],
    "@x402/evm": ["platform"],
    commander: ["cli", "main"],
    elysia: ["http", "console", "app"],
  };
  const HASHING =
    /^\{ (createHash|createHmac|timingSafeEqual)(, (createHash|createHmac|timingSafeEqual))* \}$/;

  test("every file of src is in a room, and imports only what its room may", () => {
    const problems = sources.flatMap((file) => {
      const room = roomOf(file.path);
      if (room === null) return [`${file.path}: no such room; see "Who may import whom"`];
      return importsOf(file).flatMap((found) => {
        const problem = found.specifier.startsWith(".")
          ? problemWithRoom(room, found, roomOf(join(file.path, "..", found.specifier)))
          : problemWithPackage(room, found);
        return problem === null ? [] : [`${file.path}:${found.line}: ${problem} (${found.specifier})`];
      });
    });
    expect(problems).toEqual([]);
  });

  test("the reader of imports sees every form, type-only ones too", () => {
    const text = [
      'import type { A } from "./a.ts";',
      "import {",
      "  type B,",
      '} from "./b.ts";',
      'import "./c.ts";',
      'export * from "./d.ts";',
      'export type { E } from "./e.ts";',
      'type F = import("./f.ts").F;',
      'export const from = "./not-an-import.ts";',
      'import text from "./g.sql" with { type: "text" };',
    ];
    const found = importsOf({ path: "sample.ts", text: text.join("\n") });
    expect(found.map(({ specifier, typeOnly, line }) => [specifier, typeOnly, line])).toEqual([
      ["./a.ts", true, 1],
      ["./b.ts", false, 2],
      ["./c.ts", false, 5],
      ["./d.ts", false, 6],
      ["./e.ts", true, 7],
      ["./f.ts", false, 8],
      ["./g.sql", false, 10],
    ]);
  });

  /** `src/http/routes/x.ts` → http; the store is two rooms; null where there is none. */
  function roomOf(path: string): string | null {
    if (path.startsWith("migrations/")) return "migrations";
    if (path.startsWith("src/store/sqlite/")) return "sqlite";
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
    if (found.specifier === "node:crypto" && HASHING.test(found.names)) return null;
    return "core is pure: its packages are listed in tidy.test.ts, and of node:crypto it may have the hashes";
  }
});

describe("what the text may not say", () => {
  type Rule = {
    readonly where: RegExp;
    readonly except?: string;
    readonly not: RegExp;
    readonly inComments?: true;
    readonly why: string;
  };
  const PURE = /^src\/(core|services)\//;
  const SRC = /^src\//;
  const CORE_HASHES = /\bBun\.(?!SHA256\b|CryptoHasher\b|hash\.crc32\b)/;
  const ENVIRONMENT = /\b(process|Bun|import\.meta)\.env\b/;
  const ANY = /\bas any\b(?! \w)|: any\s*([;,)\]}=|&>]|$)|<any>|, any>/;
  const RULES: readonly Rule[] = [
    { where: PURE, not: /\bDate\.now\b|\bnew Date\(\s*\)|\bperformance\.now\b/, why: "time is an argument" },
    { where: PURE, not: /\bMath\.random\b|\bgetRandomValues\b/, why: "randomness is an argument" },
    { where: PURE, not: /\brandom(UUID|UUIDv7|Bytes|Int)\(/, why: "randomness is an argument" },
    { where: /^src\/core\//, not: CORE_HASHES, why: "of Bun, core may have the hashes" },
    { where: SRC, except: "src/config.ts", not: ENVIRONMENT, why: "only config.ts reads the environment" },
    { where: SRC, not: ANY, why: "say the type, or unknown" },
    { where: SRC, not: /@ts-(ignore|nocheck)\b/, inComments: true, why: "mend the type instead" },
    { where: SRC, not: /\b(TODO|FIXME|XXX)\b/, inComments: true, why: "do it now, or open an issue" },
    { where: SRC, not: /^export default\b|\bas default\b/, why: "named exports only" },
    { where: /^test\//, not: /\b(test|it|describe)\.only\(/, why: "the other tests would not run" },
  ];
  const isComment = (line: string): boolean => /^\s*(\/\/|\/?\*)/.test(line);

  for (const { where, except, not, inComments, why } of RULES) {
    test(`${why}: ${not}`, () => {
      const problems = [...sources, ...tests]
        .filter(({ path }) => where.test(path) && path !== except)
        .flatMap(({ path, lines }) =>
          lines.flatMap((line, index) =>
            not.test(line) && (inComments || !isComment(line))
              ? [`${path}:${index + 1}: ${why}: ${line.trim()}`]
              : [],
          ),
        );
      expect(problems).toEqual([]);
    });
  }
});

describe("files", () => {
  test(`none in src is over ${LINES_MAX} lines`, () => {
    const problems = sources
      .filter(({ lines }) => lines.length - 1 > LINES_MAX)
      .map(({ path, lines }) => `${path}: ${lines.length - 1} lines; look for the second idea in it`);
    expect(problems).toEqual([]);
  });

  test("names are kebab-case and say what is inside", () => {
    const problems = [...sources, ...tests].flatMap(({ path }) =>
      path.split("/").flatMap((part) => {
        const [name = ""] = part.split(".");
        if (!/^[a-z0-9]+(-[a-z0-9]+)*$/.test(name)) return [`${path}: ${part} is not kebab-case`];
        const isVague = /^(utils?|helpers?|common)$/.test(name);
        return isVague ? [`${path}: name ${part} after what is in it`] : [];
      }),
    );
    expect(problems).toEqual([]);
  });

  test("the top level holds only what is listed here", () => {
    const allowed = [
      ...["package.json", "bun.lock", "bunfig.toml", "tsconfig.json", "biome.json", "drizzle.config.ts"],
      ...["src", "migrations", "test", "Dockerfile", "README.md", "LICENSE"],
    ];
    const ignored = read(".gitignore")
      .split("\n")
      .filter((line) => line !== "" && !line.startsWith("#"))
      .map((line) => new Bun.Glob(line.replace(/^\/|\/$/g, "")));
    const problems = readdirSync(REPOSITORY).filter(
      (name) => !name.startsWith(".") && !allowed.includes(name) && !ignored.some((glob) => glob.match(name)),
    );
    expect(problems).toEqual([]);
  });
});

describe("versions", () => {
  const manifest = JSON.parse(read("package.json"));

  test("of dependencies are exact", () => {
    const ranges = Object.entries({ ...manifest.dependencies, ...manifest.devDependencies })
      .filter(([, version]) => !/^\d+\.\d+\.\d+(-[\w.]+)?$/.test(String(version)))
      .map(([name, version]) => `package.json: ${name} is ${version}; pin one version`);
    expect(ranges).toEqual([]);
  });

  test("of Bun are the same everywhere", () => {
    const pinned = manifest.devDependencies.bun;
    expect(manifest.engines.bun).toBe(pinned);
    const problems = [".ci/run", "Dockerfile", "README.md"].flatMap((path) =>
      [...read(path).matchAll(/\bbun[@:](\d+\.\d+\.\d+)/g)]
        .filter(([, version]) => version !== pinned)
        .map(([mention]) => `${path}: ${mention}, but package.json pins ${pinned}`),
    );
    expect(problems).toEqual([]);
  });
});

/**
 * The imports as written, so that type-only ones count. Relies on the formatter: statements start their line.
 * Throws on an import statement that it cannot read, rather than to overlook one.
 */
function importsOf({ path, text }: Pick<SourceFile, "path" | "text">): Import[] {
  const STATEMENT = /^(?:import|export)\s(?:([^;"'=()]*?)\sfrom\s*)?["']([^"']+)["']/gm;
  const CALL = /\b(?:import|require)\(\s*["'`]([^"'`]+)["'`]/g;
  const lineAt = (index: number): number => text.slice(0, index).split("\n").length;

  const statements = [...text.matchAll(STATEMENT)].map((match) => {
    const [, clause = "", specifier = ""] = match;
    const typeOnly = /^type\s/.test(clause);
    return { specifier, names: clause.replace(/\s+/g, " "), typeOnly, line: lineAt(match.index) };
  });
  const calls = [...text.matchAll(CALL)].map(({ 1: specifier = "", index }) => {
    return { specifier, names: "", typeOnly: false, line: lineAt(index) };
  });
  for (const { index } of text.matchAll(/^import\s/gm)) {
    if (!statements.some(({ line }) => line === lineAt(index)))
      throw new Error(`${path}:${lineAt(index)}: cannot read this import`);
  }
  return [...statements, ...calls].sort((a, b) => a.line - b.line);
}
