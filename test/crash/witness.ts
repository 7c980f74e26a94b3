import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { WITNESS_PATH } from "../../src/core/witness.ts";
import { createProgram } from "./program.ts";

/** A second instance, which signs the log's checkpoints. It is killed too, and may sign nothing afterwards that contradicts it. */
export type Witness = {
  /** The environment of the instance that it witnesses. */
  readonly settings: Readonly<Record<string, string>>;
  readonly url: string;
  /** Kills it at once, and starts it again. */
  die(): Promise<void>;
  stop(): Promise<void>;
};

/** @param log the keys of the log, as `witness show` says them */
export async function startWitness(
  executable: readonly string[],
  folder: string,
  log: readonly string[],
): Promise<Witness> {
  const own = join(folder, "witness");
  mkdirSync(own);
  const HOLDFAST_WITNESS_FOR = log.join(",");
  const first = createProgram(executable, own, { HOLDFAST_WITNESS_FOR });
  const { url: base, stop } = await first.serve();
  await stop();
  // It comes back at the address where it is asked.
  const program = createProgram(executable, own, { HOLDFAST_WITNESS_FOR, HOLDFAST_PORT: new URL(base).port });
  let server = await program.serve();
  const shown = await program.command("witness", "show");
  const [key] = String(shown.witness).split("=");
  const url = base + WITNESS_PATH;
  return {
    settings: { HOLDFAST_WITNESSES: `${key}=${url}`, HOLDFAST_WITNESS_ALLOW_NETWORKS: "127.0.0.0/8" },
    url,
    async die() {
      await server.kill();
      server = await program.serve();
    },
    stop: () => program.killAll(),
  };
}
