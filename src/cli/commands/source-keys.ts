import type { Command } from "commander";
import { MACHINE } from "../../services/admin/authority.ts";
import { addSourceKey, listSourceKeys, removeSourceKey } from "../../services/admin/source-keys.ts";
import { type Answer, examples, group, runsOnLedger } from "../command.ts";
import { readJson } from "../input.ts";
import { report, table } from "../output.ts";
import type { CommandLineTools } from "../tools.ts";

export function addSourceKeys(program: Command, tools: CommandLineTools): void {
  const keys = group(program, "source-keys", "say who signs the answers of sources");
  addAdd(keys, tools);
  addList(keys, tools);
  addRemove(keys, tools);
}

const fieldsOf = (key: Answer<typeof addSourceKey>) =>
  [
    ["id", key.id],
    ["origin", key.origin],
    ["algorithm", key.algorithm],
    ["thumbprint", key.thumbprint],
    ...(key.identity
      ? ([
          ["issuer", key.identity.issuer],
          ["subject", key.identity.subject],
        ] as const)
      : []),
    ["added", key.created_at],
    ["removed", key.removed_at],
  ] as const;

function addAdd(keys: Command, tools: CommandLineTools): void {
  const add = keys
    .command("add")
    .summary("register who signs the answers of an origin")
    .description(
      "Registers a public key that an origin signs its answers with (HTTP Message Signatures, RFC 9421, over @status and content-digest), or an identity of Sigstore whose bundle it puts beside them (needs HOLDFAST_SIGSTORE_ROOT). A check of an answer that is signed so says `signed by the source` on the receipt. Ask the source for the key or the identity by a way that you trust.",
    )
    .requiredOption("--organisation <id>", "whose checks it counts for")
    .requiredOption("--origin <origin>", "the origin that signs, such as https://api.example")
    .option("--key <jwk>", "the public key, Ed25519 or P-256, as a JWK or @file")
    .option("--issuer <url>", "instead, of an identity of Sigstore: who has signed them in")
    .option("--subject <text>", "and their URI or e-mail address there");
  const origin = "holdfast source-keys add --organisation org_… --origin https://api.example";
  examples(
    add,
    `${origin} --key @key.json`,
    `${origin} --issuer https://accounts.google.com --subject reports@api.example`,
  );
  type Flags = { organisation: string; origin: string; key?: string; issuer?: string; subject?: string };
  runsOnLedger(add, tools, {
    input: async ({ organisation, origin, key, ...identity }: Flags) => ({
      organisation_id: organisation,
      origin,
      ...identity,
      ...(key !== undefined && { key: await readJson("--key", key) }),
    }),
    verb: (ctx, input) => addSourceKey(ctx, MACHINE, input),
    print: (key) => report(`Registered who signs for ${key.origin}.`, fieldsOf(key)),
  });
}

function addList(keys: Command, tools: CommandLineTools): void {
  const list = keys
    .command("list")
    .summary("list the registered keys")
    .description("Lists the keys of sources that an organisation has registered and not removed.")
    .requiredOption("--organisation <id>", "whose keys they are");
  examples(list, "holdfast source-keys list --organisation org_…");
  runsOnLedger(list, tools, {
    input: ({ organisation }: { organisation: string }) => ({ organisation_id: organisation }),
    verb: (ctx, input) => listSourceKeys(ctx, MACHINE, input),
    print: ({ data }) =>
      data.length === 0
        ? "No source has a registered key."
        : table(
            ["key", "origin", "algorithm", "thumbprint"],
            data.map(({ id, origin, algorithm, thumbprint }) => [id, origin, algorithm, thumbprint]),
          ),
  });
}

function addRemove(keys: Command, tools: CommandLineTools): void {
  const remove = keys
    .command("remove")
    .summary("remove a key or an identity")
    .description(
      "Removes a key. Answers that it signs from now on count as observed. What was recorded with it stays.",
    )
    .argument("<key>", "the key's id");
  examples(remove, "holdfast source-keys remove sky_…");
  runsOnLedger(remove, tools, {
    input: (_: object, [id = ""]) => ({ source_key_id: id }),
    verb: (ctx, input) => removeSourceKey(ctx, MACHINE, input),
    print: (key) => report(`Removed a key of ${key.origin}.`, fieldsOf(key)),
  });
}
