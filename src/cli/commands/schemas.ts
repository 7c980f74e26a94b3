import type { Command } from "commander";
import { MACHINE } from "../../services/admin/authority.ts";
import { createSchema } from "../../services/admin/schemas.ts";
import { examples, group, runsOnLedger } from "../command.ts";
import { readJson } from "../input.ts";
import { report } from "../output.ts";
import type { CommandLineTools } from "../tools.ts";

export function addSchemas(program: Command, tools: CommandLineTools): void {
  const schemas = group(program, "schemas", "save the JSON Schemas that clauses name");
  const create = schemas
    .command("create")
    .summary("save a JSON Schema under a name; it never changes")
    .description(
      "Saves a JSON Schema (2020-12, or draft-07 where $schema says so). It never changes afterwards.",
    )
    .requiredOption("--organisation <id>", "whose schema it is")
    .requiredOption("--name <name>", "the name by which clauses refer to it")
    .requiredOption("--schema <json>", "the schema, as JSON or @file");
  examples(create, "holdfast schemas create --organisation org_… --name weather.v1 --schema @weather.json");
  type Flags = { organisation: string; name: string; schema: string };
  runsOnLedger(create, tools, {
    input: async (flags: Flags) => ({
      organisation_id: flags.organisation,
      name: flags.name,
      schema: await readJson("--schema", flags.schema),
    }),
    verb: (ctx, input) => createSchema(ctx, MACHINE, input),
    print: (schema) =>
      report(`Saved the schema ${schema.name}.`, [
        ["id", schema.id],
        ["hash", schema.schema_hash],
        ["created", schema.created_at],
      ]),
  });
}
