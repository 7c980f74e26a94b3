import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { databaseSettings } from "../support/database-settings.ts";
import { removeLedgerFolder } from "../support/new-ledger.ts";

/** `holdfast serve` as its operator sees it: the log, health and metrics, and the commands beside it. */

const MAIN = resolve(import.meta.dir, "../../src/main.ts");
const TOKEN = "the-token-of-a-prometheus";
const PASSWORD = "correct horse battery";

let folder: string;
let server: Bun.Subprocess<"ignore", "pipe", "pipe">;
let url: string;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "holdfast-operation-"));
  server = start("serve", "--json", "--log", "requests");
  const { value } = await server.stdout.getReader().read();
  ({ url } = JSON.parse(new TextDecoder().decode(value)));
});
afterAll(async () => {
  server.kill("SIGKILL");
  await server.exited;
  removeLedgerFolder(folder);
});

const start = (...args: readonly string[]) =>
  Bun.spawn([process.execPath, MAIN, ...args], {
    cwd: folder,
    env: {
      ...databaseSettings(folder),
      HOLDFAST_DATA: join(folder, "data"),
      HOLDFAST_PORT: "0",
      HOLDFAST_METRICS_TOKEN: TOKEN,
    },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });

async function run(...args: readonly string[]) {
  const child = start(...args, "--json");
  const [out, err, code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  if (code !== 0) throw new Error(err);
  return JSON.parse(out);
}

test("the running service answers health and metrics, and logs every request", async () => {
  const { port } = new URL(url);
  expect(await run("health", "--ready", "--port", port)).toEqual({
    ...{ object: "health", ok: true, url: `http://127.0.0.1:${port}/readyz` },
  });
  const owner = ["--owner-email", "ada@example.com", "--owner-password", PASSWORD];
  const { organisation } = await run("organisations", "create", "--name", "Acme", ...owner);
  const account = ["--organisation", organisation.id, "--mode", "sandbox"];
  const agent = await run("agents", "create", ...account, "--name", "buyer");
  const { secret } = await run("keys", "create", "--agent", agent.id);
  await run("balances", "fund", ...account, "--amount", "500");
  expect(await run("jobs", "run", "deadlines")).toEqual({ object: "job", job: "deadlines", done: 0 });
  await fetch(`${url}/v1/warrants?secret=${secret}`, {
    headers: { Authorization: `Bearer ${secret}`, "X-Request-Id": "the-caller's-own" },
  });
  await fetch(`${url}/auth/session`, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ email: "ada@example.com", password: PASSWORD }),
  });

  const metrics = await fetch(`${url}/metrics`, { headers: { Authorization: `Bearer ${TOKEN}` } });
  const text = await metrics.text();
  expect(text).toContain('holdfast_money{mode="sandbox",asset="USDC",state="available"} 500\n');
  expect(text).toContain('holdfast_http_requests_total{method="GET",route="/readyz",status="200"} 1\n');
  expect(text).toMatch(/^holdfast_job_runs_total\{job="deadlines"\} [0-9]+$/m);
  expect(text).toMatch(/^holdfast_commit_commands_count [1-9]/m);
  expect(text).toContain('holdfast_evaluator_children{pool="verify"} 2\n');

  server.kill("SIGTERM");
  const log = await new Response(server.stderr).text();
  expect(await server.exited).toBe(0);
  const lines = log
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
  expect(lines.map(({ level, message, route, status }) => [level, message, route, status])).toEqual([
    ["info", "started", undefined, undefined],
    ["info", "request", "/readyz", 200],
    ["warning", "refused", "/v1/warrants", 400],
    ["info", "request", "/v1/warrants", 400],
    ["info", "signed in", undefined, undefined],
    ["info", "request", "/auth/session", 201],
    ["info", "request", "/metrics", 200],
    ["info", "stopped", undefined, undefined],
  ]);
  expect(lines[3]).toEqual({
    ...{ time: expect.any(String), level: "info", message: "request" },
    ...{ request_id: expect.stringMatching(/^req_/), caller_request_id: "the-caller's-own" },
    ...{ method: "GET", route: "/v1/warrants", status: 400, duration_ms: expect.any(Number), caller: "key" },
    ...{ caller_id: expect.stringMatching(/^key_/), address: "127.0.0.1" },
  });
  for (const hidden of [secret, TOKEN, PASSWORD, "ada@example.com"]) expect(log).not.toContain(hidden);
}, 30_000);
