import { afterEach, beforeEach, expect, test } from "bun:test";
import { mkdtempSync, openSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { parseCheckpoint } from "../../src/core/checkpoint.ts";
import { parseSignedNote } from "../../src/core/signed-note.ts";
import type { Json } from "../support/client.ts";
import { databaseSettings } from "../support/database-settings.ts";
import { openTestLedger } from "../support/ledger.ts";
import { copyLedgerFolder, removeLedgerFolder } from "../support/new-ledger.ts";
import { until } from "../support/until.ts";

/** Two servers that witness each other, each a process of its own; one of them is then given another past. */

const MAIN = resolve(import.meta.dir, "../../src/main.ts");
/** The smoke test of the binary runs this with the executable. */
const PROGRAM = process.env.EXECUTABLE ? [process.env.EXECUTABLE] : [process.execPath, MAIN];
const TIMEOUT_MS = 120_000;
const WITNESS = "/.well-known/holdfast/witness";

type Settings = Readonly<Record<string, string>>;

let folder: string;
let servers: Bun.Subprocess[];
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "holdfast-witnesses-"));
  servers = [];
});
afterEach(async () => {
  for (const server of servers) server.kill("SIGKILL");
  await Promise.all(servers.map(({ exited }) => exited));
  for (const name of ["one", "other", "copy"]) removeLedgerFolder(join(folder, name));
  rmSync(folder, { recursive: true, force: true });
});

const spawn = (args: readonly string[], settings: Settings, stderr: "pipe" | number = "pipe") =>
  Bun.spawn([...PROGRAM, ...args, "--json"], {
    cwd: folder,
    env: {
      ...databaseSettings(settings.DATA!),
      ...Object.fromEntries(Object.entries(settings).map(([name, value]) => [`HOLDFAST_${name}`, value])),
    },
    stdout: "pipe",
    stderr,
  });

async function run(args: readonly string[], settings: Settings): Promise<{ code: number; body: Json }> {
  const child = spawn(args, settings);
  const [out, err] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr as ReadableStream).text(),
  ]);
  const code = await child.exited;
  if (out === "") throw new Error(`${args.join(" ")} printed nothing: ${err}`);
  return { code, body: JSON.parse(out) };
}

/** Resolves when the server listens. */
async function serve(settings: Settings): Promise<Bun.Subprocess> {
  const server = spawn(["serve"], settings, openSync(join(folder, "stderr"), "a"));
  servers.push(server);
  let shown = "";
  for await (const chunk of server.stdout) {
    shown += new TextDecoder().decode(chunk);
    if (shown.includes("\n")) return server;
  }
  throw new Error(`it did not start: ${readFileSync(join(folder, "stderr"), "utf8")}`);
}

async function stop(server: Bun.Subprocess): Promise<void> {
  server.kill("SIGTERM");
  await server.exited;
}

/** A port that was free a moment ago. */
function freePort(): string {
  const server = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => new Response() });
  const { port } = server;
  void server.stop(true);
  return String(port);
}

const settingsOf = (name: string): Settings => {
  const port = freePort();
  return {
    DATA: join(folder, name),
    PORT: port,
    BASE_URL: `http://127.0.0.1:${port}`,
    WITNESS_ALLOW_NETWORKS: "127.0.0.0/8",
    RATE_READ: "1000000",
  };
};

const noteOf = async (settings: Settings) => {
  const note = parseSignedNote(
    await (await fetch(`${settings.BASE_URL}/.well-known/holdfast/checkpoint`)).text(),
  );
  const checkpoint = note && parseCheckpoint(note.text);
  return { size: checkpoint?.size ?? 0, signers: note?.lines.map(({ name }) => name) ?? [] };
};

/** Two data folders that have had a server, each with the settings by which they witness each other. */
async function twoInstances(): Promise<readonly [Settings, Settings]> {
  const alone = [settingsOf("one"), settingsOf("other")];
  const shown: Json[] = [];
  for (const settings of alone) {
    await stop(await serve(settings));
    shown.push((await run(["witness", "show"], settings)).body);
  }
  const [one, other] = alone.map((settings, index) => {
    const { witness, log } = shown[1 - index];
    return { ...settings, WITNESSES: witness, WITNESS_FOR: log.join(",") };
  });
  return [one!, other!];
}

