import { expect, test } from "bun:test";
import type { TreasuryToken } from "../../src/core/treasury.ts";
import { chainOfMode } from "../../src/core/x402/chains.ts";

const BASE = 8_453;
const BASE_SEPOLIA = 84_532;

test("the token of a mode is on a chain of that mode: the types have no other, and no number is a chain", () => {
  const rest = { token: `0x${"ab".repeat(20)}`, asset: "USDC", limits: { payoutMax: 0n, dayMax: 0n } };
  const [real, trial] = [chainOfMode("live", BASE)!, chainOfMode("sandbox", BASE_SEPOLIA)!];
  const live: TreasuryToken = { mode: "live", chainId: real, ...rest };
  const sandbox: TreasuryToken = { mode: "sandbox", chainId: trial, ...rest };
  // @ts-expect-error a sandbox with real money
  const sandboxOfMoney: TreasuryToken = { mode: "sandbox", chainId: real, ...rest };
  // @ts-expect-error real money on a test network
  const liveOfTrial: TreasuryToken = { mode: "live", chainId: trial, ...rest };
  // @ts-expect-error a number that nobody has asked about
  const unasked: TreasuryToken = { mode: "sandbox", chainId: BASE, ...rest };
  for (const token of [live, sandbox, sandboxOfMoney, liveOfTrial, unasked]) expect(token).toBeObject();
  expect([chainOfMode("sandbox", BASE), chainOfMode("live", BASE_SEPOLIA)]).toEqual([null, null]);
});
