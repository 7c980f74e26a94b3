import type { Command } from "commander";
import { type CommonFlags, examples, withCommonFlags } from "../command.ts";
import type { CommandLineTools } from "../tools.ts";

export function addOpenApi(program: Command, tools: CommandLineTools): void {
  const openApi = program
    .command("openapi")
    .summary("print the OpenAPI document")
    .description("Prints the description of the HTTP API as an OpenAPI document.");
  examples(openApi, "holdfast openapi > openapi.json");
  withCommonFlags(openApi).action(async () => {
    const { json } = openApi.opts<CommonFlags>();
    tools.print(JSON.stringify(await tools.openApiDocument(), null, json ? 0 : 2));
  });
}
