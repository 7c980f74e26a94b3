import { keccak_256 } from "@noble/hashes/sha3.js";
import { chainOfCaip2 } from "./x402/chains.ts";

/** Addresses of EVM chains as payees write them, and the call that pays them a token. */

const ADDRESS = /^(?:(eip155:[0-9]+):)?0x([0-9a-fA-F]{40})$/;
export const ZERO_ADDRESS = `0x${"0".repeat(40)}`;

/** What payouts of an asset are sent with: a token on a chain, and the wallet that holds it. */
export type TokenOfWallet = { readonly chainId: number; readonly token: string; readonly wallet: string };

/** Why a payee cannot be paid on a chain. */
export type NoAddress = "not_an_address" | "other_chain" | "wrong_checksum" | "not_payable";

/** A payee's address in lower case, or why it has none that the token can be sent to. */
export function payeeAddress(
  payee: string,
  { chainId, token, wallet }: TokenOfWallet,
): { readonly address: string } | { readonly code: NoAddress } {
  const [, chain, digits] = ADDRESS.exec(payee) ?? [];
  if (digits === undefined) return { code: "not_an_address" };
  if (chain !== undefined && chainOfCaip2(chain) !== chainId) return { code: "other_chain" };
  if (!isWellWritten(digits)) return { code: "wrong_checksum" };
  const address = `0x${digits.toLowerCase()}`;
  const isPayable =
    address !== ZERO_ADDRESS && address !== token.toLowerCase() && address !== wallet.toLowerCase();
  return isPayable ? { address } : { code: "not_payable" };
}

/** An address in lower case; null for other text, and where its capitals are not its checksum. */
export function parseEvmAddress(text: string): string | null {
  const [, chain, digits] = ADDRESS.exec(text) ?? [];
  const isAddress = chain === undefined && digits !== undefined && isWellWritten(digits);
  return isAddress ? `0x${digits.toLowerCase()}` : null;
}

/** Capitals are a checksum of the address (ERC-55). An address in one case has none. */
function isWellWritten(digits: string): boolean {
  const lower = digits.toLowerCase();
  if (digits === lower || digits === digits.toUpperCase()) return true;
  const hash = keccak_256(new TextEncoder().encode(lower)).toHex();
  return [...lower].every(
    (digit, at) => digits[at] === (Number.parseInt(hash[at] ?? "", 16) >= 8 ? digit.toUpperCase() : digit),
  );
}

const WORD_DIGITS = 64;
/** `transfer(address,uint256)` of ERC-20. */
const TRANSFER = "0xa9059cbb";

/** The data of the call by which a token pays an address. */
export const transferData = (address: string, amount: bigint): string =>
  `${TRANSFER}${address.slice(2).toLowerCase().padStart(WORD_DIGITS, "0")}${amount.toString(16).padStart(WORD_DIGITS, "0")}`;

/** The amount that such data pays. */
export const amountIn = (data: string): bigint => BigInt(`0x${data.slice(-WORD_DIGITS)}`);

/** The address that such data pays, in lower case. */
export const addresseeIn = (data: string): string =>
  `0x${data.slice(TRANSFER.length, TRANSFER.length + WORD_DIGITS).slice(-40)}`;
