import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { opening } from "./opening.ts";
import { CONNECTIONS } from "./scale.ts";

/** The load of wrk (Debian's package of that name), which counts what it sends itself. */

export const DAY_MS = 86_400_000;

export type Loaded = { readonly rate: number; readonly p50Ms: number; readonly p99Ms: number };

export type Target = { readonly url: string; readonly secret: string };

export function refuseMissingWrk(): void {
  if (Bun.which("wrk") === null) throw new Error("bench needs wrk: apt-get install wrk");
}

let seed = Date.now() % 1_000_000;

type Asked = {
  readonly target: Target;
  readonly kind: "open" | "read";
  readonly seconds: number;
  /** Where the body of an open is written for wrk. */
  readonly folder: string;
  /** Warrants to read, one id a line; only for reads. */
  readonly idsFile?: string;
  readonly connections?: number;
};

/**
 * Opens or reads on 64 connections, and waits for the end: nothing else runs in this process meanwhile.
 * Throws where a request failed.
 */
export function load(asked: Asked): Loaded {
  const { stdout, stderr } = Bun.spawnSync(commandOf(asked));
  return loadedOf(stdout.toString(), stderr.toString());
}

/** The same load, while this process does other work. */
export async function loadBeside(asked: Asked): Promise<Loaded> {
  const child = Bun.spawn(commandOf(asked), { stdout: "pipe", stderr: "inherit" });
  return loadedOf(await child.stdout.text(), "");
}

function commandOf({
  target,
  kind,
  seconds,
  folder,
  idsFile = "",
  connections = CONNECTIONS,
}: Asked): string[] {
  const bodyFile = join(folder, "open.json");
  writeFileSync(bodyFile, JSON.stringify(opening(Date.now() + 365 * DAY_MS)));
  seed += 1;
  const script = ["-s", join(import.meta.dir, "load.lua"), target.url, "--"];
  return [
    ...["wrk", "-t1", `-c${connections}`, `-d${seconds}s`, ...script],
    ...[kind, target.secret, bodyFile, idsFile, String(seed)],
  ];
}

function loadedOf(text: string, errors: string): Loaded {
  const figures = /RESULT (\d+) (\d+) (\d+) (\d+) (\d+)/.exec(text)?.slice(1).map(Number);
  if (!figures) throw new Error(`${text}${errors}`);
  const [requests = 0, microseconds = 1, failed = 0, p50 = 0, p99 = 0] = figures;
  if (failed > 0) throw new Error(`${failed} of ${requests} requests of the load failed`);
  return { rate: requests / (microseconds / 1_000_000), p50Ms: p50 / 1_000, p99Ms: p99 / 1_000 };
}
