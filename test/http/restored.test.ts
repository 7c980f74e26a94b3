import { expect } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { backUpFolder, restoreFolder } from "../../src/app/backups.ts";
import { openForCommands } from "../../src/app/ledger.ts";
import { type RunningServer, startServer } from "../../src/app.ts";
import { NO_SECRETS, readConfig } from "../../src/config.ts";
import { MACHINE } from "../../src/services/admin/authority.ts";
import { fundBalance } from "../../src/services/admin/balances.ts";
import { type Client, createClient, type Reply } from "../support/client.ts";
import { createCommandLine } from "../support/command-line.ts";
import { openTestLedger } from "../support/ledger.ts";
import { onlyEmbedded } from "../support/only-embedded.ts";
import { makeOrganisation, must, type TestOrganisation } from "../support/organisations.ts";
import { testSettings } from "../support/server.ts";

const { afterEach, beforeEach, test } = onlyEmbedded(import.meta.path);

/** After a restore live opens are refused until somebody acknowledges it (docs/operating, "Restore"). */

let root: string;
let running: RunningServer | null = null;
let client: Client;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "holdfast-restored-"));
});
afterEach(async () => {
  await running?.stop();
  rmSync(root, { recursive: true, force: true });
});

const configOf = (name: string) => must(readConfig(testSettings(join(root, name)), {}));

async function start(name: string): Promise<RunningServer> {
  running = must(await startServer(configOf(name)));
  client = createClient(fetch, running.url, `http://localhost:${new URL(running.url).port}/docs`);
  return running;
}

async function stop(): Promise<void> {
  await running?.stop();
  running = null;
}

async function backup(name: string, file: string): Promise<void> {
  const config = configOf(name);
  must(
    await backUpFolder(config, NO_SECRETS, await openForCommands(config), {
      file: join(root, file),
      disagreesFile: join(root, file),
      withKeys: true,
      passphrase: null,
    }),
  );
}

/** Restores with the key of the first folder, as on its own machine. */
async function restore(file: string, name: string): Promise<void> {
  const input = {
    file: join(root, file),
    despiteAudit: false,
    unverified: false,
    key: null,
    passphrase: null,
  };
  must(await restoreFolder(configOf(name), NO_SECRETS, join(root, "original"), input));
}

/** Acknowledges as an operator does: by a process of its own, beside the server. */
async function acknowledge(name: string): Promise<Record<string, unknown>> {
  const { ctx, close } = await openForCommands(configOf(name));
  try {
    return await createCommandLine(ctx).json("restore", "acknowledge");
  } finally {
    await close();
  }
}

const deadline = new Date(Date.now() + 3_600_000).toISOString();
const open = (as: TestOrganisation["live"]["as"], key?: string): Promise<Reply> =>
  client.post(
    "/v1/warrants",
    { amount: "100", payee: "acme", deadline, spec: { clauses: [{ kind: "http.status", equals: 200 }] } },
    { as, ...(key !== undefined && { key }) },
  );
const outcome = ({ status, code }: Reply) => [status, code];

test("no live money moves until the restore is acknowledged, and the sandbox goes on", async () => {
  const { ctx } = await start("original");
  const home = await makeOrganisation(ctx, client);
  const opened = await open(home.live.as, "before");
  const settled = await open(home.live.as);
  expect([opened.status, settled.status]).toEqual([201, 201]);
  await backup("original", "a.backup");
  expect((await open(home.live.as, "forgotten")).status).toBe(201);
  await stop();

  await restore("a.backup", "restored");
  const { ctx: restored } = await start("restored");
  const live = { organisationId: home.id, mode: "live" } as const;
  const { reader, close } = openTestLedger(join(root, "restored"));
  const held = () => reader.balances.list(live)[0]?.balance.held;
  expect(held()).toBe(200n);
  for (const key of ["forgotten", undefined]) {
    expect(outcome(await open(home.live.as, key))).toEqual([403, "restore_unacknowledged"]);
  }
  expect(outcome(await open(home.people.operator.as))).toEqual([403, "restore_unacknowledged"]);
  const fund = () => fundBalance(restored, MACHINE, { organisation_id: home.id, mode: "live", amount: "1" });
  expect(await fund()).toMatchObject({ refused: "restore_unacknowledged" });
  expect(held()).toBe(200n);
  expect(reader.warrants.byCreation(live, {}, {}, 10)).toHaveLength(2);

  const replayed = await open(home.live.as, "before");
  expect([replayed.status, replayed.text, replayed.headers.get("idempotent-replayed")]).toEqual([
    ...[201, opened.text, "true"],
  ]);
  expect((await open(home.sandbox.as)).status).toBe(201);
  const as = home.people.operator.as;
  const path = `/v1/warrants/${settled.body.id}`;
  const refund = () => client.post(`${path}/refund`, undefined, { as });
  expect(outcome(await refund())).toEqual([403, "restore_unacknowledged"]);
  // The source is not asked: what it says could not settle anything.
  const source_url = "http://127.0.0.1:1/";
  expect(outcome(await client.post(`${path}/verify`, { source_url }, { as }))).toEqual([
    ...[403, "restore_unacknowledged"],
  ]);
  expect(held()).toBe(200n);

  const acknowledged = await acknowledge("restored");
  expect(acknowledged).toEqual({
    object: "instance",
    id: reader.instance.get()?.id,
    created_at: expect.any(String),
    restored_at: expect.any(String),
    acknowledged_at: expect.any(String),
    restored_unverified_at: null,
  });
  must(await fund());
  // The refusals moved nothing, so the same requests are decided anew.
  expect((await refund()).status).toBe(200);
  expect((await open(home.live.as, "forgotten")).status).toBe(201);
  expect(held()).toBe(200n);
  expect(await acknowledge("restored")).toEqual(acknowledged);
  expect(await restored.store.audit()).toEqual([]);
  close();
});

test("a restart does not end the refusal, and a second restore needs a second acknowledgement", async () => {
  const { ctx } = await start("original");
  const home = await makeOrganisation(ctx, client);
  await backup("original", "a.backup");
  await stop();
  await restore("a.backup", "first");
  for (let starts = 0; starts < 2; starts++) {
    await start("first");
    expect(outcome(await open(home.live.as))).toEqual([403, "restore_unacknowledged"]);
    await stop();
  }
  await acknowledge("first");
  await backup("first", "b.backup");
  await start("first");
  expect((await open(home.live.as)).status).toBe(201);
  await stop();
  await restore("b.backup", "second");
  await start("second");
  expect(outcome(await open(home.live.as))).toEqual([403, "restore_unacknowledged"]);
});
