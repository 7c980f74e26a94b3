import { parseAmount } from "../money.ts";
import { chainOfCaip2, chainOfNetwork } from "./chains.ts";
import { isJsonObject, readJsonHeader } from "./json-header.ts";
import type { ExactPayment } from "./quote.ts";

/** A statement of the seller's facilitator that it has settled the payment on the chain. */
export type SettlementReceipt = {
  /** The transaction's hash. */
  readonly transaction: string;
};

/** Sellers of both protocol versions send either header. The newer name is read first. */
const HEADERS = ["payment-response", "x-payment-response"] as const;
const TRANSACTION = /^0x[0-9a-fA-F]{64}$/;

/**
 * The settlement receipt of a paid answer, or why there is none for this payment: the header is missing or cannot be read, it
 * does not say success, or it names another network, payer or amount.
 *
 * @param headers by lower-case names
 * @param payer the address of the wallet that signed
 */
export function readReceipt(
  headers: Readonly<Record<string, string>>,
  pays: ExactPayment,
  amount: bigint,
  payer: string,
): SettlementReceipt | { readonly problem: string } {
  const text = HEADERS.map((name) => headers[name]).find((header) => header);
  if (!text) return { problem: "there is no settlement receipt" };
  const read = readJsonHeader(text);
  if ("problem" in read) return { problem: `the settlement receipt ${read.problem}` };
  if (!isJsonObject(read.value)) return { problem: "the settlement receipt is not a JSON object" };
  const receipt = read.value;
  if (receipt.success !== true) return { problem: "the settlement receipt does not say success" };
  const { network, transaction } = receipt;
  if (typeof network !== "string" || !isChain(network, pays.chainId)) {
    return { problem: "the settlement receipt is of another network" };
  }
  if (receipt.payer !== undefined && !isAddress(receipt.payer, payer)) {
    return { problem: "the settlement receipt is of another payer" };
  }
  if (receipt.amount !== undefined && parseAmount(receipt.amount) !== amount) {
    return { problem: "the settlement receipt is of another amount" };
  }
  if (typeof transaction !== "string" || !TRANSACTION.test(transaction)) {
    return { problem: "the settlement receipt names no transaction" };
  }
  return { transaction };
}

const isChain = (network: string, chainId: number): boolean =>
  chainOfCaip2(network) === chainId || chainOfNetwork(1, network) === chainId;

const isAddress = (value: unknown, address: string): boolean =>
  typeof value === "string" && value.toLowerCase() === address.toLowerCase();
