/**
 * `bun run sweep`: a ledger with 100,000 warrants past their deadline (SWEEP_WARRANTS), and a server,
 * `dist/holdfast`, that expires them. Meanwhile a client reads and opens, one request after the other, and
 * prints how long the slowest took. Exits with 1 where that is over 50 ms. Then it measures how late single
 * deadlines fire.
 */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { openForCommands } from "../../src/app/ledger.ts";
import { readConfig } from "../../src/config.ts";
import { sha256 } from "../../src/core/canonical.ts";
import { createAgent } from "../../src/services/admin/agents.ts";
import { MACHINE } from "../../src/services/admin/authority.ts";
import { fundBalance } from "../../src/services/admin/balances.ts";
import { createKey } from "../../src/services/admin/keys.ts";
import { createOrganisation } from "../../src/services/admin/organisations.ts";
import { openWarrant } from "../../src/services/warrants/open.ts";
import { atTime } from "../support/at-time.ts";
import { must } from "../support/stage.ts";

const WARRANTS = Number(process.env.SWEEP_WARRANTS ?? 100_000);
const LIMIT_MS = 50;
const DAY_MS = 86_400_000;
const SPEC = { clauses: [{ kind: "http.status", equals: 200 }] };
const BINARY = resolve(import.meta.dir, "../../dist/holdfast");

const folder = mkdtempSync(join(tmpdir(), "holdfast-sweep-"));
const settings = { DATA: folder, PORT: "0", RATE_READ: "100000000", RATE_WRITE: "100000000" };
let server: Bun.Subprocess<"ignore", "pipe", "inherit"> | null = null;
try {
  const secret = await prepareLedger();
  server = Bun.spawn([BINARY, "serve", "--json"], {
    cwd: folder,
    env: Object.fromEntries(Object.entries(settings).map(([name, value]) => [`HOLDFAST_${name}`, value])),
    stdin: "ignore",
    stdout: "pipe",
    stderr: "inherit",
  });
  const { value } = await server.stdout.getReader().read();
  await measure(JSON.parse(new TextDecoder().decode(value)).url, secret);
} finally {
  server?.kill();
  await server?.exited;
  rmSync(folder, { recursive: true, force: true });
}

/**
 * Makes an organisation whose warrants were all due yesterday, half of them with an agent. Answers the
 * agent's key.
 */
async function prepareLedger(): Promise<string> {
  const { ctx: real, close } = await openForCommands(must(readConfig(settings, {})));
  const { ctx, close: closePast } = atTime(real, folder, () => Date.now() - 2 * DAY_MS);
  const { organisation } = must(
    await createOrganisation(ctx, {
      name: "Sweep",
      owner_email: "sweep@example.com",
      owner_password: "correct horse battery",
    }),
  );
  const scope = { organisation_id: organisation.id, mode: "sandbox" } as const;
  const agent = must(await createAgent(ctx, MACHINE, { ...scope, name: "a", failure_budget: 1_000_000 }));
  must(await fundBalance(ctx, MACHINE, { ...scope, amount: "1000000000000" }));
  const key = must(await createKey(real, MACHINE, { agent_id: agent.id }));
  const caller = {
    kind: "key" as const,
    keyId: key.id,
    agentId: agent.id,
    organisationId: organisation.id,
    mode: "sandbox" as const,
  };
  console.log(`opening ${WARRANTS} warrants`);
  const deadline = new Date(Date.now() - DAY_MS).toISOString();
  for (let opened = 0; opened < WARRANTS; opened += 200) {
    const opens = Array.from({ length: 200 }, async (_, index) => {
      const input = { amount: "100", payee: "acme", deadline, spec: SPEC };
      const idempotency = { key: `open-${opened + index}`, fingerprint: sha256("") };
      must(
        await openWarrant(
          ctx,
          caller,
          index % 2 === 0 ? { ...input, agent_id: agent.id } : input,
          idempotency,
        ),
      );
    });
    await Promise.all(opens);
  }
  await closePast();
  await close();
  return key.secret;
}

