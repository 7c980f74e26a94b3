/** The sandbox takes test networks only, and live takes none, whichever side tries it. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { install, PROGRAM } from "../../support/executable.ts";
import { type Chain, startChain } from "../chain.ts";
import { type Node, startNode } from "../node.ts";
import { deployFaultyToken, type FaultyToken } from "./faulty-token.ts";
import { CONFIRMATIONS, openTreasuryStage, TREASURY, type TreasuryStage } from "./treasury-stage.ts";

const KEY = `0x${"42".repeat(32)}`;
const TOKEN = `0x${"0a".repeat(20)}`;
const NETWORKS = { test: "eip155:84532", real: "eip155:8453", unknown: "eip155:99999999" };
const RPC = Object.values(NETWORKS)
  .map((network) => `${network}=http://127.0.0.1:9`)
  .join(",");

describe("a server does not start, and says why, where", () => {
  test.each([
    ["SANDBOX", NETWORKS.real, `${NETWORKS.real} is not known as one`],
    ["SANDBOX", NETWORKS.unknown, `${NETWORKS.unknown} is not known as one`],
    ["LIVE", NETWORKS.test, `${NETWORKS.test} is a test network`],
  ])("%s is on %s", async (mode, network, why) => {
    const holdfast = install(
      {
        ...{ PORT: "0", EVM_RPC: RPC, [`TREASURY_${mode}`]: `${network}/${TOKEN}=USDC:1:1` },
        [`TREASURY_${mode}_KEY`]: KEY,
      },
      null,
      PROGRAM,
    );
    try {
      const said = await holdfast.serve().then(
        () => "it started",
        () => holdfast.logged(),
      );
      expect(said).toContain(`HOLDFAST_TREASURY_${mode}`);
      expect(said).toContain(why);
      expect(said).not.toContain(KEY.slice(2));
    } finally {
      await holdfast.remove();
    }
  });
});

describe("the ledger of a sandbox", () => {
  const PAYEE = `0x${"a1".repeat(20)}`;
  const TEST_MS = 60_000;
  let chain: Chain;
  let token: FaultyToken;
  let node: Node;
  let treasury: TreasuryStage;
  beforeAll(async () => {
    chain = await startChain();
    [token, node] = [await deployFaultyToken(chain), await startNode(chain)];
    await chain.mine(CONFIRMATIONS);
  }, TEST_MS);
  afterAll(async () => {
    await node?.close();
    await chain?.close();
  });
  beforeEach(async () => {
    treasury = await openTreasuryStage(chain, token, node, "1000");
    await treasury.watch();
    await treasury.owe(PAYEE, 100n);
  });
  afterEach(() => treasury.close());

  test("takes no other chain, and no other rail, from whoever writes into its file", async () => {
    await treasury.payUntil();
    await treasury.expectAllPaid();
    const { change } = treasury.ctx.ledger;
    for (const table of ["rail_states", "treasury_watches", "payout_transactions"])
      for (const chainId of [1, 8_453])
        expect(() => change(`UPDATE ${table} SET chain_id = ${chainId}`), table).toThrow();
    for (const table of ["payouts", "payout_transactions"])
      expect(() => change(`UPDATE ${table} SET rail = 'live_evm'`), table).toThrow();
    for (const table of ["rail_states", "treasury_watches"])
      expect(() => change(`UPDATE ${table} SET mode = 'live'`), table).toThrow();
  });

  test("sends nothing to, and takes nothing from, an endpoint of another chain", async () => {
    await token.pay(TREASURY, 50n);
    await chain.mine(CONFIRMATIONS);
    treasury.restart();
    const before = node.sent.length;
    node.react(({ method }) => (method === "eth_chainId" ? { result: "0x2105" } : "forward"));
    for (let round = 0; round < 3; round++) {
      await treasury.watch();
      await treasury.pay();
    }
    const found = (await treasury.deposits()).filter(({ transfer }) => transfer !== null);
    expect([node.sent.length, found]).toEqual([before, []]);
    expect(await treasury.reasons()).toEqual([expect.stringContaining("wrong_chain")]);
  });
});
