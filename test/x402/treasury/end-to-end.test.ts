/**
 * Money in and out, as an operator and an agent see it: a deposit on the chain, a warrant of that money, its release, and the
 * payout on the chain. `EXECUTABLE` names the program; without it, the source is run.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { privateKeyToAccount } from "viem/accounts";
import { type Client, type Credentials, createClient, type Json } from "../../support/client.ts";
import { type Installation, install, PROGRAM, type RunningServer } from "../../support/executable.ts";
import { type Source, startSource } from "../../support/source.ts";
import { until } from "../../support/until.ts";
import { type Chain, NETWORK_V2, startChain } from "../chain.ts";
import { deployFaultyToken, type FaultyToken } from "./faulty-token.ts";

const KEY = `0x${"42".repeat(32)}` as const;
const TREASURY = privateKeyToAccount(KEY).address;
const PAYEE = `0x${"ab".repeat(20)}`;
const CONFIRMATIONS = 3;
const DEPOSIT = 5_000_001n;
const PRICE = 1_234_567n;
const WALK_MS = 180_000;
const ETHER = 10n ** 18n;

let chain: Chain;
let token: FaultyToken;
let source: Source;
let holdfast: Installation;
let server: RunningServer;
let client: Client;
let as: Credentials;
let organisation: string;

beforeAll(async () => {
  chain = await startChain();
  token = await deployFaultyToken(chain);
  source = startSource();
  await chain.ask("hardhat_setBalance", [TREASURY, `0x${ETHER.toString(16)}`]);
  holdfast = install(
    {
      ...{ PORT: "0", ALLOW_NETWORKS: "127.0.0.0/8", EVM_RPC: `${NETWORK_V2}=${chain.url}` },
      TREASURY_SANDBOX: `${NETWORK_V2}/${token.address}=USDC:2000000:4000000`,
      TREASURY_SANDBOX_KEY: KEY,
      ...{ TREASURY_CONFIRMATIONS: String(CONFIRMATIONS), PAYOUT_MINUTES: "1" },
    },
    null,
    PROGRAM,
  );
  server = await holdfast.serve();
  client = createClient(fetch, server.base);
  const created = await holdfast.json(
    ...["organisations", "create", "--name", "Tower", "--owner-email", "owner@example.com"],
    ...["--owner-password", "velvet harbour ginger notion"],
  );
  organisation = created.organisation.id;
  const agent = await holdfast.json("agents", "create", ...account(), "--name", "buyer");
  const key = await holdfast.json("keys", "create", "--agent", agent.id);
  as = { Authorization: `Bearer ${key.secret}` };
}, WALK_MS);
afterAll(async () => {
  await holdfast?.remove();
  source?.stop();
  await chain?.close();
});

const account = () => ["--organisation", organisation, "--mode", "sandbox"];
const list = async (...args: string[]): Promise<Json[]> => (await holdfast.json(...args, ...account())).data;
const money = async () => {
  const { balances } = await holdfast.json("balances", "show", ...account());
  return balances.find(({ asset }: Json) => asset === "USDC");
};
/** Without the anchor, which a checkpoint of the log changes. */
const receiptOf = async (id: string): Promise<Json> => {
  const reply = await fetch(`${server.base}/t/${id}`, { headers: { Accept: "application/json" } });
  return { ...((await reply.json()) as Json), anchor: null };
};
/** Looks again with each new block. */
const untilMined = (what: string, look: () => Promise<boolean>) =>
  until(
    what,
    async () => {
      await chain.mine(1);
      return look();
    },
    WALK_MS / 2,
  );

test(
  "what is sent to the treasury is credited, and what is released is paid, to the unit",
  async () => {
    await holdfast.run("deposits", "senders", "add", ...account(), "--address", token.customer);
    // What came before the treasury is watched is no deposit.
    const isWatched = async () => (await holdfast.json("treasuries", "list")).data[0].block !== null;
    await untilMined("the treasury is watched", isWatched);
    const hash = await token.pay(TREASURY, DEPOSIT);
    await untilMined("the deposit is credited", async () => (await list("deposits", "list")).length > 0);
    expect(await list("deposits", "list")).toMatchObject([
      { amount: `${DEPOSIT}`, counts_for: `${DEPOSIT}`, reference: `${NETWORK_V2}:${hash}/0` },
    ]);
    expect(await money()).toMatchObject({ available: `${DEPOSIT}`, held: "0", paid: "0" });

    const opened = await client.post(
      "/v1/warrants",
      {
        ...{ amount: `${PRICE}`, payee: PAYEE, deadline: new Date(Date.now() + 3_600_000).toISOString() },
        spec: { clauses: [{ kind: "http.status", equals: 200 }] },
      },
      { as },
    );
    expect(opened.status).toBe(201);
    const path = `/v1/warrants/${opened.body.id}`;
    const checked = await client.post(`${path}/verify`, { source_url: source.gives({}) }, { as });
    expect(checked.body.state).toBe("released");
    const shown = async () => [
      (await client.get(`${path}/trace`, { as })).text,
      (await client.get(path, { as })).text,
      await receiptOf(opened.body.id),
    ];
    const before = await shown();

    await holdfast.run("payouts", "submit", ...account());
    // What is owed is paid out at the start, and not only once a minute.
    await server.kill();
    server = await holdfast.serve();
    client = createClient(fetch, server.base);
    await untilMined(
      "the payout is paid",
      async () => (await list("payouts", "list", "--status", "paid")).length > 0,
    );
    const [sent, ...others] = await token.sentBy(TREASURY);
    expect([sent?.value, sent?.to.toLowerCase(), others]).toEqual([PRICE, PAYEE, []]);
    expect(await list("payouts", "list", "--status", "paid")).toMatchObject([
      {
        ...{ payee: PAYEE, amount: `${PRICE}`, asset: "USDC", rail: "evm" },
        reference: `${NETWORK_V2}:${sent?.hash}`,
      },
    ]);
    expect(await token.balanceOf(PAYEE)).toBe(PRICE);
    expect(await token.balanceOf(TREASURY)).toBe(DEPOSIT - PRICE);
    expect(await money()).toMatchObject({
      ...{ available: `${DEPOSIT - PRICE}`, held: "0", paid: `${PRICE}` },
    });
    expect(await shown()).toEqual(before);
    await holdfast.run("audit");
  },
  WALK_MS,
);
