/** A thousand payouts in one run, on a real chain, agree to the unit. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { chainWithBlocksByHand } from "../blocks-by-hand.ts";
import type { Chain } from "../chain.ts";
import { type Node, startNode } from "../node.ts";
import { deployFaultyToken, type FaultyToken } from "./faulty-token.ts";
import { openTreasuryStage, TREASURY, type TreasuryStage } from "./treasury-stage.ts";

const PAYEES = 1_000;
const ALL_MS = 120_000;
/** From one unit to more than a million, none twice. */
const amountOf = (payee: number): bigint => BigInt(payee * payee + 1);

let chain: Chain;
let token: FaultyToken;
let node: Node;
let treasury: TreasuryStage;
chainWithBlocksByHand(async (started) => {
  chain = started;
  token = await deployFaultyToken(chain);
});
beforeAll(async () => {
  node = await startNode(chain);
});
afterAll(async () => {
  await treasury?.close();
  await node?.close();
});

test(
  "a thousand payees get what each is owed, once",
  async () => {
    const payees = Array.from({ length: PAYEES }, (_, index) => index);
    const all = payees.reduce((sum, payee) => sum + amountOf(payee), 0n);
    treasury = await openTreasuryStage(chain, token, node, `${all}`);
    for (const payee of payees)
      await treasury.release(`0xe${payee.toString(16).padStart(39, "0")}`, amountOf(payee));
    await token.mint(TREASURY, all);
    await treasury.payUntil();
    await treasury.expectAllPaid();
    expect(await token.sentBy(TREASURY)).toHaveLength(PAYEES);
  },
  ALL_MS,
);
