import type { Json } from "../support/client.ts";
import { type Installation, install, PROGRAM, type RunningServer } from "../support/executable.ts";
import { postgresSettings } from "../support/postgres-settings.ts";

/** Settings of an installation whose ledger is in a database, without `HOLDFAST_`. */
export const settingsOn = (url: string): Record<string, string> => ({
  ...Object.fromEntries(
    Object.entries(postgresSettings(url)).map(([name, value]) => [name.replace("HOLDFAST_", ""), value]),
  ),
  ...{ PORT: "0", BASE_URL: "http://localhost:8080", RATE_WRITE: "1000000" },
});

/** The executable, from the source or the build. */
export const installed = (settings: Readonly<Record<string, string>>): Installation =>
  install(settings, null, PROGRAM);

/** Opens a live warrant at a server. */
export type Buyer = (server: RunningServer) => Promise<readonly [status: number, body: Json]>;

/** An agent with live money, and how it opens warrants. */
export async function createBuyer({ json }: Installation): Promise<Buyer> {
  const owner = ["--owner-email", "ada@example.com", "--owner-password", "correct horse"];
  const { organisation } = await json("organisations", "create", "--name", "Acme", ...owner);
  const of = ["--organisation", organisation.id, "--mode", "live"];
  await json("balances", "fund", ...of, "--amount", "1000");
  const { id: agent } = await json("agents", "create", ...of, "--name", "buyer");
  const { secret } = await json("keys", "create", "--agent", agent);
  return async ({ base }: RunningServer) => {
    const response = await fetch(`${base}/v1/warrants`, {
      method: "POST",
      headers: {
        Authorization: `Bearer ${secret}`,
        "Content-Type": "application/json",
        "Idempotency-Key": crypto.randomUUID(),
      },
      body: JSON.stringify({
        ...{ amount: "1", payee: "acme", deadline: new Date(Date.now() + 3_600_000).toISOString() },
        spec: { clauses: [{ kind: "http.status", equals: 200 }] },
      }),
    });
    return [response.status, await response.json()] as const;
  };
}