/** Sends requests until five seconds after the sweep has ended, and prints their times. */
async function measure(url: string, secret: string): Promise<void> {
  const took: Record<string, number[]> = { read: [], open: [], "read, swept": [], "open, swept": [] };
  const begun = performance.now();
  let sweptMs = 0;
  let warm = false;
  const call = async (name: string, path: string, init: RequestInit = {}) => {
    const start = performance.now();
    const response = await fetch(url + path, {
      ...init,
      headers: { Authorization: `Bearer ${secret}`, ...init.headers },
    });
    const body = (await response.json()) as { id?: string; data?: unknown[] };
    const label = sweptMs === 0 ? name : `${name}, swept`;
    if (warm) took[label]?.push(performance.now() - start);
    if (!response.ok) throw new Error(JSON.stringify(body));
    return body;
  };
  for (let count = 0; sweptMs === 0 || performance.now() - begun < sweptMs + 5_000; count++) {
    const { id } = await call("open", "/v1/warrants", {
      method: "POST",
      headers: { "Content-Type": "application/json", "Idempotency-Key": `meanwhile-${count}` },
      body: JSON.stringify({
        amount: "1",
        payee: "acme",
        deadline: new Date(Date.now() + DAY_MS).toISOString(),
        spec: SPEC,
      }),
    });
    await call("read", `/v1/warrants/${id}`);
    // The first answers of a process are always slow, so they are not counted. The sweep begins only after
    // half a second.
    warm ||= performance.now() - begun > 400;
    if (count % 50 === 0 && sweptMs === 0) {
      const list = await fetch(`${url}/v1/warrants?state=held&sort=deadline&limit=1`, {
        headers: { Authorization: `Bearer ${secret}` },
      });
      const { data } = (await list.json()) as { data: { deadline: string }[] };
      if (data.every(({ deadline }) => Date.parse(deadline) > Date.now()))
        sweptMs = performance.now() - begun;
    }
  }
  console.log(`swept within ${(sweptMs / 1_000).toFixed(1)} s`);
  for (const [name, times] of Object.entries(took)) printTimes(name, times);
  const slowest = Math.max(...(took.read ?? []), ...(took.open ?? []));
  if (slowest > LIMIT_MS) process.exitCode = 1;
  await printLateness(call);
  console.log(`slowest during the sweep: ${slowest.toFixed(1)} ms, of at most ${LIMIT_MS} ms`);
}

function printTimes(name: string, times: readonly number[]): void {
  const sorted = [...times].sort((a, b) => a - b);
  const at = (share: number) => (sorted[Math.ceil(sorted.length * share) - 1] ?? 0).toFixed(1).padStart(8);
  console.log(
    `${name.padEnd(14)}${String(sorted.length).padStart(8)} calls   p50${at(0.5)}   p99${at(0.99)}   max${at(1)} ms`,
  );
}

/**
 * Opens warrants that are due soon, one after the other, and prints how long after its deadline each was
 * expired.
 */
async function printLateness(
  call: (
    name: string,
    path: string,
    init?: RequestInit,
  ) => Promise<{ id?: string; settled_at?: string | null }>,
): Promise<void> {
  const late: number[] = [];
  for (let count = 0; count < 20; count++) {
    const deadline = Date.now() + 100 + 37 * count;
    const { id } = await call("soon", "/v1/warrants", {
      method: "POST",
      headers: { "Content-Type": "application/json", "Idempotency-Key": `soon-${count}` },
      body: JSON.stringify({
        amount: "1",
        payee: "acme",
        deadline: new Date(deadline).toISOString(),
        spec: SPEC,
      }),
    });
    for (let settledAt = null; settledAt === null; await Bun.sleep(20)) {
      settledAt = (await call("soon", `/v1/warrants/${id}`)).settled_at ?? null;
      if (settledAt !== null) late.push(Date.parse(settledAt) - deadline);
    }
  }
  printTimes("late", late);
}
