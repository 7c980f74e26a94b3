import { type Refusal, refuse } from "../errors.ts";
import type { Mode } from "../roles.ts";
import { MINUTE_MS } from "../time.ts";
import { type AssetRule, findAsset, isEvmAddress } from "./assets.ts";
import { caip2Of, chainOfNetwork, isTestNetwork } from "./chains.ts";
import type { Challenge, ChallengeEntry } from "./challenge.ts";
import type { JsonObject } from "./json-header.ts";

/** How a purchase is paid: by a voucher, which the ledger settles, or by a transfer on a chain, which cannot be called back. */
export type Pays = { readonly kind: "voucher" } | ExactPayment;

/** How long an authorization may be valid at most (docs/x402, "exact"). */
export const AUTHORIZATION_MS_MAX = MINUTE_MS;

/** Whether an authorization that is valid until then (epoch milliseconds) may be signed now. False for NaN too. */
export const maySignUntil = (validBefore: number, now: number): boolean =>
  validBefore > now && validBefore <= now + AUTHORIZATION_MS_MAX;

export type ExactPayment = {
  readonly kind: "exact";
  readonly protocol: 1 | 2;
  /** The network as the entry names it: protocol version 1 has names of its own. */
  readonly network: string;
  readonly chainId: number;
  /** The token's address, in lower case. */
  readonly contract: string;
  /** An EVM address, as the seller wrote it. */
  readonly payTo: string;
  readonly tokenName: string;
  readonly tokenVersion: string;
  /** The chosen entry as given: version 2 sends it back as `accepted`. */
  readonly entry: JsonObject;
  /** The `resource` of protocol version 2, which is sent back too; null in version 1. */
  readonly resource: JsonObject | null;
};

/** What a purchase costs, to whom, and how it is paid. */
export type Quote = {
  /** Above zero, at most the caller's ceiling. */
  readonly amount: bigint;
  /** The asset in the ledger. */
  readonly asset: string;
  readonly payee: string;
  /** How long the seller allows for the payment; null where it does not say. */
  readonly timeoutSeconds: number | null;
  readonly pays: Pays;
};

/** What this instance can pay besides vouchers. */
export type Payable = {
  /** Whether the mode has a wallet. */
  readonly hasWallet: boolean;
  /** The tokens that it pays with; the first rule of a token counts. */
  readonly assets: readonly AssetRule[];
};

export type Buyer = {
  readonly mode: Mode;
  /** The caller's ceiling, in the smallest unit of `asset`. */
  readonly maxAmount: bigint;
  /**
   * The ledger's asset that the caller pays in. `maxAmount` is in its units, so a price in another asset is
   * refused.
   */
  readonly asset: string;
  readonly payable: Payable;
};

/**
 * The first entry that this mode can pay and that is within the ceiling. Where none can be paid, the refusal is
 * `x402_scheme_unsupported`; where all that can be paid are above the ceiling, it is `x402_quote_above_max`.
 */
export function chooseEntry(challenge: Challenge, buyer: Buyer): Quote | Refusal {
  const offers =
    challenge.kind === "simple"
      ? [voucherQuote(challenge, buyer)]
      : challenge.entries.map((entry) => exactQuote(entry, challenge, buyer));
  const quotes = offers.filter((offer) => typeof offer !== "string");
  const [first] = quotes;
  if (!first) {
    const reasons = offers.filter((offer) => typeof offer === "string").join("; ");
    return refuse(
      "x402_scheme_unsupported",
      `Nothing that the seller accepts can be paid in ${buyer.mode}: ${reasons}.`,
    );
  }
  const { maxAmount } = buyer;
  return (
    quotes.find(({ amount }) => amount <= maxAmount) ??
    refuse("x402_quote_above_max", `The seller asks ${first.amount} ${first.asset}, above ${maxAmount}.`)
  );
}

/** A simple challenge's quote, or why it cannot be paid. */
const voucherQuote = (
  { amount, asset, payee }: Challenge & { readonly kind: "simple" },
  buyer: Buyer,
): Quote | string =>
  problemWithAsset(asset, buyer) ?? {
    amount,
    asset,
    payee,
    timeoutSeconds: null,
    pays: { kind: "voucher" },
  };

/** The ceiling is in the caller's asset. As many units of another asset may be worth far more. */
const problemWithAsset = (asset: string, buyer: Buyer): string | null =>
  asset === buyer.asset ? null : `the price is in ${asset}, and max_amount in ${buyer.asset}`;

/** An entry's quote, or why it cannot be paid. */
function exactQuote(
  entry: ChallengeEntry,
  { protocol, resource }: Challenge & { readonly kind: "protocol" },
  buyer: Buyer,
): Quote | string {
  const { mode, payable } = buyer;
  const { path, scheme, network, amount, asset, payTo, timeoutSeconds } = entry;
  if (scheme !== "exact") return `${path}: the scheme ${scheme} is not known`;
  const chainId = chainOfNetwork(protocol, network);
  if (chainId === null) return `${path}: the network ${network} is not known`;
  // This comes before all other checks of a chain: the sandbox must never spend real money.
  if (isTestNetwork(chainId) !== (mode === "sandbox")) {
    return `${path}: ${network} is ${mode === "sandbox" ? "not a" : "a"} test network`;
  }
  const rule = findAsset(payable.assets, chainId, asset);
  if (!rule) return `${path}: the token ${asset} of ${caip2Of(chainId)} is not one that Holdfast pays with`;
  if (!payable.hasWallet) return `${path}: there is no wallet for ${mode}`;
  const problem = problemWithAsset(rule.asset, buyer) ?? problemWithTerms(entry, rule);
  if (problem !== null) return `${path}: ${problem}`;
  const { contract, tokenName, tokenVersion } = rule;
  return {
    amount,
    asset: rule.asset,
    payee: payTo,
    timeoutSeconds,
    pays: {
      kind: "exact",
      ...{ protocol, network, chainId, contract, payTo, tokenName, tokenVersion },
      ...{ entry: entry.given, resource },
    },
  };
}

/**
 * The first of the seller's terms that an EIP-3009 authorization cannot meet, or null. One of them is the
 * token's domain: the token rejects a signature for any other.
 */
function problemWithTerms({ payTo, extra }: ChallengeEntry, rule: AssetRule): string | null {
  const { assetTransferMethod = "eip3009", paymentFlow = "authorization" } = extra;
  const { name = rule.tokenName, version = rule.tokenVersion } = extra;
  if (!isEvmAddress(payTo)) return "payTo is not an address of the network";
  if (assetTransferMethod !== "eip3009") return "the transfer is not one by EIP-3009";
  if (paymentFlow !== "authorization" && paymentFlow !== "upfront") return "the payment flow is not known";
  return name === rule.tokenName && version === rule.tokenVersion
    ? null
    : `the token's EIP-712 domain is ${rule.tokenName} ${rule.tokenVersion}, and the seller says another`;
}
