/** What each process loads at its start. Modules that it does not need cost time and memory, and several processes run at once. */
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join, relative } from "node:path";

const SRC = join(import.meta.dir, "../src");
const transpiler = new Bun.Transpiler({ loader: "ts" });

/** What a file of src loads at once, with all that it imports: files of src, and packages. `import()` and `require` load theirs later. */
function loadedBy(file: string): { readonly files: string[]; readonly packages: string[] } {
  const seen = new Set<string>();
  const packages = new Set<string>();
  const open = [join(SRC, file)];
  for (let path = open.pop(); path !== undefined; path = open.pop()) {
    if (seen.has(path)) continue;
    seen.add(path);
    for (const { path: specifier, kind } of transpiler.scanImports(readFileSync(path, "utf8"))) {
      if (kind !== "import-statement") continue;
      if (!specifier.startsWith(".")) packages.add(packageOf(specifier));
      else if (/\.ts$/.test(specifier)) open.push(join(path, "..", specifier));
    }
  }
  return {
    files: [...seen].map((path) => relative(SRC, path)),
    packages: [...packages].filter((name) => !/^(node|bun):/.test(name)).sort(),
  };
}

const packagesOf = (file: string): string[] => loadedBy(file).packages;

const packageOf = (specifier: string): string =>
  specifier
    .split("/")
    .slice(0, specifier.startsWith("@") ? 2 : 1)
    .join("/");

test("`--version`, and the choice of a command, need no package", () => {
  expect(packagesOf("main.ts")).toEqual([]);
});

test("the command line needs neither the server's packages nor the ledger's", () => {
  const packages = packagesOf("app/command-line.ts");
  expect(packages).toContain("commander");
  for (const name of ["elysia", "drizzle-orm", "ajv", "re2js", "json-p3", "jose", "viem", "prom-client"])
    expect(packages).not.toContain(name);
});

test("an evaluator needs what its clauses need, and nothing of the server", () => {
  expect(packagesOf("platform/evaluator-child.ts")).toEqual(["ajv", "ajv-formats", "canonicalize", "re2js"]);
});

test("an audit and a checkpoint need the ledger, and nothing of the server", () => {
  const ofServer = ["elysia", "commander", "ajv", "re2js", "json-p3", "jose", "viem", "prom-client"];
  for (const file of [
    "app/audit-beside-server.ts",
    "platform/audit-child.ts",
    "store/sqlite/wal-checkpoint.ts",
  ])
    expect(packagesOf(file).filter((name) => ofServer.includes(name))).toEqual([]);
});

test("a server does not wait for what only some requests need", () => {
  const packages = packagesOf("app.ts");
  expect(packages).toContain("elysia");
  const later = [
    "@zxcvbn-ts/core",
    "ajv",
    "ajv-formats",
    "commander",
    "json-p3",
    "prom-client",
    "re2js",
    "viem",
  ];
  const ofPayments = ["@simplewebauthn/server", "@x402/core", "@x402/evm"];
  expect(packages.filter((name) => [...later, ...ofPayments].includes(name))).toEqual([]);
});

test("nobody who does not ask for a database loads its engine", () => {
  for (const file of ["app.ts", "app/command-line.ts", "app/ledger.ts", "app/audit-beside-server.ts"]) {
    const loaded = loadedBy(file).files.filter((path) => path.startsWith("store/postgres/"));
    expect([file, loaded.filter((path) => path !== "store/postgres/address.ts")]).toEqual([file, []]);
  }
});
