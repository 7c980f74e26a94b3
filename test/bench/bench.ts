/**
 * `bun run bench`: loads the compiled server with wrk at 1, 8 and 64 connections, and in the same run a bare Elysia echo with
 * the same validation and a bare SQLite loop, and prints rates, latencies, memory and the ratios. Ratios of one run are what
 * can be compared; absolute figures are this machine's, today. Needs wrk (Debian's package of that name).
 */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

const BINARY = resolve(import.meta.dir, "../../dist/holdfast");
const CONNECTIONS = [1, 8, 64] as const;
const SECONDS = Number(process.env.BENCH_SECONDS ?? 5);
const PORTS = { server: 18_080, aot: 18_081, dynamic: 18_082, seller: 18_083 };
const SOURCE = `http://127.0.0.1:${PORTS.seller}/deliverable.json`;
/** Warrants to verify at each number of connections: more than a run gets through. */
const VERIFIES_MAX = 2_500 * SECONDS;

type Kind = "open" | "verify" | "read";
type Result = { readonly rate: number; readonly p50: number; readonly p99: number; readonly failed: number };

if (Bun.which("wrk") === null) {
  console.error("bench needs wrk: apt-get install wrk");
  process.exit(1);
}
const folder = mkdtempSync(join(tmpdir(), "holdfast-bench-"));
const idsFile = join(folder, "ids");
const processes: Bun.Subprocess[] = [];
try {
  await main();
} finally {
  for (const child of processes) child.kill();
  await Promise.all(processes.map((child) => child.exited));
  rmSync(folder, { recursive: true, force: true });
}

async function main(): Promise<void> {
  const secret = prepareLedger();
  const server = start([BINARY, "serve"], settings());
  start([process.execPath, join(import.meta.dir, "echo.ts"), String(PORTS.aot), "aot"]);
  start([process.execPath, join(import.meta.dir, "echo.ts"), String(PORTS.dynamic), "dynamic"]);
  start([process.execPath, join(import.meta.dir, "seller.ts"), String(PORTS.seller)]);
  for (const port of Object.values(PORTS)) await untilUp(port);

  const loop = sqliteLoop();
  const rows: [string, Result][] = [];
  const measure = (name: string, port: number, connections: number, kind: Kind) => {
    const result = load(port, connections, kind, secret);
    rows.push([name.padEnd(22) + String(connections).padStart(3), result]);
    return result;
  };
  const idle = memoryOf(server.pid);
  const ratios: string[] = [];
  for (const connections of CONNECTIONS) {
    const aot = measure("echo, ahead of time", PORTS.aot, connections, "open");
    const dynamic = measure("echo, dynamic", PORTS.dynamic, connections, "open");
    const opens = measure("opens", PORTS.server, connections, "open");
    await writeFreshIds(secret, VERIFIES_MAX);
    const reads = measure("reads", PORTS.server, connections, "read");
    const verifies = measure("verifies", PORTS.server, connections, "verify");
    const of = (part: number, whole: number) => (part / whole).toFixed(3);
    ratios.push(
      `${String(connections).padStart(3)} connections: opens ${of(opens.rate, aot.rate)} of the ahead-of-time echo, ` +
        `${of(opens.rate, dynamic.rate)} of the dynamic one, ${of(opens.rate, loop.get(connections) ?? 0)} of the SQLite loop; ` +
        `reads ${of(reads.rate, aot.rate)}; verifies ${of(verifies.rate, aot.rate)}`,
    );
  }
  console.log(
    `\n${"".padEnd(25)}${["per s", "p50 ms", "p99 ms", "failed"].map((head) => head.padStart(10)).join("")}`,
  );
  for (const [name, { rate, p50, p99, failed }] of rows) {
    const figures = [rate.toFixed(0), (p50 / 1_000).toFixed(2), (p99 / 1_000).toFixed(2), String(failed)];
    console.log(name + figures.map((figure) => figure.padStart(10)).join(""));
  }
  console.log("\nSQLite loop, six rows a request, one fsync a batch:");
  for (const [batch, rate] of loop) console.log(`  batches of ${batch}: ${rate} requests/s`);
  console.log(`\nServer memory: ${idle} MB idle, ${memoryOf(server.pid)} MB after the load`);
  console.log(`\nRatios\n${ratios.join("\n")}`);
}

