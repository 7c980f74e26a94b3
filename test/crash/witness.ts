import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { WITNESS_PATH } from "../../src/core/witness.ts";
import { createProgram } from "./program.ts";

/** A second instance, which nobody kills, and which signs the log's checkpoints. */
export type Witness = {
  /** The environment of the instance that it witnesses. */
  readonly settings: Readonly<Record<string, string>>;
  readonly url: string;
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
  const program = createProgram(executable, own, { HOLDFAST_WITNESS_FOR: log.join(",") });
  const server = await program.serve();
  const shown = await program.command("witness", "show");
  const [key] = String(shown.witness).split("=");
  const url = server.url + WITNESS_PATH;
  return {
    settings: { HOLDFAST_WITNESSES: `${key}=${url}`, HOLDFAST_WITNESS_ALLOW_NETWORKS: "127.0.0.0/8" },
    url,
    stop: () => program.killAll(),
  };
}
