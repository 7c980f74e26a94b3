import type { Command } from "commander";
import { displayAmount } from "../../core/money.ts";
import { MACHINE } from "../../services/admin/authority.ts";
import { createSession, revokeSession } from "../../services/admin/sessions.ts";
import { type Answer, examples, group, runsOnLedger } from "../command.ts";
import { given, listIfGiven, wholeNumberIfGiven } from "../input.ts";
import { report } from "../output.ts";
import type { CommandLineTools } from "../tools.ts";

const usdc = (amount: string): string => displayAmount(BigInt(amount), "USDC");

/** The limits that a session has besides the others. */
const limitFields = (session: Answer<typeof revokeSession>) =>
  [
    ...(session.per_warrant_max === null ? [] : [["per warrant", usdc(session.per_warrant_max)] as const]),
    ...(session.hourly_max === null ? [] : [["per hour", usdc(session.hourly_max)] as const]),
    ...(session.daily_max === null ? [] : [["per day", usdc(session.daily_max)] as const]),
    ...(session.payees === null ? [] : [["payees", session.payees.join(", ")] as const]),
    ...(session.source_origins === null ? [] : [["sources", session.source_origins.join(", ")] as const]),
  ] as const;

const sessionFields = (session: Answer<typeof revokeSession>) =>
  [
    ["id", session.id],
    ["agent", session.agent_id],
    ["ceiling", usdc(session.amount_ceiling)],
    ["spent", usdc(session.amount_spent)],
    ["warrants", `${session.warrant_count}, of ${session.warrant_limit ?? "any number"}`],
    ["failures", `${session.failure_count} in a row, of ${session.failure_budget}`],
    ...limitFields(session),
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
    .description(
      "Creates a spend session: an agent's limits, for the warrants and purchases that name it (agent_id). Where its keys need not name it, the answer warns of that: holdfast agents update --must-be-named on closes it. The session that it had before is revoked.",
    )
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
    .option("--per-warrant-max <amount>", "the most that may be held for one warrant")
    .option(
      "--hourly-max <amount>",
      "the most that may be held within any 60 minutes; what returns does not make room",
    )
    .option("--daily-max <amount>", "the same within any 24 hours")
    .option(
      "--payees <payees>",
      "whom it may pay, with commas between; one that ends in * is every payee that begins like it",
    )
    .option(
      "--source-origins <origins>",
      "where it may verify from and buy from, with commas between: https://api.example, or https://api.example:* for every port; a * within the host is refused, since https://api.example* would allow https://api.example.evil.example",
    )
    .option("--expires-at <time>", "when it ends, such as 2030-01-31T12:00:00Z (default: in 7 days)");
  examples(
    create,
    "holdfast sessions create --agent agt_… --ceiling 50000000 --warrant-limit 20",
    "holdfast sessions create --agent agt_… --ceiling 50000000 --per-warrant-max 1000000 --hourly-max 5000000 --source-origins https://api.example",
  );
  type Flags = {
    agent: string;
    ceiling: string;
    warrantLimit?: string;
    failureBudget?: string;
    perWarrantMax?: string;
    hourlyMax?: string;
    dailyMax?: string;
    payees?: string;
    sourceOrigins?: string;
    expiresAt?: string;
  };
  runsOnLedger(create, tools, {
    input: (flags: Flags) => ({
      agent_id: flags.agent,
      amount_ceiling: flags.ceiling,
      ...given({
        warrant_limit: wholeNumberIfGiven(flags.warrantLimit),
        failure_budget: wholeNumberIfGiven(flags.failureBudget),
        per_warrant_max: flags.perWarrantMax,
        hourly_max: flags.hourlyMax,
        daily_max: flags.dailyMax,
        payees: listIfGiven(flags.payees),
        source_origins: listIfGiven(flags.sourceOrigins),
        expires_at: flags.expiresAt,
      }),
    }),
    verb: (ctx, input) => createSession(ctx, MACHINE, input),
    print: (session) =>
      report(
        "Created a spend session.",
        sessionFields(session),
        session.warning === null ? undefined : `Warning: ${session.warning}`,
      ),
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
