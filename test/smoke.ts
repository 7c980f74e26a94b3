/**
 * `bun run smoke`: drives dist/holdfast as an operator and an agent would, from empty folders and with an
 * empty environment. It knows only the command line and HTTP, and stops at the first thing that is wrong.
 */
import { Database } from "bun:sqlite";
import assert from "node:assert/strict";
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { createAuthenticator } from "./support/authenticator.ts";
import { onTerminal } from "./support/pseudo-terminal.ts";

const BINARY = resolve(import.meta.dir, "../dist/holdfast");
const COMMAND_MS = 60_000;
const READY_MS = 20_000;
const DRAIN_MS = 10_000;
/** More than what the store audits in one thread. */
const LONG_BYTES = 80_000_000;

type Settings = Record<string, string>;
type Json = Record<string, unknown>;

assert.ok(existsSync(BINARY), "dist/holdfast is missing: run `bun run build` first");
const root = mkdtempSync(join(tmpdir(), "holdfast-smoke-"));
try {
  await serviceWorks();
  await demoWorks();
  await hostileFolderIsIgnored();
} finally {
  rmSync(root, { recursive: true, force: true });
}

async function serviceWorks(): Promise<void> {
  const folder = emptyFolder("service");
  const port = await freePort();
  const settings = {
    HOLDFAST_PORT: String(port),
    HOLDFAST_ALLOW_NETWORKS: "127.0.0.0/8",
    HOLDFAST_X402_ALLOW_NETWORKS: "127.0.0.0/8",
    HOLDFAST_X402_SANDBOX_KEY: `0x${"4c".repeat(32)}`,
  };
  const run = (...args: string[]) => holdfast(folder, args, settings);
  const json = async (...args: string[]): Promise<Json> => JSON.parse(await run(...args, "--json"));

  assert.match(await run("--help"), /demo[\s\S]*serve/);
  passed("--help");

  const { organisation } = await json(
    ...["organisations", "create", "--name", "Smoke"],
    ...["--owner-email", "owner@example.com", "--owner-password", "correct horse battery staple"],
  );
  const account = ["--organisation", idOf(organisation), "--mode", "sandbox"];
  const agent = await json("agents", "create", ...account, "--name", "buyer");
  const key = await json("keys", "create", "--agent", idOf(agent));
  assert.match(String(key.secret), /^hf_test_/);
  await json("balances", "fund", ...account, "--amount", "1000000");
  passed("organisation, agent, key and balance from the command line");

  const server = Bun.spawn([BINARY, "serve"], spawnOptions(folder, settings));
  const seller = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: () => Response.json({ report: "done" }),
  });
  try {
    await waitUntilReady(server, port);
    await run("health");
    passed("serve says where it listens, and is healthy");
    await secondServerIsRefused(folder, settings);

    const secret = String(key.secret);
    const warrant = await post(port, secret, "/v1/warrants", 201, {
      amount: "250000",
      payee: "seller",
      deadline: new Date(Date.now() + 3_600_000).toISOString(),
      agent_id: idOf(agent),
      spec: {
        clauses: [
          { kind: "http.status", equals: 200 },
          { kind: "json.jsonpath", path: "$.report", equals: "done" },
        ],
      },
    });
    assert.equal(warrant.state, "held");
    const source = { source_url: seller.url.href };
    const verified = await post(port, secret, `/v1/warrants/${idOf(warrant)}/verify`, 200, source);
    assert.equal(verified.state, "released");
    passed("a warrant is opened, its deliverable checked, its money released");

    const { balances } = await json("balances", "show", ...account);
    assert.partialDeepStrictEqual(balances, [
      { asset: "USDC", available: "750000", held: "0", paid: "250000" },
    ]);
    await run("audit");
    passed("the balances say so, and the audit finds nothing");

    await paysOnAChain(port, secret);
    await run("audit");
    passed("a purchase is signed for a chain");

    await passkeySignsIn(port);
    passed("a passkey is registered, and signs in");

    await endsWhenAsked(server);

    await longLedgerIsAudited(join(folder, "data", "holdfast.db"), () => run("audit"));

    await longWorkIsShown(folder, settings, async (url) => {
      const webhook = await json("webhooks", "create", ...account, "--url", url);
      await run("webhooks", "send-example", idOf(webhook));
    });
  } finally {
    server.kill("SIGKILL");
    await seller.stop(true);
  }
}