/** An agent's key, with money to hold. */
async function fundedKey(settings: Settings): Promise<string> {
  const owner = ["--owner-email", "ada@example.com", "--owner-password", "correct horse battery staple"];
  const { organisation } = (await run(["organisations", "create", "--name", "Acme", ...owner], settings))
    .body;
  const account = ["--organisation", organisation.id, "--mode", "sandbox"];
  const agent = (await run(["agents", "create", ...account, "--name", "buyer"], settings)).body;
  await run(["balances", "fund", ...account, "--amount", "1000000"], settings);
  return (await run(["keys", "create", "--agent", agent.id], settings)).body.secret;
}

/** Opens warrants, each of which is an entry of the trace. */
async function openWarrants({ BASE_URL }: Settings, key: string, count: number): Promise<void> {
  for (let opened = 0; opened < count; opened++) {
    const response = await fetch(`${BASE_URL}/v1/warrants`, {
      method: "POST",
      headers: {
        Authorization: `Bearer ${key}`,
        "Content-Type": "application/json",
        "Idempotency-Key": crypto.randomUUID(),
      },
      body: JSON.stringify({
        amount: "10",
        payee: "acme",
        deadline: new Date(Date.now() + 3_600_000).toISOString(),
        spec: { clauses: [{ kind: "http.status", equals: 200 }] },
      }),
    });
    expect(response.status).toBe(201);
  }
}

const isSignedByTwo = (settings: Settings, size: number) => async () => {
  const note = await noteOf(settings);
  return note.size === size && note.signers.length === 2;
};

test(
  "two servers sign each other's logs; a log with another past gets no signature, and the audit says where it parts",
  async () => {
    const [one, other] = await twoInstances();
    const keys = [await fundedKey(one), await fundedKey(other)];
    let first = await serve(one);
    const second = await serve(other);
    await openWarrants(one, keys[0]!, 3);
    await openWarrants(other, keys[1]!, 2);
    await until(
      "each has signed the other's log",
      async () => (await isSignedByTwo(one, 3)()) && isSignedByTwo(other, 2)(),
    );

    // The ledger as it is now, which goes on in two ways.
    await stop(first);
    copyLedgerFolder(join(folder, "one"), join(folder, "copy"));
    first = await serve(one);
    await openWarrants(one, keys[0]!, 4);
    await until("the longer log is signed", isSignedByTwo(one, 7));
    const url = `${other.BASE_URL}${WITNESS}`;
    const agreed = await run(["audit", "--witness", url], one);
    expect(agreed).toMatchObject({ code: 0, body: { ok: true, witness: { size: 7, agrees_to: 7 } } });

    await stop(first);
    removeLedgerFolder(join(folder, "one"));
    copyLedgerFolder(join(folder, "copy"), join(folder, "one"));
    // It is shorter at first than what was signed.
    const cut = await run(["audit", "--witness", url], one);
    expect(cut).toMatchObject({ code: 1, body: { ok: false, witness: { size: 7, agrees_to: 3 } } });
    expect(cut.body.problems[0]).toContain("has signed this log at 7 leaves, and it has only 3 here");

    first = await serve(one);
    await openWarrants(one, keys[0]!, 6);
    await until("the other log is 9 leaves long", async () => (await noteOf(one)).size === 9);
    const parted = await run(["audit", "--witness", url], one);
    expect(parted).toMatchObject({ code: 1, body: { ok: false, witness: { size: 7, agrees_to: 3 } } });
    expect(parted.body.problems).toEqual([
      expect.stringMatching(
        /^the witness holdfast\/ins_\w+\/witness \(http.+\) has signed another log at 7 leaves: this one was rewritten; at 3 leaves, .+ so they part between the leaves 3 and 7$/,
      ),
    ]);
    // Whoever does not know the witness's key believes what the log itself has signed.
    const { WITNESSES: _, ...unknown } = one;
    const stranger = await run(["audit", "--witness", url], unknown);
    expect(stranger).toMatchObject({ code: 1, body: { witness: { size: 7, agrees_to: 0 } } });

    await until("it is logged", async () =>
      readFileSync(join(folder, "stderr"), "utf8").includes(
        "a witness has signed another log under this name",
      ),
    );
    await stop(first);
    expect((await noteOf(other)).signers).toHaveLength(2);
    const ledger = openTestLedger(join(folder, "one"));
    expect(ledger.rows("SELECT size FROM cosignatures ORDER BY size")).toEqual([{ size: 3n }]);
    ledger.close();
    await stop(second);
  },
  TIMEOUT_MS,
);
