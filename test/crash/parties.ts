import type { Mode } from "../../src/core/roles.ts";
import type { Receiver } from "./outside.ts";
import type { Program } from "./program.ts";

/** Who sends requests in a folder: agents with keys, and two people, with their organisation's money. */

export type Credentials = Readonly<Record<string, string>>;

export type Agent = {
  readonly mode: Mode;
  readonly as: Credentials;
  /** What it opens with: an agent under a spend session names itself. */
  readonly agentId: string | null;
};

export type Parties = {
  readonly organisationId: string;
  readonly agents: readonly [Agent, ...Agent[]];
  /** Signed in to each of the two modes. */
  readonly people: Readonly<Record<Mode, People>>;
};

export type People = { readonly operator: Credentials; readonly admin: Credentials };

const PASSWORD = "correct horse battery staple";
export const FUNDS = 1_000_000_000_000n;
const MANY = "1000000";
/** Later than any clock jumps. */
const SESSIONS_END = new Date(Date.now() + 4 * 365 * 86_400_000).toISOString();

/** Releases, releases a part, escalates or refunds, depending on how many of four clauses pass. */
const RULES = {
  bands: [
    { minScore: 1, outcome: "release" },
    { minScore: 0.75, outcome: "partial_release", releasedBps: 3_333 },
    { minScore: 0.5, outcome: "escalate" },
    { minScore: 0, outcome: "refund" },
  ],
};

/** @param senders addresses on the treasury's chain whose transfers are the organisation's deposits */
export async function createParties({ command }: Program, receiver: Receiver, senders: readonly string[]) {
  const { organisation } = await command(
    ...["organisations", "create", "--name", "Crash", "--owner-email", "owner@example.com"],
    ...["--owner-password", PASSWORD],
  );
  const own = ["--organisation", organisation.id];
  await command("policies", "create", ...own, "--name", "default", "--rules", JSON.stringify(RULES));
  for (const role of ["operator", "admin"]) {
    await command(
      ...["users", "create", ...own, "--email", `${role}@example.com`, "--password", PASSWORD],
      ...["--role", role],
    );
  }
  const agentOf = async (mode: Mode, inSession: boolean): Promise<Agent> => {
    const account = [...own, "--mode", mode];
    const { id } = await command("agents", "create", ...account, "--name", "load", "--failure-budget", MANY);
    if (inSession) {
      const limits = ["--ceiling", String(FUNDS), "--expires-at", SESSIONS_END];
      await command("sessions", "create", "--agent", id, ...limits);
    }
    const { secret } = await command("keys", "create", "--agent", id);
    return { mode, as: { authorization: `Bearer ${secret}` }, agentId: inSession ? id : null };
  };
  const agents = [
    await agentOf("live", false),
    await agentOf("live", true),
    await agentOf("sandbox", true),
  ] as const;
  for (const mode of ["live", "sandbox"] as const) {
    const account = [...own, "--mode", mode];
    await command("balances", "fund", ...account, "--amount", String(FUNDS));
    const { secret } = await command("webhooks", "create", ...account, "--url", receiver.urlOf(mode));
    receiver.trust(mode, secret);
  }
  for (const address of senders)
    await command("deposits", "senders", "add", ...own, "--mode", "sandbox", "--address", address);
  return { organisationId: organisation.id as string, agents };
}

/** Signs both people in to a mode. */
export const signIn = async (url: string, mode: Mode): Promise<People> => ({
  operator: await cookieOf(url, "operator", mode),
  admin: await cookieOf(url, "admin", mode),
});

/** Signs everybody in again, for those who hold these credentials already. */
export async function signInAgain(url: string, people: Parties["people"]): Promise<void> {
  for (const mode of ["live", "sandbox"] as const) {
    const fresh = await signIn(url, mode);
    Object.assign(people[mode].operator, fresh.operator);
    Object.assign(people[mode].admin, fresh.admin);
  }
}

async function cookieOf(url: string, role: string, mode: Mode): Promise<Credentials> {
  const response = await fetch(`${url}/auth/session`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ email: `${role}@example.com`, password: PASSWORD, mode }),
  });
  const cookie = response.headers.get("set-cookie")?.split(";")[0];
  if (response.status !== 201 || cookie === undefined) throw new Error(`no sign-in: ${response.status}`);
  return { cookie };
}
