/**
 * `bun run bench:start`, and a part of `bun run bench`: how long the compiled server takes from its start to its first answer,
 * beside a bare Bun.serve with SQLite that is compiled with the same flags, and how long `holdfast --version` takes. The runs
 * take turns, and the medians are printed. Compare the ratio: absolute figures change with the machine and its load.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import manifest from "../../package.json";

const BINARY = resolve(import.meta.dir, "../../dist/holdfast");
const RUNS = Number(process.env.START_RUNS ?? 15);
const PORT = "18084";
const ANSWER_MS_MAX = 30_000;

const folder = mkdtempSync(join(tmpdir(), "holdfast-start-"));
try {
  await main();
} finally {
  rmSync(folder, { recursive: true, force: true });
}

async function main(): Promise<void> {
  const bare = [compileBareServer(), join(folder, "bare.db"), PORT];
  const serve = (data: string) => [BINARY, "serve", "--data", join(folder, data), "--port", PORT];
  const known = serve("known");
  // The first start of each brings its file into memory, and makes its ledger.
  for (const command of [bare, known]) await millisecondsToFirstAnswer(command);

  const figures = {
    known: [] as number[],
    fresh: [] as number[],
    bare: [] as number[],
    version: [] as number[],
  };
  for (let run = 0; run < RUNS; run++) {
    figures.bare.push(await millisecondsToFirstAnswer(bare));
    figures.known.push(await millisecondsToFirstAnswer(known));
    figures.fresh.push(await millisecondsToFirstAnswer(serve(`fresh-${run}`)));
    figures.version.push(await millisecondsToEnd([BINARY, "--version"]));
  }

  const ratio = (median(figures.known) / median(figures.bare)).toFixed(1);
  console.log(`\nStart to first answer, ${RUNS} runs:   median ms   fastest`);
  print("holdfast, on its ledger", figures.known, `   ${ratio} times the bare server`);
  print("holdfast, in a new folder", figures.fresh);
  print("bare Bun.serve with SQLite", figures.bare);
  print("holdfast --version, to its end", figures.version);
}

/** The bare server's executable, made with the flags of `bun run build`. */
function compileBareServer(): string {
  const flags = /bun build (--.*) --outfile/.exec(manifest.scripts.build)?.[1]?.split(" ");
  if (!flags) throw new Error("package.json: the build script has no flags");
  const source = join(import.meta.dir, "bare-server.ts");
  const outfile = join(folder, "bare-server");
  const { success, stderr } = Bun.spawnSync([
    ...[process.execPath, "build", ...flags],
    ...["--outfile", outfile, source],
  ]);
  if (!success) throw new Error(stderr.toString());
  return outfile;
}

async function millisecondsToFirstAnswer(command: string[]): Promise<number> {
  const startedAt = performance.now();
  const child = Bun.spawn(command, { stdout: "ignore", stderr: "ignore", env: {} });
  try {
    while (!(await isAnswered())) {
      if (child.exitCode !== null) throw new Error(`${command.join(" ")} ended with ${child.exitCode}`);
      if (performance.now() - startedAt > ANSWER_MS_MAX)
        throw new Error(`${command.join(" ")} does not answer`);
      await Bun.sleep(1);
    }
    return performance.now() - startedAt;
  } finally {
    child.kill();
    await child.exited;
  }
}

async function isAnswered(): Promise<boolean> {
  try {
    const response = await fetch(`http://127.0.0.1:${PORT}/healthz`, { keepalive: false });
    await response.text();
    return response.ok;
  } catch {
    return false;
  }
}

async function millisecondsToEnd(command: string[]): Promise<number> {
  const startedAt = performance.now();
  const child = Bun.spawn(command, { stdout: "ignore", stderr: "inherit", env: {} });
  const code = await child.exited;
  if (code !== 0) throw new Error(`${command.join(" ")} ended with ${code}`);
  return performance.now() - startedAt;
}

function median(figures: readonly number[]): number {
  const sorted = figures.toSorted((one, other) => one - other);
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
}

function print(name: string, figures: readonly number[], comment = ""): void {
  const columns = [median(figures), Math.min(...figures)].map((figure) => figure.toFixed(1).padStart(10));
  console.log(`  ${name.padEnd(34)}${columns.join("")}${comment}`);
}
