import { readFileSync } from "node:fs";
import { basename, join } from "node:path";
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

/** The creation code of a contract in a file of Solidity, compiled by npm's solc without any network. Throws the compiler's errors. */
export function compileContract(file: string, contract: string): Hex {
  const source = basename(file);
  const output = JSON.parse(
    solc.compile(
      JSON.stringify({
        language: "Solidity",
        sources: { [source]: { content: readFileSync(file, "utf8") } },
        settings: { outputSelection: { "*": { "*": ["evm.bytecode.object"] } } },
      }),
    ),
  );
  if (output.errors) throw new Error(JSON.stringify(output.errors));
  return `0x${output.contracts[source][contract].evm.bytecode.object}`;
}

export const compileToken = (): Hex => compileContract(join(import.meta.dir, "test-usdc.sol"), "TestUsdc");
