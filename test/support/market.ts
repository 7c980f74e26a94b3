import { UNSEEN_ANSWER } from "../../src/core/capsule.ts";
import { reachedEvidence, unreachedEvidence } from "../../src/core/clauses/evidence.ts";
import { findAsset, KNOWN_ASSETS } from "../../src/core/x402/assets.ts";
import type { Finding, PaymentHeader } from "../../src/core/x402/purchase.ts";
import { createEvmPayer } from "../../src/platform/evm-payer.ts";
import type { FirstAnswer, PaidAnswer, SellerRequest } from "../../src/platform/x402-request.ts";
import type { Context } from "../../src/services/context.ts";
import { NO_MONEY } from "./context.ts";

/** A seller and a chain that a test scripts, without a network. By default it sells for a voucher of 100 and delivers `{}`. */
export type Market = {
  readonly x402: Context["x402"];
  /** The answer to the first request. */
  first: FirstAnswer | { readonly problem: string };
  /** The answer to the paid request; called each time. */
  paid: () => PaidAnswer | Promise<PaidAnswer>;
  /** The answers of the chain, in order; the last one is repeated. */
  findings: readonly Finding[];
  /** The balance of every wallet; null where no chain says it. */
  balance: bigint | null;
  /** The time of the chain's newest block. */
  blockTime: number;
  readonly asked: SellerRequest[];
  readonly sent: PaymentHeader[];
  /** How often the chain was asked about an authorization. */
  chainAsked: number;
};

export const SELLER_URL = "http://seller.example/goods";
export const BASE_SEPOLIA = 84_532;
export const USDC = findAsset(KNOWN_ASSETS, BASE_SEPOLIA, "0x036CbD53842c5426634e7929541eC2318f3dCF7e")!;
export const PAY_TO = "0x00000000000000000000000000000000000000A1";

const WALLETS = {
  sandbox: createEvmPayer("sandbox", `0x${"11".repeat(32)}`),
  live: createEvmPayer("live", `0x${"22".repeat(32)}`),
};

export function openMarket(): Market {
  const asked: SellerRequest[] = [];
  const sent: PaymentHeader[] = [];
  const market: Market = {
    x402: {
      ...NO_MONEY,
      async ask(request) {
        asked.push(request);
        return market.first;
      },
      async pay(_request, payment) {
        sent.push(payment);
        return market.paid();
      },
      wallets: WALLETS,
      chains: {
        get ids() {
          return market.findings[0] === "none" ? [] : [BASE_SEPOLIA];
        },
        async find() {
          market.chainAsked++;
          return market.findings[Math.min(market.chainAsked, market.findings.length) - 1] ?? "none";
        },
        balanceOf: async () =>
          market.balance === null ? null : { balance: market.balance, blockTime: market.blockTime },
      },
      underWay: new Set(),
    },
    first: asksVoucher("100"),
    paid: () => delivers({}),
    findings: ["none"],
    balance: null,
    blockTime: 0,
    asked,
    sent,
    chainAsked: 0,
  };
  return market;
}

const answer = (status: number, body: unknown, headers: Record<string, string> = {}): FirstAnswer => ({
  url: SELLER_URL,
  status,
  headers,
  evidence: reachedEvidence({ status, body: bytesOf(body) }),
});

const bytesOf = (body: unknown): Uint8Array =>
  body instanceof Uint8Array ? body : Buffer.from(typeof body === "string" ? body : JSON.stringify(body));

/** A first answer without a challenge. */
export const givesAway = (body: unknown, status = 200): FirstAnswer => answer(status, body);

/** A 402 with any body. */
export const asks = (body: unknown, headers: Record<string, string> = {}): FirstAnswer =>
  answer(402, body, headers);

export const asksVoucher = (amount: string, asset = "USDC", payee = "acme"): FirstAnswer =>
  asks({ amount, asset, payee });

export const encoded = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString("base64");

/** A challenge for `exact` on Base Sepolia, in the form of a protocol version. */
export function asksExact(amount: string, version: 1 | 2 = 2, overrides: object = {}): FirstAnswer {
  const terms = {
    scheme: "exact",
    asset: USDC.contract,
    payTo: PAY_TO,
    maxTimeoutSeconds: 60,
    extra: { name: USDC.tokenName, version: USDC.tokenVersion },
    ...overrides,
  };
  return version === 1
    ? asks({ x402Version: 1, accepts: [{ network: "base-sepolia", maxAmountRequired: amount, ...terms }] })
    : asks(
        {},
        {
          "payment-required": encoded({
            x402Version: 2,
            resource: { url: SELLER_URL },
            accepts: [{ network: "eip155:84532", amount, ...terms }],
          }),
        },
      );
}

/** A challenge for `exact` on Base, whose money is real. */
export function asksExactOnBase(amount: string): FirstAnswer {
  const { contract, tokenName, tokenVersion } = KNOWN_ASSETS.find(({ chainId }) => chainId === 8_453)!;
  const extra = { name: tokenName, version: tokenVersion };
  return asksExact(amount, 2, { network: "eip155:8453", asset: contract, extra });
}

export const TRANSACTION = `0x${"ab".repeat(32)}`;
export const RECEIPT = {
  "payment-response": encoded({ success: true, transaction: TRANSACTION, network: "eip155:84532" }),
};

export const delivers = (body: unknown, headers: Record<string, string> = {}, status = 200): PaidAnswer => ({
  connected: true,
  headers,
  evidence: reachedEvidence({ status, body: bytesOf(body) }),
  answer: UNSEEN_ANSWER,
});

/** No answer came: the seller was never reached, or it did not answer. */
export const silence = (connected: boolean, headers: Record<string, string> = {}): PaidAnswer => ({
  connected,
  headers,
  evidence: unreachedEvidence(connected ? "source_timeout" : "source_unreachable"),
  answer: UNSEEN_ANSWER,
});
