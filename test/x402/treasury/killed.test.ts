/**
 * A SIGKILL at every step of deposits and payouts, on the disk, with a real chain: before each kind of question to the node, once the node
 * has what was sent, and after each commit. What the next process finds is credited once and paid once.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { join } from "node:path";
import { createCommandLine } from "../../support/command-line.ts";
import { databaseSettings } from "../../support/database-settings.ts";
import { testSettings } from "../../support/server.ts";
import { openServerFolder, type ServerFolder } from "../../support/server-process.ts";
import { createStage, must, open, type Stage, settle, warrantIn } from "../../support/stage.ts";
import { type Chain, NETWORK_V2, startChain } from "../chain.ts";
import { type Node, type Reaction, startNode } from "../node.ts";
import { deployFaultyToken, type FaultyToken } from "./faulty-token.ts";
import { TREASURY, TREASURY_KEY, treasurySetting } from "./treasury-stage.ts";

const JOBS = join(import.meta.dir, "jobs-process.ts");
const ALL_MS = 300_000;
const FUNDS = 1_000_000n;
/** Enough for what was begun to be confirmed. */
const ROUNDS = 8;

let chain: Chain;
let node: Node;
let token: FaultyToken;
let folder: ServerFolder;
let stage: Stage;
let account: string[];
let children: Bun.Subprocess[];
/** What came in and what was released, so far. */
let deposited: bigint;
let released: Map<string, bigint>;

beforeAll(async () => {
  [children, deposited, released] = [[], 0n, new Map()];
  chain = await startChain();
  node = await startNode(chain);
  token = await deployFaultyToken(chain);
  await chain.ask("hardhat_setBalance", [TREASURY, "0xde0b6b3a7640000"]);
  folder = await openServerFolder();
  stage = await createStage(folder.ctx, { mode: "sandbox", funds: `${FUNDS}` });
  account = ["--organisation", stage.organisationId, "--mode", "sandbox"];
  const commands = createCommandLine(folder.ctx);
  await commands.json("deposits", "senders", "add", ...account, "--address", token.customer);
  await token.mint(TREASURY, FUNDS);
  await chain.mine(3);
  expect(await run()).toBe("ended");
}, ALL_MS);
afterAll(async () => {
  for (const child of children) child.kill("SIGKILL");
  await folder?.close();
  await node?.close();
  await chain?.close();
});

/** Runs the jobs in a process of their own. Answers how it came to its end. */
async function run(commits = 0, onStart = (_: Bun.Subprocess) => {}): Promise<"killed" | "ended"> {
  const settings = {
    ...testSettings(folder.folder),
    ...{ EVM_RPC: `${NETWORK_V2}=${node.url}`, TREASURY_SANDBOX: treasurySetting(token) },
    ...{ TREASURY_SANDBOX_KEY: TREASURY_KEY, TREASURY_CONFIRMATIONS: "3" },
  };
  const child = Bun.spawn([process.execPath, JOBS, chain.url, `${commits}`], {
    env: {
      ...databaseSettings(folder.folder),
      ...Object.fromEntries(Object.entries(settings).map(([name, value]) => [`HOLDFAST_${name}`, value])),
    },
    ...{ cwd: folder.folder, stdout: "inherit", stderr: "pipe" },
  });
  children.push(child);
  onStart(child);
  const said = await new Response(child.stderr).text();
  await child.exited;
  if (child.signalCode === "SIGKILL") return "killed";
  if (child.exitCode !== 0) throw new Error(said);
  return "ended";
}

/** Runs them with a node that kills them, where `when` says so. */
async function runUntil(when: (method: string, times: number) => "before" | "after" | null) {
  const asked: string[] = [];
  const ran = run(0, (child) => {
    const kill = async () => {
      child.kill("SIGKILL");
      await child.exited;
    };
    node.react(async ({ method }): Promise<Reaction> => {
      asked.push(method);
      const now = when(method, asked.filter((one) => one === method).length);
      if (now === "after") return { forwardThen: kill };
      if (now === "before") await kill();
      return now === "before" ? "dropped" : "forward";
    });
  });
  const ended = await ran;
  node.recover();
  return ended;
}

/** Something new comes in, and something new is owed. */
async function somethingToDo(): Promise<void> {
  const payee = `0xd${released.size.toString(16).padStart(39, "0")}`;
  const amount = BigInt(100 + released.size);
  const { id } = warrantIn(await open(stage, stage.operator, { payee, amount: `${amount}` }));
  must(await settle(stage, stage.operator, id, "release"));
  released.set(payee, amount);
  await token.pay(TREASURY, amount);
  deposited += amount;
  await chain.mine(2);
}

/** Expects that after the next processes all is as if nothing had happened. */
async function expectInOrder(): Promise<void> {
  const scope = { organisationId: stage.organisationId, mode: "sandbox" as const };
  const totals = () => folder.ctx.reader.payees.totals(scope)[0];
  for (let times = 0; times < ROUNDS; times++) expect(await run()).toBe("ended");
  expect(totals()).toMatchObject({ payable: 0n, submitted: 0n });
  const sent = await token.sentBy(TREASURY);
  const arrived = sent.map(({ to, value }) => [to.toLowerCase(), value] as const).sort();
  expect(arrived).toEqual([...released].sort());
  const paid = [...released.values()].reduce((sum, amount) => sum + amount, 0n);
  const [balance] = folder.ctx.reader.balances.list(scope);
  expect(balance?.balance).toEqual({ available: FUNDS + deposited - paid, held: 0n, paid });
  expect(await token.balanceOf(TREASURY)).toBe(FUNDS + deposited - paid);
  expect(await folder.ctx.store.audit()).toEqual([]);
}

test(
  "before each kind of question to the node, the first time and the second",
  async () => {
    const killed = new Set<string>();
    // The third time and later ask as the second did.
    const isNew = (method: string, times: number): boolean => {
      const step = `${method} ${times}`;
      const isIt = times <= 2 && !killed.has(step);
      killed.add(step);
      return isIt;
    };
    do await somethingToDo();
    while ((await runUntil((method, times) => (isNew(method, times) ? "before" : null))) === "killed");
    expect([...killed]).toEqual(expect.arrayContaining(["eth_getLogs 1", "eth_sendRawTransaction 1"]));
    await expectInOrder();
  },
  ALL_MS,
);

test(
  "once the node has a transaction, and nobody knows",
  async () => {
    await somethingToDo();
    const ended = await runUntil((method) => (method === "eth_sendRawTransaction" ? "after" : null));
    expect(ended).toBe("killed");
    await expectInOrder();
  },
  ALL_MS,
);

test(
  "after each commit",
  async () => {
    for (let commits = 1; ; commits++) {
      await somethingToDo();
      if ((await run(commits)) === "ended") break;
    }
    await expectInOrder();
  },
  ALL_MS,
);
