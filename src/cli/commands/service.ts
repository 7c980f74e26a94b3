import type { Command } from "commander";
import { refuse } from "../../core/errors.ts";
import { type CommonFlags, examples, withCommonFlags } from "../command.ts";
import { CommandFailure, orFail } from "../failure.ts";
import { given } from "../input.ts";
import type { AddressOptions, CommandLineTools, ServeOptions, ServerAddress } from "../tools.ts";

const HEALTH_TIMEOUT_MS = 3_000;

const withAddress = (command: Command): Command =>
  command
    .option("--host <address>", "address to listen at (default: HOLDFAST_HOST, else 127.0.0.1)")
    .option("--port <number>", "port to listen at (default: HOLDFAST_PORT, else 8080)");

export function addServe(program: Command, tools: CommandLineTools): void {
  const serve = program
    .command("serve")
    .summary("run the service until it is stopped")
    .description(
      "Runs the service. SIGTERM and Ctrl-C let what is running finish. Every flag has an environment variable; secrets have only that, or a file.",
    );
  withCommonFlags(withAddress(serve))
    .option(
      "--base-url <url>",
      "where others reach it (default: HOLDFAST_BASE_URL, else http://localhost:<port>)",
    )
    .option("--docs-url <url>", "where errors link to (default: HOLDFAST_DOCS_URL, else its own /docs)")
    .option("--allow-networks <cidrs>", "private networks that evidence may come from, such as 10.0.0.0/8")
    .option("--fetch-seconds <seconds>", "what one fetch of evidence may take (default: 10)")
    .option("--trust-proxy <cidr>", "the proxy whose X-Forwarded-For is believed")
    .option("--log <what>", "faults, or requests for a line for each request too (default: faults)");
  examples(serve, "holdfast serve --port 8080 --data ./data");
  serve.action(async () => {
    const { json, ...options } = serve.opts<ServeOptions & CommonFlags>();
    const { url, dataFolder, stopped } = orFail(await tools.serve(options));
    tools.print(
      json
        ? JSON.stringify({ object: "server", url, data_folder: dataFolder })
        : `Holdfast ${tools.version} listens at ${url}; its data is in ${dataFolder}.`,
    );
    await stopped;
  });
}

export function addDemo(program: Command, tools: CommandLineTools): void {
  const demo = program
    .command("demo")
    .summary("watch money being held, checked and settled, in a sandbox")
    .description(
      "Makes a sandbox organisation in a fresh folder, a local seller with good and bad deliverables, and a warrant for each; tells what happened to the money and why; then keeps serving.",
    );
  demo
    .option("--data <folder>", "a new or empty folder, or an earlier demo's (default: a temporary one)")
    .option("--json", "print exactly one JSON object, once the story is over")
    .option("--exit", "stop instead of serving on");
  examples(demo, "holdfast demo", "holdfast demo --exit --json");
  demo.action(async () => {
    const { data, json = false, exit = false } = demo.opts<CommonFlags & { exit?: boolean }>();
    const refused = await tools.demo({ exit, json, ...given({ data }) });
    if (refused) throw new CommandFailure(refused);
  });
}

export function addOpenApi(program: Command, tools: CommandLineTools): void {
  const openApi = program
    .command("openapi")
    .summary("print the OpenAPI document")
    .description("Prints the description of the API as an OpenAPI document.");
  withCommonFlags(openApi).action(async () => {
    const { json } = openApi.opts<CommonFlags>();
    tools.print(JSON.stringify(await tools.openApiDocument(), null, json ? 0 : 2));
  });
}

export function addHealth(program: Command, tools: CommandLineTools): void {
  const health = program
    .command("health")
    .summary("ask the running server whether it is well")
    .description(
      "Asks the server of this machine whether it is well. Exits 1 where it is not, or does not answer.",
    );
  withCommonFlags(withAddress(health)).option(
    "--ready",
    "ask also whether it is fit to serve: ledger, disk, jobs and books",
  );
  examples(health, "holdfast health", "holdfast health --ready --json");
  health.action(async () => {
    const {
      json,
      host,
      port,
      ready = false,
    } = health.opts<AddressOptions & CommonFlags & { ready?: boolean }>();
    const address = orFail(tools.serverAddress(given({ host, port })));
    const url = `${serverUrl(address)}/${ready ? "readyz" : "healthz"}`;
    const problem = await problemAt(url);
    if (problem !== null) throw new CommandFailure(refuse("internal_error", `${url} ${problem}.`));
    const said = ready ? "is well, and ready" : "is well";
    tools.print(json ? JSON.stringify({ object: "health", ok: true, url }) : `${url} ${said}.`);
  });
}

/** Whoever listens at every address is asked at the loopback one. */
function serverUrl({ host, port }: ServerAddress): string {
  const reachable = host === "0.0.0.0" ? "127.0.0.1" : host === "::" ? "::1" : host;
  return `http://${reachable.includes(":") ? `[${reachable}]` : reachable}:${port}`;
}

async function problemAt(url: string): Promise<string | null> {
  try {
    const response = await fetch(url, { signal: AbortSignal.timeout(HEALTH_TIMEOUT_MS), redirect: "manual" });
    const text = await response.text();
    return response.ok ? null : `answers ${response.status}${reasonsIn(text)}`;
  } catch {
    return "does not answer";
  }
}

/** What a readiness says is wrong; nothing where it is none. */
function reasonsIn(text: string): string {
  try {
    const { checks } = JSON.parse(text) as { checks: { name: string; message: string | null }[] };
    const wrong = checks.filter(({ message }) => message !== null);
    return wrong.map(({ name, message }) => `; ${name}: ${message?.replace(/\.$/, "")}`).join("");
  } catch {
    return "";
  }
}
