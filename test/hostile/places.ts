import { join } from "node:path";
import { runCommand, startServer } from "../bench/holdfast.ts";
import { atLeast, atMost, noted, type Row } from "../bench/table.ts";
import { clientOf, type Reply } from "./asking.ts";

/** Two organisations hold all the places that they can get. A third one asks for a few. */

const FOR_MS = 20_000;
/** How long the slow source keeps a request. It is less than a fetch may take, so that nothing fails. */
const SLOW_MS = 8_000;
const CHECK_EVERY_MS = 100;
/** A check that finds a place at once takes some milliseconds; beside this load the process is busy. */
const WAIT_MS_MAX = 2_000;
export type Party = { readonly live: string; readonly sandbox: string };

export async function measurePlaces(folder: string): Promise<Row[]> {
  const data = join(folder, "data");
  const [first, second, third] = ["First", "Second", "Third"].map((name) => prepareParty(data, name));
  if (!first || !second || !third) throw new Error("three organisations were made");
  using source = startSource();
  await using server = await startServer(data, {
    settings: { HOLDFAST_X402_ALLOW_NETWORKS: "127.0.0.0/8" },
  });
  const client = clientOf(server.url, source.url);
  const until = performance.now() + FOR_MS;
  const greedy = askInAnotherProcess(server.url, source.url, [first, second]);
  // Once the two hold all that they can get.
  await Bun.sleep(2_000);
  const checks: Promise<Reply>[] = [];
  const purchases: Promise<Reply>[] = [];
  while (performance.now() < until - SLOW_MS) {
    checks.push(client.check(third.live, "quick"));
    purchases.push(client.buy(third.sandbox, "quick"));
    await Bun.sleep(CHECK_EVERY_MS);
  }
  const [live, sandbox] = [await Promise.all(checks), await Promise.all(purchases)];
  const slow = await greedy;
  const refused = slow.filter(({ status }) => status === 429);
  return [
    atLeast("live checks of the third that are answered, of 100", answered(live), { required: 100 }),
    atMost("the slowest of them", slowest(live), { required: WAIT_MS_MAX }, " ms", spread(live)),
    noted(
      "sandbox purchases of the third that are answered, of 100",
      `${answered(sandbox)} (${spread(sandbox)})`,
    ),
    noted("of the two: answered, refused", `${slow.length - refused.length}, ${refused.length}`),
    atMost("the longest wait of those that were refused", slowest(refused), { required: 7_000 }, " ms"),
    atMost(
      "answers 429 whose Retry-After is not 1",
      refused.filter(({ retryAfter }) => retryAfter !== "1").length,
      { required: 0 },
      "",
    ),
    atMost(
      "answers of the two that are neither",
      slow.filter(({ status }) => status !== 200 && status !== 429).length,
      { required: 0 },
      "",
    ),
  ];
}

/** Bun lets a process have 256 requests under way, so those of the two would keep those of the third from being sent. */
async function askInAnotherProcess(url: string, source: string, parties: readonly Party[]): Promise<Reply[]> {
  const child = Bun.spawn(
    [
      process.execPath,
      join(import.meta.dir, "greedy.ts"),
      JSON.stringify({ url, source, parties, forMs: FOR_MS }),
    ],
    { env: { BUN_CONFIG_MAX_HTTP_REQUESTS: "4096" }, stdout: "pipe", stderr: "inherit" },
  );
  return (await new Response(child.stdout).json()) as Reply[];
}

/** An organisation with money, an agent and a key in each mode. */
function prepareParty(data: string, name: string): Party {
  const owner = ["--owner-email", `${name}@example.com`, "--owner-password", "correct horse battery"];
  const { organisation } = runCommand(data, "organisations", "create", "--name", name, ...owner);
  const keyIn = (mode: string): string => {
    const account = ["--organisation", organisation.id, "--mode", mode];
    const agent = runCommand(data, "agents", "create", ...account, "--name", "agent");
    runCommand(data, "balances", "fund", ...account, "--amount", "1000000000");
    return runCommand(data, "keys", "create", "--agent", agent.id).secret;
  };
  return { live: keyIn("live"), sandbox: keyIn("sandbox") };
}

/** Answers at /quick at once, and at /slow after a while. It asks for no payment. */
function startSource() {
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    idleTimeout: 60,
    async fetch({ url }) {
      if (new URL(url).pathname === "/slow") await Bun.sleep(SLOW_MS);
      return Response.json({ ok: true });
    },
  });
  return { url: `http://127.0.0.1:${server.port}`, [Symbol.dispose]: () => void server.stop(true) };
}

const answered = (replies: readonly Reply[]): number =>
  Math.floor((100 * replies.filter(({ status }) => status === 200).length) / replies.length);

const slowest = (replies: readonly Reply[]): number => Math.max(0, ...replies.map(({ ms }) => ms));

function spread(replies: readonly Reply[]): string {
  const sorted = replies.map(({ ms }) => ms).toSorted((a, b) => a - b);
  const at = (part: number): string =>
    `${Math.round(sorted[Math.floor(part * (sorted.length - 1))] ?? 0)} ms`;
  return `median ${at(0.5)}, p99 ${at(0.99)}, ${replies.length} in all`;
}