async function endsWhenAsked(server: Bun.Subprocess): Promise<void> {
  server.kill("SIGTERM");
  const late = setTimeout(() => server.kill("SIGKILL"), DRAIN_MS);
  assert.equal(await server.exited, 0, "serve must end with 0 within 10 s of SIGTERM");
  clearTimeout(late);
  passed("SIGTERM ends it with 0");
}

/** The length of the file decides whether threads audit it, so free pages count. */
async function longLedgerIsAudited(ledger: string, audit: () => Promise<unknown>): Promise<void> {
  using raw = new Database(ledger);
  raw.run("CREATE TABLE long (bytes)");
  raw.run(`INSERT INTO long VALUES (zeroblob(${LONG_BYTES}))`);
  raw.run("DROP TABLE long");
  raw.run("PRAGMA wal_checkpoint(TRUNCATE)");
  await audit();
  passed("a long ledger is audited in two threads");
}

async function secondServerIsRefused(folder: string, settings: Settings): Promise<void> {
  const second = Bun.spawn([BINARY, "serve"], {
    ...spawnOptions(folder, settings),
    stderr: "pipe",
    timeout: READY_MS,
  });
  const said = await new Response(second.stderr).text();
  assert.equal(await second.exited, 1, "a second server on the folder must not start");
  assert.match(said, /another server runs on/);
  passed("a second server on the folder refuses to start, and says why");
}

/** The thread that draws the progress is a second entry point of the executable. Only long work on a terminal needs it. */
async function longWorkIsShown(
  folder: string,
  settings: Settings,
  sendTo: (url: string) => Promise<void>,
): Promise<void> {
  const receiver = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    async fetch() {
      await Bun.sleep(3_000);
      return new Response();
    },
  });
  try {
    await sendTo(receiver.url.href);
    const command = [BINARY, "jobs", "run", "webhooks"];
    const { code, written } = await onTerminal(command, { cwd: folder, env: settings });
    assert.equal(code, 0, written);
    assert.match(
      written,
      /^holdfast: running the job webhooks, \d s<clear>\r[\s\S]*<clear>The job webhooks ran\./,
    );
    passed("long work shows its progress on a terminal");
  } finally {
    await receiver.stop(true);
  }
}

/** x402's packages are loaded at their first use, so only a purchase shows that they work. This seller names no transaction. */
async function paysOnAChain(port: number, secret: string): Promise<void> {
  const base64 = (value: unknown) => Buffer.from(JSON.stringify(value)).toString("base64");
  const entry = {
    scheme: "exact",
    network: "eip155:84532",
    amount: "10000",
    asset: "0x036CbD53842c5426634e7929541eC2318f3dCF7e",
    payTo: `0x${"a1".repeat(20)}`,
    maxTimeoutSeconds: 60,
    extra: { name: "USDC", version: "2" },
  };
  const required = base64({ x402Version: 2, accepts: [entry] });
  let payment: string | null = null;
  const seller = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch({ headers }) {
      payment = headers.get("payment-signature");
      if (payment !== null) return Response.json({});
      return new Response("", { status: 402, headers: { "PAYMENT-REQUIRED": required } });
    },
  });
  try {
    const bought = await post(port, secret, "/v1/x402/pay", 200, {
      url: seller.url.href,
      max_amount: "10000",
      spec: { clauses: [{ kind: "http.status", equals: 200 }] },
    });
    assert.deepEqual([bought.state, bought.reason_codes], ["escalated", ["payment_unknown"]]);
    assert.partialDeepStrictEqual(JSON.parse(Buffer.from(String(payment), "base64").toString()), {
      x402Version: 2,
      accepted: entry,
      payload: { authorization: { value: "10000" } },
    });
  } finally {
    await seller.stop(true);
  }
}

