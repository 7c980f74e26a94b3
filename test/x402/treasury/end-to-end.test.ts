/**
 * Money in and out, as an operator and an agent see it: a deposit on the chain, a warrant of that money, its release, and the
 * payout on the chain. `EXECUTABLE` names the program; without it, the source is run.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { type Client, createClient, type Json } from "../../support/client.ts";
import { type Source, startSource } from "../../support/source.ts";
import { until } from "../../support/until.ts";
import { NETWORK_V2 } from "../chain.ts";
import {
  type InstalledTreasury,
  installTreasury,
  promiseOf,
  TREASURY,
  WALK_MS,
} from "./installed-treasury.ts";

const PAYEE = `0x${"ab".repeat(20)}`;
const DEPOSIT = 5_000_001n;
const PRICE = 1_234_567n;

let treasury: InstalledTreasury;
let source: Source;
let base: string;
let client: Client;

beforeAll(async () => {
  source = startSource();
  treasury = await installTreasury();
  await treasury.giveGas();
  ({ base } = treasury.server);
  client = createClient(fetch, base);
}, WALK_MS);
afterAll(async () => {
  await treasury?.close();
  source?.stop();
});

/** Without the anchor, which a checkpoint of the log changes. */
const receiptOf = async (id: string): Promise<Json> => {
  const reply = await fetch(`${base}/t/${id}`, { headers: { Accept: "application/json" } });
  return { ...((await reply.json()) as Json), anchor: null };
};
/** Looks again with each new block. */
const untilMined = (what: string, look: () => Promise<boolean>) =>
  until(
    what,
    async () => {
      await treasury.chain.mine(1);
      return look();
    },
    WALK_MS / 2,
  );

test(
  "what is sent to the treasury is credited, and what is released is paid, to the unit",
  async () => {
    const { token, holdfast, as, account, list, balance } = treasury;
    await holdfast.run("deposits", "senders", "add", ...account, "--address", token.customer);
    await untilMined("the treasury is watched", treasury.isWatched);
    const hash = await token.pay(TREASURY, DEPOSIT);
    await untilMined("the deposit is credited", async () => (await list("deposits", "list")).length > 0);
    expect(await list("deposits", "list")).toMatchObject([
      { amount: `${DEPOSIT}`, counts_for: `${DEPOSIT}`, reference: `${NETWORK_V2}:${hash}/0` },
    ]);
    expect(await balance()).toMatchObject({ available: `${DEPOSIT}`, held: "0", paid: "0" });

    const opened = await client.post("/v1/warrants", promiseOf(PAYEE, PRICE), { as });
    expect(opened.status).toBe(201);
    const path = `/v1/warrants/${opened.body.id}`;
    const checked = await client.post(`${path}/verify`, { source_url: source.gives({}) }, { as });
    expect(checked.body.state).toBe("released");
    const shown = async () => [
      (await client.get(`${path}/trace`, { as })).text,
      (await client.get(path, { as })).text,
      await receiptOf(opened.body.id),
    ];
    // A checkpoint changes the trace once, when it first covers it.
    await until("a checkpoint covers the trace", async () => {
      const { body } = await client.get(`${path}/trace`, { as });
      return body.data.every((entry: Json) => entry.chain_ref !== null);
    });
    const before = await shown();

    // What is owed is paid out at the start, and not only once a minute.
    await treasury.server.kill();
    ({ base } = await holdfast.serve());
    client = createClient(fetch, base);
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
    expect(await balance()).toMatchObject({
      ...{ available: `${DEPOSIT - PRICE}`, held: "0", paid: `${PRICE}` },
    });
    expect(await shown()).toEqual(before);
    await holdfast.run("audit");
  },
  WALK_MS,
);
