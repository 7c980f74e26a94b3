import { type ErrorCode, isRefusal, type Refusal } from "../../src/core/errors.ts";
import type { Mode, Role } from "../../src/core/roles.ts";
import { type AgentInput, createAgent } from "../../src/services/admin/agents.ts";
import { MACHINE } from "../../src/services/admin/authority.ts";
import { fundBalance } from "../../src/services/admin/balances.ts";
import { createKey } from "../../src/services/admin/keys.ts";
import { createOrganisation } from "../../src/services/admin/organisations.ts";
import { createPolicy } from "../../src/services/admin/policies.ts";
import { createUser } from "../../src/services/admin/users.ts";
import type { Context } from "../../src/services/context.ts";
import type { Client, Credentials } from "./client.ts";

/** An agent with one key. `as` calls with the key. */
export type TestAgent = {
  readonly id: string;
  readonly keyId: string;
  readonly secret: string;
  readonly as: Credentials;
};

export type Person = { readonly id: string; readonly email: string; readonly as: Credentials };

/** An organisation with a funded agent in each mode, and people of every role who are signed in to `live`. */
export type TestOrganisation = {
  readonly id: string;
  readonly name: string;
  readonly people: Readonly<Record<Role, Person>>;
  readonly live: TestAgent;
  readonly sandbox: TestAgent;
  addAgent(input?: Partial<AgentInput>): Promise<TestAgent>;
  addPolicy(
    rules: object,
    input?: { name?: string; agent_id?: string },
  ): Promise<{ id: string; version: number }>;
  signIn(person: Person, mode?: Mode): Promise<Credentials>;
};

export const PASSWORD = "correct horse battery staple";
const FUNDS = 1_000_000n;

let sequence = 0;
const fresh = (name: string): string => `${name}-${++sequence}`;

/** The value; throws where it is a refusal. */
export function must<T>(value: T | Refusal): T {
  if (isRefusal(value)) throw new Error(`refused: ${value.refused satisfies ErrorCode}: ${value.message}`);
  return value;
}

/** Makes an organisation. `ctx` hashes passwords cheaply: argon2 for every person would take most of a test's time. */
export async function makeOrganisation(
  ctx: Context,
  client: Client,
  funds: bigint = FUNDS,
): Promise<TestOrganisation> {
  const name = fresh("organisation");
  const ownerEmail = `${fresh("owner")}@example.com`;
  const created = must(
    await createOrganisation(ctx, { name, owner_email: ownerEmail, owner_password: PASSWORD }),
  );
  const { id } = created.organisation;

  const signIn: TestOrganisation["signIn"] = async ({ email }, mode) => {
    const reply = await client.post("/auth/session", { email, password: PASSWORD, ...(mode && { mode }) });
    const cookie = reply.headers.get("set-cookie")?.split(";")[0];
    if (reply.status !== 201 || cookie === undefined) throw new Error(`no sign-in: ${reply.text}`);
    return { Cookie: cookie };
  };
  const signedIn = async (person: Omit<Person, "as">): Promise<Person> => ({
    ...person,
    as: await signIn({ ...person, as: {} }),
  });
  const createPerson = async (role: Role): Promise<Omit<Person, "as">> => {
    const email = `${fresh(role)}@example.com`;
    const user = must(
      await createUser(ctx, MACHINE, { organisation_id: id, email, password: PASSWORD, role }),
    );
    return { id: user.id, email };
  };
  const addAgent: TestOrganisation["addAgent"] = async (input) => {
    const agent = must(
      await createAgent(ctx, MACHINE, { organisation_id: id, mode: "live", name: fresh("agent"), ...input }),
    );
    const key = must(await createKey(ctx, MACHINE, { agent_id: agent.id }));
    return {
      id: agent.id,
      keyId: key.id,
      secret: key.secret,
      as: { Authorization: `Bearer ${key.secret}` },
    };
  };
  if (funds > 0n) {
    for (const mode of ["live", "sandbox"] as const)
      must(await fundBalance(ctx, MACHINE, { organisation_id: id, mode, amount: String(funds) }));
  }
  const [live, sandbox, ...people] = await Promise.all([
    addAgent(),
    addAgent({ mode: "sandbox" }),
    createPerson("viewer"),
    createPerson("operator"),
    createPerson("admin"),
  ]);
  const [viewer, operator, admin] = await Promise.all(people.map(signedIn));
  const owner = await signedIn({ id: created.owner.id, email: ownerEmail });
  return {
    id,
    name,
    people: { viewer: viewer!, operator: operator!, admin: admin!, owner },
    live,
    sandbox,
    addAgent,
    signIn,
    addPolicy: async (rules, input = {}) =>
      must(await createPolicy(ctx, MACHINE, { organisation_id: id, name: fresh("policy"), rules, ...input })),
  };
}
