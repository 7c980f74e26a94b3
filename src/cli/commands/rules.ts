import { type Command, Option } from "commander";
import { CLAUSE_KINDS, type ClauseKind } from "../../core/clauses/registry.ts";
import { MACHINE } from "../../services/admin/authority.ts";
import { createPolicy } from "../../services/admin/policies.ts";
import { createSchema } from "../../services/admin/schemas.ts";
import { createVerifier } from "../../services/admin/verifiers.ts";
import { examples, group, runsOnLedger } from "../command.ts";
import { given, readJson } from "../input.ts";
import { report } from "../output.ts";
import type { CommandLineTools } from "../tools.ts";

/** What decides about money: policies, saved verifiers and named schemas. */

export function addPolicies(program: Command, tools: CommandLineTools): void {
  const policies = group(program, "policies", "save the rules that decide what a check leads to");
  const create = policies
    .command("create")
    .summary("save a policy, or the next version of one")
    .description(
      "Saves a policy. New rules under a name that exists make its next version; warrants keep the version that they were opened under.",
    )
    .requiredOption("--organisation <id>", "whose policy it is")
    .requiredOption("--name <name>", "the policy's name")
    .requiredOption("--rules <json>", "the rules, as JSON or @file")
    .option("--agent <id>", "for this agent only (default: for the organisation)");
  examples(
    create,
    "holdfast policies create --organisation org_… --name standard --rules @rules.json",
    `holdfast policies create --organisation org_… --name strict \\
      --rules '{"bands":[{"minScore":1,"outcome":"release"},{"minScore":0,"outcome":"refund"}]}'`,
  );
  type Flags = { organisation: string; name: string; rules: string; agent?: string };
  runsOnLedger(create, tools, {
    input: async (flags: Flags) => ({
      organisation_id: flags.organisation,
      name: flags.name,
      rules: await readJson("--rules", flags.rules),
      ...given({ agent_id: flags.agent }),
    }),
    verb: (ctx, input) => createPolicy(ctx, MACHINE, input),
    tell: (policy) =>
      report(`Saved version ${policy.version} of the policy ${policy.name}.`, [
        ["id", policy.id],
        ["for", policy.agent_id ?? "the whole organisation"],
        ["bands", policy.rules.bands.map((band) => `${band.outcome} from ${band.minScore}`).join(", ")],
        ["rules hash", policy.rules_hash],
        ["created", policy.created_at],
      ]),
  });
}

export function addVerifiers(program: Command, tools: CommandLineTools): void {
  const verifiers = group(program, "verifiers", "save clauses that warrants can refer to");
  const create = verifiers
    .command("create")
    .summary("save a clause under a name")
    .description("Saves a clause. A warrant that names it in verifier_id has it added to its spec.")
    .requiredOption("--organisation <id>", "whose verifier it is")
    .addOption(
      new Option("--type <kind>", "the clause's kind").choices([...CLAUSE_KINDS]).makeOptionMandatory(),
    )
    .requiredOption("--name <name>", "the verifier's name")
    .requiredOption("--config <json>", "the clause's fields apart from kind, as JSON or @file");
  examples(
    create,
    `holdfast verifiers create --organisation org_… --type http.status --name "answers 200" --config '{"equals":200}'`,
  );
  type Flags = { organisation: string; type: ClauseKind; name: string; config: string };
  runsOnLedger(create, tools, {
    input: async (flags: Flags) => ({
      organisation_id: flags.organisation,
      type: flags.type,
      name: flags.name,
      config: await readJson("--config", flags.config),
    }),
    verb: (ctx, input) => createVerifier(ctx, MACHINE, input),
    tell: (verifier) =>
      report(`Saved the verifier ${verifier.name}.`, [
        ["id", verifier.id],
        ["type", verifier.type],
        ["config", JSON.stringify(verifier.config)],
        ["created", verifier.created_at],
      ]),
  });
}

export function addSchemas(program: Command, tools: CommandLineTools): void {
  const schemas = group(program, "schemas", "save the JSON Schemas that clauses name");
  const create = schemas
    .command("create")
    .summary("save a JSON Schema under a name, for good")
    .description(
      "Saves a JSON Schema (2020-12, or draft-07 where $schema says so). It never changes afterwards.",
    )
    .requiredOption("--organisation <id>", "whose schema it is")
    .requiredOption("--name <name>", "what clauses name it")
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
    tell: (schema) =>
      report(`Saved the schema ${schema.name}.`, [
        ["id", schema.id],
        ["hash", schema.schema_hash],
        ["created", schema.created_at],
      ]),
  });
}
