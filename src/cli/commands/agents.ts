import { Argument, type Command, Option } from "commander";
import { AGENT_STATUSES, type AgentStatus } from "../../core/agent.ts";
import { displayAmount } from "../../core/money.ts";
import type { Mode } from "../../core/roles.ts";
import {
  createAgent,
  listAgents,
  setAgentStatus,
  showAgent,
  updateAgent,
} from "../../services/admin/agents.ts";
import { MACHINE } from "../../services/admin/authority.ts";
import { type Answer, examples, group, modeOption, runsOnLedger } from "../command.ts";
import { given, wholeNumberIfGiven } from "../input.ts";
import { report, table } from "../output.ts";
import type { CommandLineTools } from "../tools.ts";

const agentFields = (agent: Answer<typeof createAgent>) =>
  [
    ["id", agent.id],
    ["name", agent.name],
    ["mode", agent.mode],
    ["identity", agent.identity],
    ["status", agent.status],
    ["failures", `${agent.failure_count} in a row, of ${agent.failure_budget}`],
    ["must be named", agent.must_be_named ? "yes" : "no"],
    ["policy", agent.policy ? `${agent.policy.name}, version ${agent.policy.version}` : "the built-in one"],
    ["session", agent.session?.id ?? "none"],
    ["warrants", agent.warrants.total],
  ] as const;

/** How much of a session's ceiling is used, for people. */
const spentOf = (session: { readonly amount_spent: string; readonly amount_ceiling: string }): string =>
  `${displayAmount(BigInt(session.amount_spent), "USDC")} of ${displayAmount(BigInt(session.amount_ceiling), "USDC")}`;

export function addAgents(program: Command, tools: CommandLineTools): void {
  const agents = group(program, "agents", "create, list and change agents, pause and kill them");
  addCreate(agents, tools);
  addUpdate(agents, tools);
  addSetStatus(agents, tools);
  addList(agents, tools);
  addShow(agents, tools);
}

function addCreate(agents: Command, tools: CommandLineTools): void {
  const create = agents
    .command("create")
    .summary("create an agent")
    .description("Creates an agent: a program that spends. Its keys and warrants are in its mode.")
    .requiredOption("--organisation <id>", "whose agent it is")
    .addOption(modeOption())
    .requiredOption("--name <name>", "the agent's name")
    .option("--failure-budget <count>", "failures in a row after which it is paused (default: 3)")
    .option(
      "--must-be-named",
      "its keys must send agent_id when they open a warrant (default: they need not)",
    )
    .option(
      "--did-key <did>",
      "the did:key:z… of a key that it brings (default: a did:web of this instance)",
    );
  examples(create, "holdfast agents create --organisation org_… --mode sandbox --name buyer");
  type Flags = {
    organisation: string;
    mode: Mode;
    name: string;
    failureBudget?: string;
    mustBeNamed?: boolean;
    didKey?: string;
  };
  runsOnLedger(create, tools, {
    input: (flags: Flags) => ({
      organisation_id: flags.organisation,
      mode: flags.mode,
      name: flags.name,
      ...given({
        failure_budget: wholeNumberIfGiven(flags.failureBudget),
        must_be_named: flags.mustBeNamed,
        did_key: flags.didKey,
      }),
    }),
    verb: (ctx, input) => createAgent(ctx, MACHINE, input),
    print: (agent, { mode }) => report(`Created the ${mode} agent ${agent.name}.`, agentFields(agent)),
  });
}

function addUpdate(agents: Command, tools: CommandLineTools): void {
  const update = agents
    .command("update")
    .summary("change an agent's name, failure budget, or whether it must be named")
    .description(
      "Changes what is set of an agent; what is not given stays. A spend session limits only the warrants that name its agent: an agent that must be named cannot leave itself out. A failure budget that its failures have reached already pauses it.",
    )
    .argument("<agent>", "the agent's id")
    .option("--name <name>", "the agent's name")
    .option("--failure-budget <count>", "failures in a row after which it is paused")
    .addOption(
      new Option(
        "--must-be-named <on|off>",
        "whether its keys must send agent_id when they open a warrant",
      ).choices(["on", "off"]),
    );
  examples(update, "holdfast agents update agt_… --must-be-named on");
  type Flags = { name?: string; failureBudget?: string; mustBeNamed?: "on" | "off" };
  runsOnLedger(update, tools, {
    input: (flags: Flags, [agentId = ""]) => ({
      agent_id: agentId,
      ...given({
        name: flags.name,
        failure_budget: wholeNumberIfGiven(flags.failureBudget),
        must_be_named: flags.mustBeNamed && flags.mustBeNamed === "on",
      }),
    }),
    verb: (ctx, input) => updateAgent(ctx, MACHINE, input),
    print: (agent) => report(`Changed the agent ${agent.name}.`, agentFields(agent)),
  });
}

function addSetStatus(agents: Command, tools: CommandLineTools): void {
  const setStatus = agents
    .command("set-status")
    .summary("make an agent active, paused or killed")
    .description(
      "Sets an agent's status. A paused agent opens no warrant. Killing an agent also freezes its held warrants, those that name it and those that its key opened, until it is active again or a person decides.",
    )
    .argument("<agent>", "the agent's id")
    .addArgument(new Argument("<status>", "the new status").choices([...AGENT_STATUSES]));
  examples(setStatus, "holdfast agents set-status agt_… paused");
  runsOnLedger(setStatus, tools, {
    input: (_: object, [agentId = "", status]) => ({ agent_id: agentId, status: status as AgentStatus }),
    verb: (ctx, input) => setAgentStatus(ctx, MACHINE, input),
    print: (agent) => report(`The agent ${agent.name} is ${agent.status}.`, agentFields(agent)),
  });
}

function addList(agents: Command, tools: CommandLineTools): void {
  const list = agents
    .command("list")
    .summary("list an organisation's agents")
    .description("Lists the agents of an organisation in one mode: status, failures, session and warrants.")
    .requiredOption("--organisation <id>", "whose agents they are")
    .addOption(modeOption());
  examples(list, "holdfast agents list --organisation org_… --mode sandbox");
  runsOnLedger(list, tools, {
    input: (flags: { organisation: string; mode: Mode }) => ({
      organisation_id: flags.organisation,
      mode: flags.mode,
    }),
    verb: (ctx, input) => listAgents(ctx, MACHINE, input),
    print: ({ data }, { mode }) =>
      data.length === 0
        ? `No agents yet, ${mode}.`
        : table(
            ["id", "name", "status", "failures", "spent", "warrants"],
            data.map((agent) => [
              agent.id,
              agent.name,
              agent.status,
              `${agent.failure_count} of ${agent.failure_budget}`,
              agent.session ? spentOf(agent.session) : "no session",
              String(agent.warrants.total),
            ]),
          ),
  });
}

function addShow(agents: Command, tools: CommandLineTools): void {
  const show = agents
    .command("show")
    .summary("show an agent")
    .description("Shows an agent: its status, failures, policy, session and warrants.")
    .argument("<agent>", "the agent's id");
  examples(show, "holdfast agents show agt_…");
  runsOnLedger(show, tools, {
    input: (_: object, [agentId = ""]) => ({ agent_id: agentId }),
    verb: (ctx, input) => showAgent(ctx, MACHINE, input),
    print: (agent) =>
      report(`The agent ${agent.name} is ${agent.status}.`, [
        ...agentFields(agent),
        ...(agent.session ? [["spent", spentOf(agent.session)] as const] : []),
        ...Object.entries(agent.warrants.by_state).filter(([, count]) => count > 0),
      ]),
  });
}
