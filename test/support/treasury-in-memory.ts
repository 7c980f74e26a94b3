import { sha256 } from "../../src/core/canonical.ts";
import type { TransferInBlock } from "../../src/core/chain-transfer.ts";
import type { Treasury } from "../../src/core/treasury.ts";
import { chainOfMode } from "../../src/core/x402/chains.ts";
import type { TreasuryChain } from "../../src/platform/treasury-chain.ts";
import { addDepositSender } from "../../src/services/admin/deposit-senders.ts";
import { SPAN_FIRST, stepWatch, type Watching } from "../../src/services/chain/watch.ts";
import type { Context } from "../../src/services/context.ts";
import { must } from "./stage.ts";

/** A treasury whose chain is a list of transfers, for ledgers that need some; test/jobs/deposits.test.ts has a node. */

const TREASURY_ADDRESS = "0xd8dA6BF26964aF9D7eEd9e03E53415D37aA96045";
const SENDER = `0x${"ac".repeat(20)}`;

const hashOf = (text: string): string => `0x${sha256(text)}`;

const treasuryOf = (mode: "live" | "sandbox"): Treasury => {
  const rest = {
    ...{ token: `0x${"70".repeat(20)}`, asset: "USDC", address: TREASURY_ADDRESS },
    limits: { payoutMax: 0n, dayMax: 0n },
  };
  return mode === "live"
    ? { mode, chainId: chainOfMode(mode, 8_453)!, ...rest }
    : { mode, chainId: chainOfMode(mode, 84_532)!, ...rest };
};

/** Credits one of a registered sender, leaves one unassigned, one found and one sent; and one credited that is gone from the chain. */
export async function transferredOnChain(ctx: Context, organisationId: string): Promise<void> {
  const treasury = treasuryOf("live");
  must(
    await addDepositSender(ctx, {
      organisation_id: organisationId,
      mode: "live",
      address: SENDER,
      note: "Acme",
    }),
  );
  const transfers: TransferInBlock[] = [];
  const chain = { newest: 1, fork: "" };
  const blockOf = (number: number) => ({
    number,
    hash: hashOf(`block ${number}${number > 2 ? chain.fork : ""}`),
  });
  const moved = (
    amount: bigint,
    counterparty = SENDER,
    direction: TransferInBlock["direction"] = "received",
  ) => {
    chain.newest += 1;
    const block = blockOf(chain.newest);
    const hash = hashOf(`transaction ${chain.newest}`);
    transfers.push({ hash, counterparty, amount, direction, block: block.number, blockHash: block.hash });
  };
  let onJudged: Watching["onJudged"] = () => {};
  const watching: Watching = {
    ...{ treasury, span: SPAN_FIRST, onJudged: (...judged) => onJudged(...judged) },
    chain: {
      head: async () => ({ newestTime: 0, confirmed: blockOf(chain.newest) }),
      block: async (number) => ({ block: blockOf(number) }),
      transfers: async ({ after, until }) => ({
        transfers: transfers.filter(({ block }) => block > after && block <= until),
      }),
      decimals: async () => ({ decimals: 6 }),
      balanceAt: async ({ number }) => ({
        balance: transfers
          .filter(({ block }) => block <= number)
          .reduce((sum, { amount, direction }) => sum + (direction === "sent" ? -amount : amount), 1_000n),
      }),
    } satisfies TreasuryChain,
  };
  const step = () => stepWatch(ctx, watching);
  await step();
  moved(100n);
  moved(50n);
  await step();
  // A reorganisation takes the second one out.
  chain.fork = " of another fork";
  transfers.pop();
  moved(30n, `0x${"55".repeat(20)}`);
  moved(20n, `0x${"66".repeat(20)}`, "sent");
  await step();
  // The server ends before it has judged the last one.
  moved(10n);
  moved(10n);
  onJudged = () => {
    throw new Error("the server ends");
  };
  await step().catch(() => {});
}
