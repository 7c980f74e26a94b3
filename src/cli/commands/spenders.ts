import { Argument, type Command } from "commander";
import { AGENT_STATUSES, type AgentStatus } from "../../core/agent.ts";
import { displayAmount } from "../../core/money.ts";
import type { Mode } from "../../core/roles.ts";
import { createAgent, listAgents, setAgentStatus, showAgent } from "../../services/admin/agents.ts";
import { MACHINE } from "../../services/admin/authority.ts";
import { createKey, listKeys, revokeKey, rotateKey } from "../../services/admin/keys.ts";
import { createSession, revokeSession } from "../../services/admin/sessions.ts";
import { examples, group, modeOption, runsOnLedger } from "../command.ts";
import { given, wholeNumberIfGiven } from "../input.ts";
import { report, table } from "../output.ts";
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
    ["mode", agent.mode],
    ["identity", agent.identity],
    ["status", agent.status],
    ["failures", `${agent.failure_count} in a row, of ${agent.failure_budget}`],
    ["must be named", agent.must_be_named ? "yes" : "no"],
    ["policy", agent.policy ? `${agent.policy.name}, version ${agent.policy.version}` : "the built-in one"],
    ["session", agent.session?.id ?? "none"],
    ["warrants", agent.warrants.total],
  ] as const;

/** What of a session's ceiling is used, for people. */
const spentOf = (session: { readonly amount_spent: string; readonly amount_ceiling: string }): string =>
  `${displayAmount(BigInt(session.amount_spent), "USDC")} of ${displayAmount(BigInt(session.amount_ceiling), "USDC")}`;

export function addAgents(program: Command, tools: CommandLineTools): void {
  const agents = group(program, "agents", "create and list agents, pause and kill them");
  const create = agents
    .command("create")
    .summary("create an agent")
    .description("Creates an agent: a program that spends. Its keys and warrants are in its mode.")
    .requiredOption("--organisation <id>", "whose agent it is")
    .addOption(modeOption())
    .requiredOption("--name <name>", "the agent's name")
    .option("--failure-budget <count>", "failures in a row after which it pauses itself (default: 3)")
    .option("--must-be-named", "its keys must send agent_id when they open a warrant")
    .option(
      "--did-key <did>",
      "the did:key:z… of a key that it brings (default: a did:web of this instance)",
    );
  examples(create, "holdfast agents create --organisation org_… --mode sandbox --name buyer");
  type CreateFlags = {
    organisation: string;
    mode: Mode;
    name: string;
    failureBudget?: string;
    mustBeNamed?: boolean;
    didKey?: string;
  };
  runsOnLedger(create, tools, {
    input: (flags: CreateFlags) => ({
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
  addAgentReadBacks(agents, tools);
}

function addAgentReadBacks(agents: Command, tools: CommandLineTools): void {
  const list = agents
    .command("list")
    .summary("list an organisation's agents")
    .description("Lists the agents of an organisation in one mode: status, failures, session and warrants.")
    .requiredOption("--organisation <id>", "whose agents they are")
    .addOption(modeOption());
  runsOnLedger(list, tools, {
    input: (flags: { organisation: string; mode: Mode }) => ({
      organisation_id: flags.organisation,
      mode: flags.mode,
    }),
    verb: (ctx, input) => listAgents(ctx, MACHINE, input),
    tell: ({ data }, { mode }) =>
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

  const show = agents
    .command("show")
    .summary("show an agent")
    .description("Shows an agent: its status, failures, policy, session and warrants.")
    .argument("<agent>", "the agent's id");
  runsOnLedger(show, tools, {
    input: (_: object, [agentId = ""]) => ({ agent_id: agentId }),
    verb: (ctx, input) => showAgent(ctx, MACHINE, input),
    tell: (agent) =>
      report(`The agent ${agent.name} is ${agent.status}.`, [
        ...agentFields(agent),
        ...(agent.session ? [["spent", spentOf(agent.session)] as const] : []),
        ...Object.entries(agent.warrants.by_state).filter(([, count]) => count > 0),
      ]),
  });
}

const SHOWN_ONCE = "The secret is shown once: keep it now. Only a hash of it is kept here.";

export function addKeys(program: Command, tools: CommandLineTools): void {
  const keys = group(program, "keys", "create, rotate, list and revoke the API keys of agents");
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
        SHOWN_ONCE,
      ),
  });

  addRotate(keys, tools);

  const list = keys
    .command("list")
    .summary("list the keys of an agent")
    .description(
      "Lists the API keys of an agent, those that have ended too; when one was last used, to ten seconds or so. No secret is shown.",
    )
    .requiredOption("--agent <id>", "whose keys they are");
  runsOnLedger(list, tools, {
    input: (flags: { agent: string }) => ({ agent_id: flags.agent }),
    verb: (ctx, input) => listKeys(ctx, MACHINE, input),
    tell: ({ data }) =>
      data.length === 0
        ? "No keys yet."
        : table(
            ["id", "last four", "created", "last used", "expires", "revoked"],
            data.map((key) => [
              key.id,
              key.last_four,
              key.created_at,
              key.last_used_at ?? "never",
              key.expires_at ?? "no",
              key.revoked_at ?? "no",
            ]),
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

function addRotate(keys: Command, tools: CommandLineTools): void {
  const rotate = keys
    .command("rotate")
    .summary("put a new key beside an old one, which ends after an overlap")
    .description(
      "Creates a new key beside an old one of the same agent. Both work until the overlap is over, and then the new one alone.",
    )
    .argument("<key>", "the old key's id")
    .option("--overlap <seconds>", "how long the old key still works, 0 to 2592000 (default: 86400, a day)");
  examples(rotate, "holdfast keys rotate key_… --overlap 3600");
  runsOnLedger(rotate, tools, {
    input: (flags: { overlap?: string }, [keyId = ""]) => ({
      key_id: keyId,
      ...given({ overlap_seconds: wholeNumberIfGiven(flags.overlap) }),
    }),
    verb: (ctx, input) => rotateKey(ctx, MACHINE, input),
    tell: (key) =>
      report(
        `Created a ${key.mode} key of ${key.agent_id}, in the place of ${key.replaces.id}.`,
        [
          ["id", key.id],
          ["secret", key.secret],
          ["created", key.created_at],
          ["old key ends", key.replaces.expires_at],
        ],
        SHOWN_ONCE,
      ),
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
