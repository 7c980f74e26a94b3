/**
 * A ledger in a database that was brought back to an earlier moment, by the commands of the page (docs/postgresql, "Point-in-time
 * recovery"): no instance goes on with it as if nothing had happened.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { SQL } from "bun";
import { parseCheckpoint } from "../../src/core/checkpoint.ts";
import { parseSignedNote } from "../../src/core/signed-note.ts";
import type { Json } from "../support/client.ts";
import { type Installation, PROGRAM, type RunningServer } from "../support/executable.ts";
import { type Cluster, freePort, newServer } from "../support/postgres-server.ts";
import { until } from "../support/until.ts";
import { type Buyer, createBuyer, installed, settingsOn } from "./installed.ts";

const TEST_MS = 240_000;
/** A test's alone, on loopback. */
const ROLE_PASSWORD = "only-for-tests";
const PAGE = readFileSync(join(import.meta.dir, "../../src/docs/postgresql.md"), "utf8");

let server: Cluster;
let folder: string;
let bin: string;
let program: Installation;
let settings: Record<string, string>;
let open: Buyer;
/** What the page's commands are given. */
let variables: Record<string, string>;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "holdfast-recovery-"));
  server = await newServer();
  const own = { port: server.port, listen_addresses: "'127.0.0.1'", unix_socket_directories: "''" };
  server.own(
    "postgresql.auto.conf",
    Object.entries(own)
      .map(([name, value]) => `${name} = ${value}\n`)
      .join(""),
  );
  const at = (name: string) => join(server.folder, name);
  variables = {
    ADMIN_URL: server.url(),
    ARCHIVE: at("archive"),
    BASE: at("base"),
    RECOVERED: at("recovered"),
  };
  await operator('mkdir "$ARCHIVE"; pg_ctl start --wait --pgdata="$PGDATA" --log="$PGDATA/log"');
  await operator(block("archive_mode"));
  await operator('createdb --maintenance-db="$ADMIN_URL" ledger');
  settings = settingsOn(server.url("ledger"));
  program = installed(settings);
  open = await createBuyer(program);
  bin = join(folder, "bin");
  mkdirSync(bin);
  writeFileSync(join(bin, "holdfast"), `#!/bin/sh\nexec ${PROGRAM.join(" ")} "$@"\n`);
  chmodSync(join(bin, "holdfast"), 0o755);
}, TEST_MS);
afterAll(async () => {
  await program.remove();
  await operator(
    'for each in "$PGDATA" "$RECOVERED" "$RECOVERED-2"; do pg_ctl stop --mode=immediate --pgdata="$each" || true; done',
  );
  rmSync(server.folder, { recursive: true, force: true });
  rmSync(folder, { recursive: true, force: true });
}, TEST_MS);

/** The block of the page that has these words, as it is typed. */
function block(words: string): string {
  const blocks = [...PAGE.matchAll(/^```sh elsewhere\n([\s\S]*?)^```$/gm)].map(([, code = ""]) => code);
  const found = blocks.filter((code) => code.includes(words));
  expect([words, found.length]).toEqual([words, 1]);
  return found[0] ?? "";
}

/** The page's statements that make two roles and a database, with other names than this server has, and with a password. */
function twoRoles(): string {
  const [, text = ""] = /^```\n(CREATE ROLE [\s\S]*?)^```$/m.exec(PAGE) ?? [];
  return text.replaceAll(/\bholdfast\b/g, "serving").replaceAll("…", ROLE_PASSWORD);
}

/** Types a block as the user of the database's server. */
const operator = (code: string, more: Readonly<Record<string, string>> = {}) =>
  server.shell(code, { ...variables, ...more });

/** Types a block where Holdfast is. */
async function typed(code: string): Promise<string> {
  const shell = Bun.spawn(["sh", "-e", "-c", code], {
    ...{ cwd: folder, stdin: "ignore", stdout: "pipe", stderr: "inherit" },
    env: {
      ...Object.fromEntries(Object.entries(settings).map(([name, value]) => [`HOLDFAST_${name}`, value])),
      PATH: `${bin}:${process.env.PATH}`,
    },
  });
  const [out, exitCode] = await Promise.all([shell.stdout.text(), shell.exited]);
  expect([code, exitCode]).toEqual([code, 0]);
  return out;
}

async function ask(text: string): Promise<readonly Json[]> {
  const sql = new SQL(server.url("ledger"), { max: 1, connectionTimeout: 2 });
  try {
    return await sql.unsafe(text);
  } finally {
    await sql.close();
  }
}

/** The database's clock. */
const nowThere = async (): Promise<string> => (await ask("SELECT clock_timestamp()::text AS now"))[0].now;

const isPrimary = () =>
  until("the recovered server is a primary", async () =>
    ask("SELECT 1 WHERE NOT pg_is_in_recovery()").then(
      (rows) => rows.length > 0,
      () => false as const,
    ),
  );

const idsThere = async () => (await ask("SELECT id FROM warrants ORDER BY id")).map(({ id }) => id);

