import type { Command } from "commander";
import { MACHINE } from "../../services/admin/authority.ts";
import { createKey, listKeys, revokeKey, rotateKey } from "../../services/admin/keys.ts";
import { examples, group, runsOnLedger } from "../command.ts";
import { given, wholeNumberIfGiven } from "../input.ts";
import { report, table } from "../output.ts";
import type { CommandLineTools } from "../tools.ts";

const SHOWN_ONCE = "The secret is shown once: save it now. Holdfast keeps only a hash of it.";

export function addKeys(program: Command, tools: CommandLineTools): void {
  const keys = group(program, "keys", "create, rotate, list and revoke the API keys of agents");
  addCreate(keys, tools);
  addRotate(keys, tools);
  addList(keys, tools);
  addRevoke(keys, tools);
}

function addCreate(keys: Command, tools: CommandLineTools): void {
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
    print: (key) =>
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
}

function addRotate(keys: Command, tools: CommandLineTools): void {
  const rotate = keys
    .command("rotate")
    .summary("put a new key beside an old one, which ends after an overlap")
    .description(
      "Creates a new key beside an old one of the same agent. Both work until the overlap is over; then only the new one does.",
    )
    .argument("<key>", "the old key's id")
    .option(
      "--overlap <seconds>",
      "how many seconds the old key still works, 0 to 2592000 (default: 86400, one day)",
    );
  examples(rotate, "holdfast keys rotate key_… --overlap 3600");
  runsOnLedger(rotate, tools, {
    input: (flags: { overlap?: string }, [keyId = ""]) => ({
      key_id: keyId,
      ...given({ overlap_seconds: wholeNumberIfGiven(flags.overlap) }),
    }),
    verb: (ctx, input) => rotateKey(ctx, MACHINE, input),
    print: (key) =>
      report(
        `Created a ${key.mode} key of ${key.agent_id}, which replaces ${key.replaces.id}.`,
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

function addList(keys: Command, tools: CommandLineTools): void {
  const list = keys
    .command("list")
    .summary("list the keys of an agent")
    .description(
      "Lists the API keys of an agent, also those that have ended. The time of the last use may be ten seconds behind. No secret is shown.",
    )
    .requiredOption("--agent <id>", "whose keys they are");
  examples(list, "holdfast keys list --agent agt_…");
  runsOnLedger(list, tools, {
    input: (flags: { agent: string }) => ({ agent_id: flags.agent }),
    verb: (ctx, input) => listKeys(ctx, MACHINE, input),
    print: ({ data }) =>
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
}

function addRevoke(keys: Command, tools: CommandLineTools): void {
  const revoke = keys
    .command("revoke")
    .summary("revoke an API key")
    .description("Revokes an API key at once. This cannot be undone.")
    .argument("<key>", "the key's id");
  examples(revoke, "holdfast keys revoke key_…");
  runsOnLedger(revoke, tools, {
    input: (_: object, [keyId = ""]) => ({ key_id: keyId }),
    verb: (ctx, input) => revokeKey(ctx, MACHINE, input),
    print: (key) =>
      report("The key is revoked.", [
        ["id", key.id],
        ["agent", key.agent_id],
        ["ends in", key.last_four],
        ["revoked", key.revoked_at],
      ]),
  });
}
