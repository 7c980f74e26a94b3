import type { Hex } from "viem";
import { type Chain, facilitatorWallet } from "./chain.ts";

/** A place of the chain, from which on other blocks may take the place of those that follow. */
export type Fork = {
  /**
   * Puts so many other blocks in the place of all that came since. What was in the old ones is gone, and no node has it, unless it
   * is given.
   *
   * @param again signed transactions that the last one of the new blocks has too
   */
  reorganise(blocks: number, again?: readonly string[]): Promise<void>;
};

/** Each can be used once. */
export async function forkHere(chain: Chain): Promise<Fork> {
  const snapshot = await chain.ask("evm_snapshot", []);
  return {
    async reorganise(blocks, again = []) {
      await chain.ask("evm_revert", [snapshot]);
      // A transaction of its own, so that no block is one that was there before.
      const stranger = facilitatorWallet(chain);
      const before = (await chain.ask("eth_blockNumber", [])) as Hex;
      await stranger.sendTransaction({ to: stranger.account.address, data: snapshot as Hex, gas: 50_000n });
      const isMined = (await chain.ask("eth_blockNumber", [])) !== before;
      const left = isMined ? blocks - 1 : blocks;
      await chain.mine(again.length === 0 ? left : left - 1);
      for (const raw of again) await chain.ask("eth_sendRawTransaction", [raw]);
      if (again.length > 0) await chain.mine(1);
    },
  };
}
