import type { RunningServer } from "../app.ts";
import { isRefusal, type Refusal } from "../core/errors.ts";
import type { organisationResource } from "../resources/organisation.ts";
import { createAgent } from "../services/admin/agents.ts";
import { MACHINE } from "../services/admin/authority.ts";
import { fundBalance, showBalances } from "../services/admin/balances.ts";
import { createKey } from "../services/admin/keys.ts";
import { createOrganisation } from "../services/admin/organisations.ts";
import { createPolicy } from "../services/admin/policies.ts";
import { createSchema } from "../services/admin/schemas.ts";
import type { Context } from "../services/context.ts";
import { type Balance, FUNDS, POLICY_NAME, RULES, SCHEMA, SCHEMA_NAME } from "./scenes.ts";
import type { Seller } from "./seller.ts";

/** Who takes part in the tour, with their credentials: all in the sandbox, and made for this run. */
export type Cast = {
  readonly organisation: ReturnType<typeof organisationResource>;
  readonly owner: { readonly id: string; readonly email: string; readonly password: string };
  readonly agent: { readonly id: string; readonly name: string };
  readonly apiKey: string;
};

/** What all parts of the demo need. */
export type Demo = {
  readonly server: RunningServer;
  /** Where the server is reached from this machine. */
  readonly url: string;
  /** The configured port, where another program has it and the server listens at another; else null. */
  readonly portTaken: number | null;
  readonly seller: Seller;
  readonly cast: Cast;
  readonly folder: string;
  readonly keepServing: boolean;
};

/** More failures than anybody reaches while trying things out. An agent that reached them would be paused. */
const FAILURE_BUDGET = 1_000;

/** Makes the organisation, its agent and its policy, as the command line would. */
export async function setStage(ctx: Context): Promise<Cast> {
  const credentials = { email: await freeEmail(ctx), password: `demo-${crypto.randomUUID()}` };
  const { organisation, owner: made } = must(
    await createOrganisation(ctx, {
      name: "Oslo Picnics",
      owner_email: credentials.email,
      owner_password: credentials.password,
    }),
  );
  const owner = { ...credentials, id: made.id };
  const organisation_id = organisation.id;
  const account = { organisation_id, mode: "sandbox" } as const;
  must(await fundBalance(ctx, MACHINE, { ...account, amount: `${FUNDS}`, reference: "play money" }));
  const agent = must(
    await createAgent(ctx, MACHINE, { ...account, name: "buyer", failure_budget: FAILURE_BUDGET }),
  );
  const { secret: apiKey } = must(await createKey(ctx, MACHINE, { agent_id: agent.id }));
  must(await createSchema(ctx, MACHINE, { organisation_id, name: SCHEMA_NAME, schema: SCHEMA }));
  must(await createPolicy(ctx, MACHINE, { organisation_id, name: POLICY_NAME, rules: RULES }));
  return { organisation, owner, agent: { id: agent.id, name: agent.name }, apiKey };
}

/** The organisation's balance of USDC. */
export async function readBalance(ctx: Context, { organisation }: Cast): Promise<Balance> {
  const { balances } = must(
    await showBalances(ctx, MACHINE, { organisation_id: organisation.id, mode: "sandbox" }),
  );
  const [usdc] = balances;
  if (!usdc) throw new Error("the sandbox has no balance");
  return { available: BigInt(usdc.available), held: BigInt(usdc.held), paid: BigInt(usdc.paid) };
}

/** An e-mail that is not used yet: an earlier run in the same folder may have taken the first. */
async function freeEmail(ctx: Context): Promise<string> {
  for (let run = 1; ; run++) {
    const email = run === 1 ? "ada@example.com" : `ada+${run}@example.com`;
    if (!(await ctx.store.read((reader) => reader.users.byEmail(email)))) return email;
  }
}

function must<Answer>(answer: Answer | Refusal): Answer {
  if (isRefusal(answer)) throw new Error(`${answer.refused}: ${answer.message}`);
  return answer;
}
