import type { Command } from "commander";
import { displayAmount } from "../../core/money.ts";
import { MACHINE } from "../../services/admin/authority.ts";
import { createSession, revokeSession } from "../../services/admin/sessions.ts";
import { type Answer, examples, group, runsOnLedger } from "../command.ts";
import { given, wholeNumberIfGiven } from "../input.ts";
import { report } from "../output.ts";
import type { CommandLineTools } from "../tools.ts";

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
  addCreate(sessions, tools);
  addRevoke(sessions, tools);
}

function addCreate(sessions: Command, tools: CommandLineTools): void {
  const create = sessions
    .command("create")
    .summary("limit what an agent may spend")
    .description("Creates a spend session: an agent's limits. The session that it had before is revoked.")
    .requiredOption("--agent <id>", "whose session it is")
    .requiredOption(
      "--ceiling <amount>",
      "the most that may be held or paid, in the smallest unit of USDC; 1000000 is 1.00 USDC",
    )
    .option("--warrant-limit <count>", "how many warrants may be opened (default: any number)")
    .option(
      "--failure-budget <count>",
      "failures in a row after which it opens nothing more (default: the agent's)",
    )
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
    print: (session) => report("Created a spend session.", sessionFields(session)),
  });
}

function addRevoke(sessions: Command, tools: CommandLineTools): void {
  const revoke = sessions
    .command("revoke")
    .summary("revoke a spend session")
    .description("Revokes a spend session: its agent opens nothing in its own name until it has a new one.")
    .argument("<session>", "the session's id");
  examples(revoke, "holdfast sessions revoke ses_…");
  runsOnLedger(revoke, tools, {
    input: (_: object, [sessionId = ""]) => ({ session_id: sessionId }),
    verb: (ctx, input) => revokeSession(ctx, MACHINE, input),
    print: (session) => report("The spend session is revoked.", sessionFields(session)),
  });
}
