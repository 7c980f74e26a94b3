import { type Command, Option } from "commander";
import { CLAUSE_KINDS, type ClauseKind } from "../../core/clauses/registry.ts";
import { MACHINE } from "../../services/admin/authority.ts";
import { createVerifier } from "../../services/admin/verifiers.ts";
import { examples, group, runsOnLedger } from "../command.ts";
import { readJson } from "../input.ts";
import { report } from "../output.ts";
import type { CommandLineTools } from "../tools.ts";

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
    print: (verifier) =>
      report(`Saved the verifier ${verifier.name}.`, [
        ["id", verifier.id],
        ["type", verifier.type],
        ["config", JSON.stringify(verifier.config)],
        ["created", verifier.created_at],
      ]),
  });
}
