/** The audit that instances make of a ledger in a database, again and again (docs/postgresql, "The audit"). */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { SQL } from "bun";
import { auditPostgres } from "../../src/store/postgres/audit.ts";
import type { Json } from "../support/client.ts";
import type { Installation, RunningServer } from "../support/executable.ts";
import { type Postgres, startPostgres } from "../support/postgres-server.ts";
import { until } from "../support/until.ts";
import { installed, settingsOn } from "./installed.ts";

const TEST_MS = 300_000;
/** The first audit is made after a minute, and so is the next. */
const AUDIT_MS_MAX = 130_000;
const TOKEN = "the-token-of-a-prometheus";

let postgres: Postgres;
let url: string;
let folder: string;
let copies: string;
let program: Installation;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "holdfast-audits-"));
  copies = join(folder, "copies");
  mkdirSync(copies);
  postgres = await startPostgres();
  url = await postgres.createDatabase();
  program = installed({
    ...settingsOn(url),
    ...{ AUDIT_FOLDER: copies, AUDIT_MINUTES: "1", METRICS_TOKEN: TOKEN },
  });
  const owner = ["--owner-email", "ada@example.com", "--owner-password", "correct horse"];
  await program.json("organisations", "create", "--name", "Acme", ...owner);
}, TEST_MS);
afterAll(async () => {
  await program.remove();
  await postgres.close();
  rmSync(folder, { recursive: true, force: true });
}, TEST_MS);

/** Works on the database with the rights of its owner. */
async function asOwner<Result>(work: (sql: SQL) => Promise<Result>): Promise<Result> {
  const sql = new SQL(url, { max: 1, bigint: true });
  try {
    return await work(sql);
  } finally {
    await sql.close();
  }
}

async function figure(server: RunningServer, name: string): Promise<string | undefined> {
  const response = await fetch(`${server.base}/metrics`, { headers: { Authorization: `Bearer ${TOKEN}` } });
  const lines = (await response.text()).split("\n");
  return lines.find((line) => line.startsWith(`${name} `))?.slice(name.length + 1);
}

/** Whether it is ready, and what is wrong. */
async function readiness(server: RunningServer): Promise<readonly unknown[]> {
  const response = await fetch(`${server.base}/readyz`);
  const { checks }: Json = await response.json();
  return [response.status, ...checks.filter(({ ok }: Json) => !ok).map(({ name }: Json) => name)];
}

const disagreements = (server: RunningServer) => figure(server, "holdfast_audit_disagreements");

test(
  "one instance audits for all; another takes over when it is killed. Copies that are left are removed by a start and by an audit",
  async () => {
    mkdirSync(join(copies, "holdfast-audit.killed"));
    const one = await program.serve();
    expect(readdirSync(copies)).toEqual([]);
    await until("it has the lease", () =>
      asOwner(async (sql) => (await sql`SELECT 1 FROM leases WHERE name = 'audit'`).length === 1),
    );
    const other = await program.serve();
    expect([await disagreements(one), await disagreements(other)]).toEqual(["-1", "-1"]);
    await asOwner((sql) => sql`ALTER TABLE warrants DISABLE TRIGGER warrants_keep_their_terms`);
    const copy = () => readdirSync(copies)[0] ?? null;
    const left = await until("a copy is made", copy, AUDIT_MS_MAX);
    await one.kill();
    expect(copy()).toBe(left);
    await until("the other has audited", async () => (await disagreements(other)) === "1", AUDIT_MS_MAX);
    expect(await readiness(other)).toEqual([503, "audit"]);
    const endedAt = await figure(other, "holdfast_audit_last_timestamp_seconds");
    expect(Math.abs(Date.now() / 1_000 - Number(endedAt))).toBeLessThan(30);
    await until("the copies are removed", () => readdirSync(copies).length === 0);
    const third = await program.serve();
    expect(await disagreements(third)).toBe("1");
    expect(await figure(third, "holdfast_audit_last_timestamp_seconds")).toBe(endedAt);
    expect(await readiness(third)).toEqual([503, "audit"]);
    const [fault] = program.faults();
    expect(fault).toContain("the ledger disagrees with itself; `holdfast audit` lists everything");
    expect(fault).toContain("trigger warrants_keep_their_terms of warrants is not as Holdfast makes it");
  },
  TEST_MS,
);

test("a copy that may not fit is not begun, and neither is one in a folder that is not there", async () => {
  const sql = new SQL(url, { max: 1, bigint: true });
  try {
    await expect(auditPostgres(sql, { folder: copies, freeBytes: () => 100_000_000 })).rejects.toMatchObject({
      message: expect.stringMatching(
        /^HOLDFAST_AUDIT_FOLDER: .* has 100000000 bytes free, and the copy of the ledger that is audited may need 1\d{8}: name a folder with more space$/,
      ),
    });
    expect(readdirSync(copies)).toEqual([]);
  } finally {
    await sql.close();
  }
  rmSync(copies, { recursive: true });
  await expect(program.json("audit")).rejects.toThrow(`HOLDFAST_AUDIT_FOLDER: there is no folder ${copies}`);
  mkdirSync(copies);
});