function settings(): Record<string, string> {
  return {
    HOLDFAST_DATA: join(folder, "data"),
    HOLDFAST_PORT: String(PORTS.server),
    HOLDFAST_ALLOW_NETWORKS: "127.0.0.0/8",
    HOLDFAST_RATE_READ: "100000000",
    HOLDFAST_RATE_WRITE: "100000000",
  };
}

/** An organisation with an agent, a key and more money than the load can hold; the key's secret. */
function prepareLedger(): string {
  mkdirSync(join(folder, "data"));
  const run = (...args: string[]) => {
    const { stdout, stderr, success } = Bun.spawnSync([BINARY, ...args, "--json"], { env: settings() });
    if (!success) throw new Error(stderr.toString());
    return JSON.parse(stdout.toString());
  };
  const owner = ["--owner-email", "bench@example.com", "--owner-password", "correct horse battery"];
  const { organisation } = run("organisations", "create", "--name", "Bench", ...owner);
  const books = ["--organisation", organisation.id, "--mode", "sandbox"];
  const agent = run("agents", "create", ...books, "--name", "load");
  run("balances", "fund", ...books, "--amount", "1000000000000000");
  return run("keys", "create", "--agent", agent.id).secret;
}

function start(command: string[], env: Record<string, string> = {}): Bun.Subprocess {
  const child = Bun.spawn(command, { env: { ...process.env, ...env }, stdout: "ignore", stderr: "inherit" });
  processes.push(child);
  return child;
}

async function untilUp(port: number): Promise<void> {
  for (let attempt = 0; attempt < 200; attempt++) {
    if (await fetch(`http://127.0.0.1:${port}/`).catch(() => null)) return;
    await Bun.sleep(50);
  }
  throw new Error(`nothing listens on ${port}`);
}

function load(port: number, connections: number, kind: Kind, secret: string): Result {
  const run = `${port}-${connections}-${crypto.randomUUID()}`;
  const script = [join(import.meta.dir, "load.lua"), `http://127.0.0.1:${port}`, "--"];
  const { stdout } = Bun.spawnSync([
    ...["wrk", "-t1", `-c${connections}`, `-d${SECONDS}s`, "-s"],
    ...script,
    ...[secret, kind, idsFile, SOURCE, run],
  ]);
  const figures = /RESULT (\d+) (\d+) (\d+) (\d+) (\d+)/.exec(stdout.toString())?.slice(1).map(Number);
  if (!figures) throw new Error(stdout.toString());
  const [requests = 0, microseconds = 1, failed = 0, p50 = 0, p99 = 0] = figures;
  return { rate: (requests - failed) / (microseconds / 1_000_000), p50, p99, failed };
}

/** Opens warrants for the next verifies, and writes their ids where wrk finds them. */
async function writeFreshIds(secret: string, total: number): Promise<void> {
  const ids: string[] = [];
  let opened = 0;
  const worker = async () => {
    while (opened < total) {
      opened += 1;
      const response = await fetch(`http://127.0.0.1:${PORTS.server}/v1/warrants`, {
        method: "POST",
        headers: {
          Authorization: `Bearer ${secret}`,
          "Content-Type": "application/json",
          "Idempotency-Key": crypto.randomUUID(),
        },
        body: JSON.stringify({
          amount: "100",
          payee: "acct_seller_1",
          deadline: "2029-01-01T00:00:00Z",
          spec: {
            clauses: [
              { kind: "http.status", equals: 200 },
              { kind: "json.jsonpath", path: "$.ok", equals: true },
            ],
          },
        }),
      });
      ids.push(((await response.json()) as { id: string }).id);
    }
  };
  await Promise.all(Array.from({ length: 32 }, worker));
  writeFileSync(idsFile, ids.join("\n"));
}

/** Requests per second by batch size. */
function sqliteLoop(): ReadonlyMap<number, number> {
  const { stdout } = Bun.spawnSync([process.execPath, join(import.meta.dir, "sqlite-loop.ts"), folder]);
  const lines = stdout.toString().trim().split("\n");
  return new Map(lines.map((line) => line.split(" ").map(Number) as [number, number]));
}

/** Resident memory in MB. */
function memoryOf(pid: number): number {
  const kilobytes = /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1];
  return Math.round(Number(kilobytes ?? 0) / 1_024);
}
