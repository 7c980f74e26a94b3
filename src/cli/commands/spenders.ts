import { Argument, type Command } from "commander";
import { AGENT_STATUSES, type AgentStatus } from "../../core/agent.ts";
import { displayAmount } from "../../core/money.ts";
import type { Mode } from "../../core/roles.ts";
import { createAgent, setAgentStatus } from "../../services/admin/agents.ts";
import { MACHINE } from "../../services/admin/authority.ts";
import { createKey, revokeKey } from "../../services/admin/keys.ts";
import { createSession, revokeSession } from "../../services/admin/sessions.ts";
import { examples, group, modeOption, runsOnLedger } from "../command.ts";
import { given, wholeNumberIfGiven } from "../input.ts";
import { report } from "../output.ts";
import type { CommandLineTools } from "../tools.ts";

/** Agents, and what they spend with: API keys and spend sessions. */

type Answer<Verb extends (...args: never[]) => Promise<unknown>> = Exclude<
  Awaited<ReturnType<Verb>>,
  { readonly refused: unknown }
>;

const agentFields = (agent: Answer<typeof createAgent>) =>
  [
    ["id", agent.id],
    ["name", agent.name],
    ["identity", agent.identity],
    ["status", agent.status],
    ["failures", `${agent.failure_count} in a row, of ${agent.failure_budget}`],
    ["policy", agent.policy ? `${agent.policy.name}, version ${agent.policy.version}` : "the built-in one"],
    ["session", agent.session?.id ?? "none"],
  ] as const;

export function addAgents(program: Command, tools: CommandLineTools): void {
  const agents = group(program, "agents", "create agents, pause and kill them");
  const create = agents
    .command("create")
    .summary("create an agent")
    .description("Creates an agent: a program that spends. Its keys and warrants are in its mode.")
    .requiredOption("--organisation <id>", "whose agent it is")
    .addOption(modeOption())
    .requiredOption("--name <name>", "the agent's name")
    .option("--failure-budget <count>", "failures in a row after which it pauses itself (default: 3)")
    .option("--must-be-named", "its keys must send agent_id when they open a warrant");
  examples(create, "holdfast agents create --organisation org_… --mode sandbox --name buyer");
  type CreateFlags = {
    organisation: string;
    mode: Mode;
    name: string;
    failureBudget?: string;
    mustBeNamed?: boolean;
  };
  runsOnLedger(create, tools, {
    input: (flags: CreateFlags) => ({
      organisation_id: flags.organisation,
      mode: flags.mode,
      name: flags.name,
      ...given({
        failure_budget: wholeNumberIfGiven(flags.failureBudget),
        must_be_named: flags.mustBeNamed,
      }),
    }),
    verb: (ctx, input) => createAgent(ctx, MACHINE, input),
    tell: (agent, { mode }) => report(`Created the ${mode} agent ${agent.name}.`, agentFields(agent)),
  });

  const setStatus = agents
    .command("set-status")
    .summary("make an agent active, paused or killed")
    .description(
      "Sets an agent's status. A paused agent opens nothing; killing one also freezes what it holds, until it is active again or a person decides.",
    )
    .argument("<agent>", "the agent's id")
    .addArgument(new Argument("<status>", "the new status").choices([...AGENT_STATUSES]));
  runsOnLedger(setStatus, tools, {
    input: (_: object, [agentId = "", status]) => ({ agent_id: agentId, status: status as AgentStatus }),
    verb: (ctx, input) => setAgentStatus(ctx, MACHINE, input),
    tell: (agent) => report(`The agent ${agent.name} is ${agent.status}.`, agentFields(agent)),
  });
}