/** The library for passkeys is loaded at its first use, so only a passkey shows that it works in the executable. */
async function passkeySignsIn(port: number): Promise<void> {
  const base = `http://localhost:${port}`;
  const password = "correct horse battery staple";
  const send = async (path: string, status: number, body: object, cookie = "") => {
    const response = await fetch(base + path, {
      method: "POST",
      headers: { "Content-Type": "application/json", ...(cookie && { Cookie: cookie }) },
      body: JSON.stringify(body),
    });
    const text = await response.text();
    assert.equal(response.status, status, `POST ${path}: ${text}`);
    return { answer: JSON.parse(text), cookie: response.headers.get("set-cookie")?.split(";")[0] ?? "" };
  };
  const { cookie } = await send("/auth/session", 201, { email: "owner@example.com", password });
  const authenticator = createAuthenticator(base);
  const { answer: asked } = await send("/auth/passkeys/options", 200, { password }, cookie);
  await send("/auth/passkeys", 201, { response: authenticator.create(asked) }, cookie);
  const { answer: options } = await send("/auth/passkey/sign-in/options", 200, {});
  const [credential] = authenticator.credentials;
  assert.ok(credential);
  await send("/auth/passkey/sign-in", 201, { response: authenticator.get(options, credential) });
}

async function demoWorks(): Promise<void> {
  const tour = Bun.spawn([BINARY, "demo", "--exit"], {
    ...spawnOptions(emptyFolder("demo"), {}),
    stderr: "pipe",
    timeout: COMMAND_MS,
  });
  const [story, besides] = await Promise.all(
    [tour.stdout, tour.stderr].map((out) => new Response(out).text()),
  );
  assert.equal(await tour.exited, 0, `holdfast demo --exit\n${story}`);
  assert.equal(besides, "", "the demo prints nothing but its tour");
  assert.match(story ?? "", /released/);
  passed("demo --exit, from an empty folder");

  const record = oneObject(
    await holdfast(emptyFolder("demo-exit"), ["demo", "--exit", "--json", "--data", "ledger"]),
  );
  assert.partialDeepStrictEqual(record, { object: "demo", audit: { ok: true, problems: [] }, yours: null });
  assert.partialDeepStrictEqual(record.purchase, { state: "released", paid: true, status: 200 });
  passed("demo --exit --json prints one object");
  await demoServesOn();
}

/** `demo --json` prints one object once it serves. The receipts agree with it, and nothing follows it. */
async function demoServesOn(): Promise<void> {
  const settings = { HOLDFAST_PORT: String(await freePort()) };
  const demo = Bun.spawn(
    [BINARY, "demo", "--json", "--data", "ledger"],
    spawnOptions(emptyFolder("demo-serves"), settings),
  );
  try {
    const late = setTimeout(() => demo.kill("SIGKILL"), READY_MS);
    const reader = demo.stdout.pipeThrough(new TextDecoderStream()).getReader();
    let said = "";
    const readOn = async () => {
      const { value, done } = await reader.read();
      said += value ?? "";
      return !done;
    };
    while (!said.includes("\n")) assert.ok(await readOn(), `demo ended early, having said: ${said}`);
    clearTimeout(late);
    const { warrants } = oneObject(said);
    assert.ok(Array.isArray(warrants) && warrants.length > 0, "a demo without warrants");
    for (const { id, state, amount, released_bps, score, passed, reason_codes, receipt_url } of warrants) {
      assert.partialDeepStrictEqual(await (await fetch(receipt_url)).json(), {
        warrant: { id, state, amount, released_bps },
        checks: [{ score, passed, reason_codes }],
      });
    }
    demo.kill("SIGTERM");
    const tooLong = setTimeout(() => demo.kill("SIGKILL"), DRAIN_MS);
    while (await readOn());
    assert.equal(await demo.exited, 0, "demo must end with 0 within 10 s of SIGTERM");
    clearTimeout(tooLong);
    oneObject(said);
    passed("demo --json prints one object that its receipts agree with, serves, and ends with 0");
  } finally {
    demo.kill("SIGKILL");
  }
}

