import type { Json, Program, Server } from "../crash/program.ts";

/** Opens a live warrant at a server. */
export type Buyer = (server: Server) => Promise<readonly [status: number, body: Json]>;

/** An agent with live money, and how it opens warrants. */
export async function createBuyer(program: Program): Promise<Buyer> {
  const owner = ["--owner-email", "ada@example.com", "--owner-password", "correct horse"];
  const { organisation } = await program.command("organisations", "create", "--name", "Acme", ...owner);
  const of = ["--organisation", organisation.id, "--mode", "live"];
  await program.command("balances", "fund", ...of, "--amount", "1000");
  const { id: agent } = await program.command("agents", "create", ...of, "--name", "buyer");
  const { secret } = await program.command("keys", "create", "--agent", agent);
  return async ({ url }: Server) => {
    const response = await fetch(`${url}/v1/warrants`, {
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
