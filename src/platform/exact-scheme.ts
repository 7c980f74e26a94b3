import { encodePaymentSignatureHeader } from "@x402/core/http";
import type { PaymentPayload, PaymentRequirements } from "@x402/core/types";
import { ExactEvmScheme } from "@x402/evm/exact/client";
import { ExactEvmSchemeV1 } from "@x402/evm/exact/v1/client";
import type { ExactPayment } from "../core/x402/quote.ts";

/** An address, and what signs the typed data (EIP-712) that the scheme asks for. */
type Signer = ConstructorParameters<typeof ExactEvmScheme>[0];

/** The terms of a payment. The wallet has checked them; the seller's entry is not used. */
export type Terms = Pick<
  ExactPayment,
  "protocol" | "network" | "contract" | "payTo" | "tokenName" | "tokenVersion"
> & {
  /** In the token's smallest unit. */
  readonly amount: bigint;
  readonly timeoutSeconds: number;
};

/** The `payload` of a payment, signed by the signer. Its nonce and times are the scheme's own. */
export type ExactScheme = (terms: Terms, signer: Signer) => Promise<unknown>;

/** `exact` on EVM as x402's own packages make it, for each protocol version. Throws on a network that they do not know. */
export const officialScheme: ExactScheme = async (terms, signer) => {
  const { protocol, network, contract, payTo, tokenName, tokenVersion, amount, timeoutSeconds } = terms;
  const requirements = {
    scheme: "exact",
    network: network as PaymentRequirements["network"],
    asset: contract,
    payTo,
    maxTimeoutSeconds: timeoutSeconds,
    extra: { name: tokenName, version: tokenVersion },
    // Each version has its own name for the amount.
    ...{ amount: `${amount}`, maxAmountRequired: `${amount}` },
  };
  const scheme = protocol === 1 ? new ExactEvmSchemeV1(signer) : new ExactEvmScheme(signer);
  return (await scheme.createPaymentPayload(protocol, requirements)).payload;
};

/** A payment as its header carries it. Both protocol versions write it in the same way. */
export const encodePayment = (payment: object): string =>
  encodePaymentSignatureHeader(payment as PaymentPayload);