/** The stdout of a command with `--json`: one line, one object. */
function oneObject(stdout: string): Json {
  assert.match(stdout, /^\{.*\}\n$/, `not one line with one object: ${stdout}`);
  return JSON.parse(stdout);
}

/** Bun loads these files from the folder in which it is started. The executable must not, since others may write there. */
async function hostileFolderIsIgnored(): Promise<void> {
  const folder = emptyFolder("hostile");
  writeFileSync(join(folder, ".env"), "HOLDFAST_PORT=nonsense\nHOLDFAST_HOSTILE=1\n");
  writeFileSync(join(folder, "bunfig.toml"), 'preload = ["./hostile.ts"]\n');
  writeFileSync(join(folder, "hostile.ts"), 'await Bun.write("hostile-ran", ""); process.exit(66);\n');
  await holdfast(folder, [
    ...["organisations", "create", "--name", "Smoke", "--owner-email", "owner@example.com"],
    ...["--owner-password", "correct horse battery staple", "--json"],
  ]);
  assert.ok(!existsSync(join(folder, "hostile-ran")), "the folder's bunfig.toml preload ran");
  passed("a hostile .env and bunfig.toml are ignored");
}

function emptyFolder(name: string): string {
  const folder = join(root, name);
  mkdirSync(folder);
  return folder;
}

async function freePort(): Promise<number> {
  const probe = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: () => new Response() });
  const { port } = probe;
  await probe.stop(true);
  assert.ok(port);
  return port;
}

function spawnOptions(cwd: string, env: Settings) {
  return { cwd, env, stdin: "ignore", stdout: "pipe", stderr: "inherit" } as const;
}

/** Runs one command to its end, and answers its stdout. Throws where the exit code is not 0. */
async function holdfast(folder: string, args: string[], settings: Settings = {}): Promise<string> {
  const child = Bun.spawn([BINARY, ...args], { ...spawnOptions(folder, settings), timeout: COMMAND_MS });
  const output = await new Response(child.stdout).text();
  assert.equal(await child.exited, 0, `holdfast ${args.join(" ")}\n${output}`);
  return output;
}

/** Reads the server's stdout until it names its address. */
async function waitUntilReady(server: { stdout: ReadableStream; kill(): void }, port: number): Promise<void> {
  const late = setTimeout(() => server.kill(), READY_MS);
  const reader = server.stdout.pipeThrough(new TextDecoderStream()).getReader();
  for (let said = ""; !new RegExp(`http://[^\\s/]+:${port}\\b`).test(said); ) {
    const { value, done } = await reader.read();
    assert.ok(!done, `serve ended before it was ready, having said: ${said}`);
    said += value;
  }
  clearTimeout(late);
}

/** One POST under a new idempotency key: the answer's body. Throws where the status is another than expected. */
async function post(port: number, secret: string, path: string, status: number, body: Json): Promise<Json> {
  const response = await fetch(`http://127.0.0.1:${port}${path}`, {
    method: "POST",
    headers: {
      authorization: `Bearer ${secret}`,
      "content-type": "application/json",
      "idempotency-key": crypto.randomUUID(),
    },
    body: JSON.stringify(body),
  });
  const text = await response.text();
  assert.equal(response.status, status, `POST ${path}: ${text}`);
  return JSON.parse(text);
}

function idOf(resource: unknown): string {
  assert.ok(resource && typeof resource === "object" && "id" in resource, "a resource without an id");
  return String(resource.id);
}

function passed(what: string): void {
  console.log(`ok  ${what}`);
}
