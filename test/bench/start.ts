import { join } from "node:path";
import manifest from "../../package.json";
import { BINARY } from "./holdfast.ts";
import { type Scale, say } from "./scale.ts";
import { median } from "./statistics.ts";
import { atMost, noted, type Row } from "./table.ts";

const PORT = "18084";
const ANSWER_MS_MAX = 30_000;

/**
 * How long the compiled server takes from its start to its first answer, beside a bare Bun.serve with SQLite that is compiled
 * with the same flags, and how long `holdfast --version` takes. The runs take turns. Compare the ratio: absolute figures change
 * with the machine and its load.
 */
export async function measureStart({ folder, rounds }: Scale): Promise<Row[]> {
  const runs = 3 * rounds;
  const bare = [compileBareServer(folder), join(folder, "bare.db"), PORT];
  const serve = (data: string) => [BINARY, "serve", "--data", join(folder, data), "--port", PORT];
  const known = serve("known");
  // The first start of each loads its file into memory and makes its ledger, so it is not measured.
  for (const command of [bare, known]) await millisecondsToFirstAnswer(command);
  say(`start: ${runs} runs of each`);
  const figures = {
    known: [] as number[],
    fresh: [] as number[],
    bare: [] as number[],
    version: [] as number[],
  };
  for (let run = 0; run < runs; run++) {
    figures.bare.push(await millisecondsToFirstAnswer(bare));
    figures.known.push(await millisecondsToFirstAnswer(known));
    figures.fresh.push(await millisecondsToFirstAnswer(serve(`fresh-${run}`)));
    figures.version.push(await millisecondsToEnd([BINARY, "--version"]));
  }
  const msOf = (name: keyof typeof figures) => median(figures[name]);
  const fastest = (name: keyof typeof figures) => `fastest ${Math.min(...figures[name]).toFixed(1)}`;
  return [
    noted("start of a bare Bun.serve with SQLite", `${msOf("bare").toFixed(1)} ms (${fastest("bare")})`),
    atMost("start to first answer", msOf("known"), { required: 50 }, " ms", fastest("known")),
    atMost("start, beside the bare one", msOf("known") / msOf("bare"), { required: 9 }, " times"),
    noted("start to first answer, in a new folder", `${msOf("fresh").toFixed(1)} ms (${fastest("fresh")})`),
    atMost("holdfast --version, to its end", msOf("version"), { required: 30 }, " ms", fastest("version")),
  ];
}

/** The bare server's executable, made with the flags of `bun run build`. */
function compileBareServer(folder: string): string {
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
