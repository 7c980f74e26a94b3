/** What a ledger in a database refuses before anything is asked of a server (docs/postgresql, "PostgreSQL"). */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { newSigningKey } from "../../src/platform/tokens.ts";
import { PROGRAM } from "../support/executable.ts";

const TEST_MS = 60_000;
const PASSWORD = "only-for-this-test";
/** Nothing listens there. */
const NOWHERE = `postgres://holdfast:${PASSWORD}@127.0.0.1:1/ledger?sslmode=disable`;
const KEY = Buffer.alloc(32, 7).toString("base64");
const KEYS = {
  ...{ HOLDFAST_MASTER_KEY: KEY, HOLDFAST_PUSH_KEY: KEY, HOLDFAST_WITNESS_KEY: KEY },
  HOLDFAST_SIGNING_KEY: newSigningKey(),
};

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "holdfast-database-"));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Runs a command to its end, in a folder of its own and with these settings alone. */
async function holdfast(args: readonly string[], settings: Record<string, string>) {
  const child = Bun.spawn([...PROGRAM, ...args], {
    ...{ cwd: folder, stdin: "ignore", stdout: "pipe", stderr: "pipe", timeout: TEST_MS },
    env: { HOLDFAST_PORT: "0", HOLDFAST_DATABASE: NOWHERE, ...settings },
  });
  const [out, err] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  return { out, err, code: child.exitCode };
}

const without = (key: keyof typeof KEYS): Record<string, string> => {
  const { [key]: _, ...others } = KEYS;
  return others;
};
const UNSET = "is not set, and with HOLDFAST_DATABASE no key comes from a folder: make one with";
const PAGE = "http://localhost:0/docs/postgresql";

test.each<[string, Record<string, string>, string]>([
  ["serve", {}, `HOLDFAST_MASTER_KEY ${UNSET} \`openssl rand -base64 32\`, and give every instance the same`],
  [
    "serve",
    without("HOLDFAST_SIGNING_KEY"),
    `HOLDFAST_SIGNING_KEY ${UNSET} \`openssl genpkey -algorithm ed25519\``,
  ],
  ["serve", without("HOLDFAST_PUSH_KEY"), `HOLDFAST_PUSH_KEY ${UNSET} \`openssl rand -base64 32\``],
  ["serve", without("HOLDFAST_WITNESS_KEY"), `HOLDFAST_WITNESS_KEY ${UNSET} \`openssl rand -base64 32\``],
  [
    "serve",
    { ...KEYS, HOLDFAST_BACKUP_FOLDER: "." },
    "HOLDFAST_BACKUP_FOLDER: leave it out: the backups of a ledger in a database are made by PostgreSQL's own programs. A server's page /docs/postgresql says how",
  ],
  ["serve", KEYS, "HOLDFAST_DATABASE: the server cannot be reached"],
  ["serve --data d", KEYS, "--data: the ledger is in a database (HOLDFAST_DATABASE): leave the option out"],
  ["audit --data d", {}, "--data: the ledger is in a database (HOLDFAST_DATABASE): leave the option out"],
  ["organisations list", {}, "HOLDFAST_DATABASE: the server cannot be reached"],
  ["organisations list --json", {}, '"message":"HOLDFAST_DATABASE: the server cannot be reached'],
  ["backup file", {}, `PostgreSQL's own programs: see ${PAGE}`],
  ["restore file", {}, `PostgreSQL's own programs: see ${PAGE}`],
  ...["serve", "audit", "organisations list"].map((command): [string, Record<string, string>, string] => [
    command,
    { HOLDFAST_DATABASE: "", HOLDFAST_DATABASE_FILE: "/dev/null" },
    "HOLDFAST_DATABASE_FILE: names a file that is empty: write into it what HOLDFAST_DATABASE would be, or leave",
  ]),
  [
    "audit",
    { HOLDFAST_DATABASE: `postgres://holdfast:${PASSWORD}@db.example/ledger?sslmode=disable` },
    "HOLDFAST_DATABASE: sslmode=disable would send everything to db.example in the clear, the password too: leave it out, or set HOLDFAST_DATABASE_PLAINTEXT to true",
  ],
  [
    "audit",
    { HOLDFAST_DATABASE: `postgres://holdfast:${PASSWORD}@db.example/ledger?sslmode=require` },
    "HOLDFAST_DATABASE: sslmode=require does not verify that the server is db.example",
  ],
  [
    "audit",
    { HOLDFAST_DATABASE_REPLICAS: `postgres://holdfast:${PASSWORD}@db.example/ledger?sslmode=disable` },
    "HOLDFAST_DATABASE_REPLICAS: sslmode=disable would send everything to db.example in the clear, the password too: leave it out, or set HOLDFAST_DATABASE_PLAINTEXT to true",
  ],
])(
  "%s with %o is refused, and no password is shown",
  async (command, settings, message) => {
    const { out, err, code } = await holdfast(command.split(" "), settings);
    expect(code).toBeGreaterThan(0);
    expect(out + err).toContain(message);
    expect(out + err).not.toContain(PASSWORD);
    expect(readdirSync(folder)).toEqual([]);
  },
  TEST_MS,
);