export function addKeys(program: Command, tools: CommandLineTools): void {
  const keys = group(program, "keys", "create and revoke the API keys of agents");
  const create = keys
    .command("create")
    .summary("create an API key; its secret is shown once")
    .description("Creates an API key of an agent. Its secret is shown once; only a hash of it is kept.")
    .requiredOption("--agent <id>", "whose key it is");
  examples(
    create,
    "holdfast keys create --agent agt_…",
    "holdfast keys create --agent agt_… --json | jq -r .secret",
  );
  runsOnLedger(create, tools, {
    input: (flags: { agent: string }) => ({ agent_id: flags.agent }),
    verb: (ctx, input) => createKey(ctx, MACHINE, input),
    tell: (key) =>
      report(
        `Created a ${key.mode} key of ${key.agent_id}.`,
        [
          ["id", key.id],
          ["mode", key.mode],
          ["secret", key.secret],
          ["created", key.created_at],
        ],
        "The secret is shown once: keep it now. Only a hash of it is kept here.",
      ),
  });

  const revoke = keys
    .command("revoke")
    .summary("revoke an API key")
    .description("Revokes an API key, for good and at once.")
    .argument("<key>", "the key's id");
  runsOnLedger(revoke, tools, {
    input: (_: object, [keyId = ""]) => ({ key_id: keyId }),
    verb: (ctx, input) => revokeKey(ctx, MACHINE, input),
    tell: (key) =>
      report("The key is revoked.", [
        ["id", key.id],
        ["agent", key.agent_id],
        ["ends in", key.last_four],
        ["revoked", key.revoked_at],
      ]),
  });
}

const sessionFields = (session: Answer<typeof createSession>) =>
  [
    ["id", session.id],
    ["agent", session.agent_id],
    ["ceiling", displayAmount(BigInt(session.amount_ceiling), "USDC")],
    ["spent", displayAmount(BigInt(session.amount_spent), "USDC")],
    ["warrants", `${session.warrant_count}, of ${session.warrant_limit ?? "any number"}`],
    ["failures", `${session.failure_count} in a row, of ${session.failure_budget}`],
    ["expires", session.expires_at],
    ["revoked", session.revoked_at ?? "no"],
  ] as const;

export function addSessions(program: Command, tools: CommandLineTools): void {
  const sessions = group(program, "sessions", "create and revoke the spend sessions of agents");
  const create = sessions
    .command("create")
    .summary("limit what an agent may spend")
    .description("Creates a spend session: an agent's limits. The session that it had before is revoked.")
    .requiredOption("--agent <id>", "whose session it is")
    .requiredOption("--ceiling <amount>", "units of USDC that may be held or paid; 1000000 is 1.00 USDC")
    .option("--warrant-limit <count>", "warrants that may be opened (default: any number)")
    .option("--failure-budget <count>", "failures in a row that it bears (default: the agent's)")
    .option("--expires-at <time>", "when it ends, such as 2030-01-31T12:00:00Z (default: in 7 days)");
  examples(create, "holdfast sessions create --agent agt_… --ceiling 50000000 --warrant-limit 20");
  type Flags = {
    agent: string;
    ceiling: string;
    warrantLimit?: string;
    failureBudget?: string;
    expiresAt?: string;
  };
  runsOnLedger(create, tools, {
    input: (flags: Flags) => ({
      agent_id: flags.agent,
      amount_ceiling: flags.ceiling,
      ...given({
        warrant_limit: wholeNumberIfGiven(flags.warrantLimit),
        failure_budget: wholeNumberIfGiven(flags.failureBudget),
        expires_at: flags.expiresAt,
      }),
    }),
    verb: (ctx, input) => createSession(ctx, MACHINE, input),
    tell: (session) => report("Created a spend session.", sessionFields(session)),
  });

  const revoke = sessions
    .command("revoke")
    .summary("revoke a spend session")
    .description("Revokes a spend session: its agent opens nothing in its own name until it has a new one.")
    .argument("<session>", "the session's id");
  runsOnLedger(revoke, tools, {
    input: (_: object, [sessionId = ""]) => ({ session_id: sessionId }),
    verb: (ctx, input) => revokeSession(ctx, MACHINE, input),
    tell: (session) => report("The spend session is revoked.", sessionFields(session)),
  });
}
