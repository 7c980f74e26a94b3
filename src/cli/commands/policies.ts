import type { Command } from "commander";
import { MACHINE } from "../../services/admin/authority.ts";
import { createPolicy } from "../../services/admin/policies.ts";
import { examples, group, runsOnLedger } from "../command.ts";
import { given, readJson } from "../input.ts";
import { report } from "../output.ts";
import type { CommandLineTools } from "../tools.ts";

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
    .option("--agent <id>", "for this agent only (default: for the whole organisation)");
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
    print: (policy) =>
      report(`Saved version ${policy.version} of the policy ${policy.name}.`, [
        ["id", policy.id],
        ["for", policy.agent_id ?? "the whole organisation"],
        ["bands", policy.rules.bands.map((band) => `${band.outcome} from ${band.minScore}`).join(", ")],
        ["rules hash", policy.rules_hash],
        ["created", policy.created_at],
      ]),
  });
}
