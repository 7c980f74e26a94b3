import { getBlock, readContract } from "viem/actions";
import type { Holding } from "../core/solvency/judgement.ts";
import { SECOND_MS } from "../core/time.ts";
import type { Treasury } from "../core/treasury.ts";
import { type AskOptions, type Away, createChainAsker } from "./ask-chain.ts";
import { TOKEN_ABI } from "./evm-chain.ts";

/** What a treasury holds of its token at the newest confirmed block, as the operator's endpoint says. It never throws. */
export type HoldingReader = (
  treasury: Pick<Treasury, "chainId" | "token" | "address">,
) => Promise<Holding | Away>;

type Hex = `0x${string}`;

/** @param confirmations how many blocks there must be, the block itself and those after it, before it is confirmed */
export function createHoldingReader(
  endpoints: ReadonlyMap<number, string>,
  confirmations: number,
  options: AskOptions = { retries: 1 },
): HoldingReader {
  const ask = createChainAsker(endpoints, options);
  return ({ chainId, token, address }) =>
    ask(chainId, async (client) => {
      const newest = await getBlock(client, { blockTag: "latest" });
      const depth = BigInt(confirmations - 1);
      const blockNumber = newest.number > depth ? newest.number - depth : 0n;
      const block = await getBlock(client, { blockNumber });
      const balance = await readContract(client, {
        address: token as Hex,
        abi: TOKEN_ABI,
        functionName: "balanceOf",
        args: [address as Hex],
        blockNumber,
      });
      // A reorganisation meanwhile, or another node behind the same endpoint, would give the balance of another block.
      const { hash } = await getBlock(client, { blockNumber });
      if (hash !== block.hash) throw new Error("the block was replaced while it was read");
      return {
        ...{ balance, block: Number(blockNumber), blockHash: block.hash },
        blockTime: Number(block.timestamp) * SECOND_MS,
        newestTime: Number(newest.timestamp) * SECOND_MS,
      };
    });
}
