import { afterAll, afterEach, beforeAll, beforeEach } from "bun:test";
import { type Chain, startChain } from "./chain.ts";

/** On a busy machine the chain's process takes long to start. */
const START_MS = 60_000;

/**
 * A chain for the tests of a file, whose blocks are made by the tests alone, so that a transaction may wait. After each test it is
 * as it was before.
 *
 * @param prepare is called with the new chain, before the first test
 */
export function chainWithBlocksByHand(prepare: (chain: Chain) => Promise<void>): void {
  let chain: Chain | null = null;
  let snapshot: unknown;
  const started = (): Chain => {
    if (!chain) throw new Error("the chain has not started");
    return chain;
  };
  beforeAll(async () => {
    chain = await startChain();
    await prepare(chain);
    await chain.ask("evm_setAutomine", [false]);
  }, START_MS);
  afterAll(() => chain?.close());
  beforeEach(async () => {
    snapshot = await started().ask("evm_snapshot", []);
  });
  afterEach(async () => {
    await started().ask("evm_revert", [snapshot]);
  });
}
