import { readFileSync } from "node:fs";
import { join } from "node:path";
import solc from "solc";
import type { Hex } from "viem";

/** The calls of the token besides x402's own, for viem. */
export const TOKEN_ABI = [
  {
    type: "function",
    name: "mint",
    stateMutability: "nonpayable",
    inputs: [
      { name: "to", type: "address" },
      { name: "value", type: "uint256" },
    ],
    outputs: [],
  },
  {
    type: "function",
    name: "balanceOf",
    stateMutability: "view",
    inputs: [{ name: "holder", type: "address" }],
    outputs: [{ name: "", type: "uint256" }],
  },
  {
    type: "function",
    name: "authorizationState",
    stateMutability: "view",
    inputs: [
      { name: "authorizer", type: "address" },
      { name: "nonce", type: "bytes32" },
    ],
    outputs: [{ name: "", type: "bool" }],
  },
] as const;

/** The part of the EIP-712 domain that the token itself answers. */
export const TOKEN_NAME = "USDC";
export const TOKEN_VERSION = "2";

const SOURCE = "test-usdc.sol";

/** The token's creation code, compiled by npm's solc without any network. Throws the compiler's errors. */
export function compileToken(): Hex {
  const output = JSON.parse(
    solc.compile(
      JSON.stringify({
        language: "Solidity",
        sources: { [SOURCE]: { content: readFileSync(join(import.meta.dir, SOURCE), "utf8") } },
        settings: { outputSelection: { "*": { "*": ["evm.bytecode.object"] } } },
      }),
    ),
  );
  if (output.errors) throw new Error(JSON.stringify(output.errors));
  return `0x${output.contracts[SOURCE].TestUsdc.evm.bytecode.object}`;
}
