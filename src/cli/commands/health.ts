import type { Command } from "commander";
import { refuse } from "../../core/errors.ts";
import { addressOptions, type CommonFlags, examples, showingProgress, withCommonFlags } from "../command.ts";
import { CommandFailure, orFail } from "../failure.ts";
import { given } from "../input.ts";
import type { AddressFlags, CommandLineTools, ServerAddress } from "../tools.ts";

const HEALTH_TIMEOUT_MS = 3_000;
const NO_ANSWER = "does not answer";

export function addHealth(program: Command, tools: CommandLineTools): void {
  const health = program
    .command("health")
    .summary("ask the running server whether it is well")
    .description(
      "Asks the server of this machine whether it is well, and waits 3 seconds for its answer. Exits with 1 where it is not well or does not answer.",
    );
  withCommonFlags(addressOptions(health)).option(
    "--ready",
    "ask whether it is ready to serve: ledger, disk, jobs and audit (default: only whether it answers)",
  );
  examples(health, "holdfast health", "holdfast health --ready --json");
  health.action(async () => {
    const {
      json,
      host,
      port,
      ready = false,
    } = health.opts<AddressFlags & CommonFlags & { ready?: boolean }>();
    const address = orFail(tools.serverAddress(given({ host, port })));
    const url = `${serverUrl(address)}/${ready ? "readyz" : "healthz"}`;
    const problem = await showingProgress(tools, { step: `asking ${url}`, json }, () => problemAt(url));
    if (problem !== null) {
      const next = problem === NO_ANSWER ? "Start it with holdfast serve" : undefined;
      throw new CommandFailure(refuse("internal_error", `${url} ${problem}.`), next);
    }
    const said = ready ? "is well, and ready" : "is well";
    tools.print(json ? JSON.stringify({ object: "health", ok: true, url }) : `${url} ${said}.`);
  });
}

/** A server that listens at every address is asked at the loopback address. */
function serverUrl({ host, port }: ServerAddress): string {
  const reachable = host === "0.0.0.0" ? "127.0.0.1" : host === "::" ? "::1" : host;
  return `http://${reachable.includes(":") ? `[${reachable}]` : reachable}:${port}`;
}

async function problemAt(url: string): Promise<string | null> {
  try {
    const response = await fetch(url, { signal: AbortSignal.timeout(HEALTH_TIMEOUT_MS), redirect: "manual" });
    const text = await response.text();
    return response.ok ? null : `answers ${response.status}${failedChecks(text)}`;
  } catch {
    return NO_ANSWER;
  }
}

/** The checks that failed, as `/readyz` lists them; nothing where the body is not such a list. */
function failedChecks(body: string): string {
  try {
    const { checks } = JSON.parse(body) as {
      checks: { name: string; ok: boolean; message: string | null }[];
    };
    const failed = checks.filter(({ ok }) => !ok);
    return failed.map(({ name, message }) => `; ${name}: ${message?.replace(/\.$/, "")}`).join("");
  } catch {
    return "";
  }
}
