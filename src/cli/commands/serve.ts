import type { Command } from "commander";
import { addressOptions, type CommonFlags, examples, showingProgress, withCommonFlags } from "../command.ts";
import { orFail } from "../failure.ts";
import type { CommandLineTools, ServeFlags } from "../tools.ts";

export function addServe(program: Command, tools: CommandLineTools): void {
  const serve = program
    .command("serve")
    .summary("run the service until it is stopped")
    .description(
      "Runs the service. On SIGTERM or Ctrl-C it takes no new requests and lets those under way finish, for 10 seconds at most. Secrets come from environment variables or files, never from an option. Where there is no organisation yet it prints a link to make the first one in the browser: good once, for 30 minutes.",
    );
  withCommonFlags(addressOptions(serve))
    .option(
      "--base-url <url>",
      "where others reach it (default: HOLDFAST_BASE_URL, else http://localhost:<port>)",
    )
    .option(
      "--docs-url <url>",
      "where the links in errors lead (default: HOLDFAST_DOCS_URL, else its own /docs)",
    )
    .option(
      "--allow-networks <cidrs>",
      "private networks that evidence may come from, such as 10.0.0.0/8,fc00::/7 (default: HOLDFAST_ALLOW_NETWORKS, else none)",
    )
    .option(
      "--fetch-seconds <seconds>",
      "the longest that one fetch of evidence may take, 1 to 60 seconds (default: HOLDFAST_FETCH_SECONDS, else 10)",
    )
    .option(
      "--trust-proxy <cidrs>",
      "proxies whose X-Forwarded-For is believed (default: HOLDFAST_TRUST_PROXY, else none)",
    )
    .option(
      "--log <what>",
      "faults, or requests, which adds a line for each request (default: HOLDFAST_LOG, else faults)",
    );
  examples(serve, "holdfast serve --port 8080 --data ./data");
  serve.action(async () => {
    const { json, ...flags } = serve.opts<ServeFlags & CommonFlags>();
    const { url, dataFolder, database, setUpUrl, stopped } = await showingProgress(
      tools,
      { step: "starting the service", json },
      async (progress) => orFail(await tools.serve(flags, progress)),
    );
    tools.print(
      json
        ? JSON.stringify({
            ...{ object: "server", url, data_folder: dataFolder },
            ...{ ...(database !== null && { database }), set_up_url: setUpUrl },
          })
        : `Holdfast ${tools.version} listens at ${url}; its data is in ${dataFolder ?? `the database ${database}`}.`,
    );
    if (!json && setUpUrl !== null) {
      tools.print(`There is no organisation yet. Whoever opens this link first, within 30 minutes, makes it and owns it:

  ${setUpUrl}
`);
    }
    await stopped;
  });
}
