import { afterEach, beforeEach, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createProgram, type Json, type Program, type Server, SOURCE } from "../crash/program.ts";
import { createClient } from "../support/client.ts";
import { databaseSettings } from "../support/database-settings.ts";
import { removeLedgerFolder } from "../support/new-ledger.ts";
import { onlyEmbedded } from "../support/only-embedded.ts";

/** On one folder run at most one server, and any number of commands beside it. */

const TEST_MS = 60_000;
const CALLERS = 8;

let folder: string;
let program: Program;
let server: Server;
let account: readonly string[];
let agent: Json;
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "holdfast-beside-"));
  mkdirSync(join(folder, "data"));
  program = createProgram(SOURCE, folder, databaseSettings(folder));
  const { organisation } = await program.command(
    ...["organisations", "create", "--name", "Beside", "--owner-email", "owner@example.com"],
    ...["--owner-password", "correct horse battery staple"],
  );
  account = ["--organisation", organisation.id, "--mode", "sandbox"];
  agent = await program.command("agents", "create", ...account, "--name", "first");
  server = await program.serve();
}, TEST_MS);
afterEach(async () => {
  await program.killAll();
  removeLedgerFolder(folder);
});

const client = () => createClient(fetch, server.url, `http://localhost:${new URL(server.url).port}/docs`);
const keyOf = async ({ id }: Json) => {
  const { id: keyId, secret } = await program.command("keys", "create", "--agent", id);
  return { keyId, as: { authorization: `Bearer ${secret}` } };
};
const open = (as: Record<string, string>) =>
  client().post(
    "/v1/warrants",
    {
      amount: "1",
      payee: "acme",
      deadline: new Date(Date.now() + 3_600_000).toISOString(),
      spec: { clauses: [{ kind: "http.status", equals: 200 }] },
    },
    { as },
  );

onlyEmbedded(import.meta.path).test(
  "a second server refuses to start and says why; the first goes on; when it has ended, the next may start",
  async () => {
    const second = await program.serve().catch(() => null);
    expect(second).toBeNull();
    const said = program.faults().map((line) => JSON.parse(line).error);
    expect(said).toMatchObject([
      { code: "validation_failed", message: expect.stringContaining("another server runs on data") },
    ]);
    expect((await client().get("/healthz")).status).toBe(200);
    await server.kill();
    server = await program.serve();
    expect((await client().get("/healthz")).status).toBe(200);
  },
  TEST_MS,
);

test(
  "what commands make or revoke beside a server under load holds from the next request on",
  async () => {
    const { as } = await keyOf(agent);
    await program.command("balances", "fund", ...account, "--amount", "1000000");
    let opened = 0;
    let over = false;
    const load = Array.from({ length: CALLERS }, async () => {
      while (!over) {
        expect((await open(as)).status).toBe(201);
        opened++;
      }
    });
    const buyer = await program.command("agents", "create", ...account, "--name", "second");
    const key = await keyOf(buyer);
    expect((await open(key.as)).status).toBe(201);
    await program.command("agents", "set-status", buyer.id, "paused");
    expect((await open(key.as)).code).toBe("agent_not_active");
    await program.command("keys", "revoke", key.keyId);
    expect((await open(key.as)).code).toBe("not_authenticated");
    await program.command("balances", "fund", ...account, "--amount", "7");
    over = true;
    await Promise.all(load);
    expect(opened).toBeGreaterThan(CALLERS);
    const { balances } = await program.command("balances", "show", ...account);
    expect(balances).toEqual([
      { asset: "USDC", available: String(1_000_007 - opened - 1), held: String(opened + 1), paid: "0" },
    ]);
    expect((await program.command("audit")).problems).toEqual([]);
    expect(program.faults()).toEqual([]);
  },
  TEST_MS,
);