test(
  "an instance that was running declares the restore of an older ledger and ends; live money waits until it is acknowledged",
  async () => {
    await operator(block("pg_basebackup"));
    const before = await program.serve();
    const [, kept] = await open(before);
    const time = await nowThere();
    const [status] = await open(before);
    expect(status).toBe(201);
    await operator(block("recovery.signal"), { TIME: time });
    await isPrimary();
    expect(await idsThere()).toEqual([kept.id]);
    // It begins nothing, from the first request on.
    expect((await open(before))[0]).toBeGreaterThanOrEqual(500);
    expect(await before.ended()).toBe(1);
    expect(program.faults().join("\n")).toContain("brought back to an earlier time");
    expect(await idsThere()).toEqual([kept.id]);

    const anew = await program.serve();
    const [refused, { error }] = await open(anew);
    expect([refused, error.code]).toEqual([403, "restore_unacknowledged"]);
    expect(await typed("holdfast audit")).toContain("nothing disagrees");
    await typed(block("holdfast restore acknowledge"));
    expect((await open(anew))[0]).toBe(201);
    await anew.end();
  },
  TEST_MS,
);

/** How many leaves the newest checkpoint has, and how many have signed it. */
async function checkpointAt({
  base,
}: RunningServer): Promise<{ readonly size: number; readonly signers: number }> {
  const note = parseSignedNote(await (await fetch(`${base}/.well-known/holdfast/checkpoint`)).text());
  const checkpoint = note && parseCheckpoint(note.text);
  return { size: checkpoint?.size ?? 0, signers: note?.lines.length ?? 0 };
}

/** Two programs: one on the database, and another that witnesses its log. */
async function withWitness(): Promise<readonly [witnessed: Installation, witness: Installation]> {
  const port = await freePort();
  const { log } = await program.json("witness", "show");
  const address = { PORT: `${port}`, BASE_URL: `http://127.0.0.1:${port}` };
  const theirs = installed({ ...address, WITNESS_FOR: log.join(",") });
  await (await theirs.serve()).end();
  const { witness } = await theirs.json("witness", "show");
  const near = { WITNESS_ALLOW_NETWORKS: "127.0.0.0/8", CHECKPOINT_MS: "100" };
  return [installed({ ...settings, ...near, WITNESSES: witness }), theirs];
}

test(
  "where no instance was running, a witness says that it has signed more; and the operator declares the restore",
  async () => {
    const [witnessed, witness] = await withWitness();
    try {
      await witness.serve();
      const before = await witnessed.serve();
      const signedAbove = (least: number) =>
        until("the witness has signed", async () => {
          const { size, signers } = await checkpointAt(before);
          return size > least && signers === 2 ? size : null;
        });
      await open(before);
      const kept = await signedAbove(0);
      const { BASE, RECOVERED } = variables;
      const second = { PGDATA: `${RECOVERED}`, BASE: `${BASE}-2` };
      await operator(block("pg_basebackup"), second);
      const time = await nowThere();
      const ids = await idsThere();
      await open(before);
      await signedAbove(kept);
      expect(await before.end()).toBe(0);
      await operator(block("recovery.signal"), { ...second, RECOVERED: `${RECOVERED}-2`, TIME: time });
      await isPrimary();
      expect(await idsThere()).toEqual(ids);

      const undeclared = await witnessed.serve();
      await until("it says so", () =>
        witnessed
          .faults()
          .some((line) => line.includes("a witness has signed more of this log than there is")),
      );
      await undeclared.end();
      expect(await typed(block("holdfast restore declare"))).toContain("nothing disagrees");
      const declared = await witnessed.serve();
      const [refused, { error }] = await open(declared);
      expect([refused, error.code]).toEqual([403, "restore_unacknowledged"]);
      await typed(block("holdfast restore acknowledge"));
      expect((await open(declared))[0]).toBe(201);
    } finally {
      await witnessed.remove();
      await witness.remove();
    }
  },
  TEST_MS,
);

test(
  "a database of two roles comes back from a dump, and the one that serves switches off no guard",
  async () => {
    await operator(`psql --set=ON_ERROR_STOP=1 "$ADMIN_URL" <<'END'\n${twoRoles()}END`);
    const as = (role: string, database: string) => {
      const url = new URL(server.url(database));
      [url.username, url.password] = [role, ROLE_PASSWORD];
      return url.href;
    };
    const programs = [
      ["holdfast_owner", "serving"],
      ["serving", "serving"],
      ["serving", "holdfast_again"],
    ].map(([role = "", database = ""]) => installed({ ...settings, DATABASE: as(role, database) }));
    const [owner, serving, again] = programs as [Installation, Installation, Installation];
    try {
      await expect(serving.run("organisations", "list")).rejects.toThrow("may neither make the tables");
      await owner.run("organisations", "list");
      const buys = await createBuyer(serving);
      const first = await serving.serve();
      expect((await buys(first))[0]).toBe(201);
      const switching = operator('psql "$URL" --command="ALTER TABLE postings DISABLE TRIGGER USER"', {
        URL: as("serving", "serving"),
      });
      await expect(switching).rejects.toThrow("must be owner of table postings");

      const addresses = { OWNER_URL: "serving", OWNER_URL_OF_AGAIN: "holdfast_again" };
      await operator(
        block("pg_dump"),
        Object.fromEntries(
          Object.entries(addresses).map(([name, database]) => [name, as("holdfast_owner", database)]),
        ),
      );
      await again.run("restore", "declare");
      expect(await again.run("audit")).toContain("nothing disagrees");
      await again.run("restore", "acknowledge");
      const second = await again.serve();
      expect((await buys(second))[0]).toBe(201);

      await operator('psql "$URL" --command="ALTER TABLE postings DISABLE TRIGGER USER"', {
        URL: as("holdfast_owner", "holdfast_again"),
      });
      await expect(again.run("audit")).rejects.toThrow(
        "trigger postings_are_not_changed of postings is not as Holdfast makes it",
      );
    } finally {
      for (const one of programs) await one.remove();
    }
  },
  TEST_MS,
);
