import { HTTPFacilitatorClient, x402ResourceServer } from "@x402/core/server";
import { ExactEvmScheme } from "@x402/evm/exact/server";
import { paymentMiddleware } from "@x402/hono";
import { Hono, type MiddlewareHandler } from "hono";
import type { Address } from "viem";
import { paymentMiddleware as paymentMiddlewareV1 } from "x402-hono";
import { type Chain, NETWORK_V1, NETWORK_V2 } from "./chain.ts";
import type { Facilitator, FacilitatorFault } from "./facilitator.ts";
import { listen } from "./listener.ts";
import { TOKEN_NAME, TOKEN_VERSION } from "./token.ts";

export type Protocol = 1 | 2;

/** What a seller sells, to whom and how. */
export type SellerOptions = {
  readonly version: Protocol;
  readonly chain: Chain;
  readonly facilitator: Facilitator;
  readonly payTo: Address;
  /** In the token's smallest unit. */
  readonly price?: string;
  readonly maxTimeoutSeconds?: number;
  /** What is sold: the body of the paid answer. */
  readonly goods?: unknown;
};

/** A seller that runs. */
export type Seller = {
  /** What is sold, for the price. */
  readonly url: string;
  /** The payment headers that came, in order, as they came. */
  readonly payments: readonly string[];
  close(): Promise<void>;
};

export const PRICE = "10000";
export const GOODS = { ok: true, answer: 42 };
const PATH = "/goods";

/** A seller with the official middleware of its version, which sells at `/goods`. */
export async function startOfficialSeller(options: SellerOptions): Promise<Seller> {
  const payments: string[] = [];
  const app = officialApp(options);
  const listener = await listen((request) => {
    const header = paymentOf(request);
    if (header !== null) payments.push(header);
    return app.fetch(request);
  });
  return { url: `${listener.url}${PATH}`, payments, close: listener.close };
}

/** The payment that a request carries, of either version, or null. */
export const paymentOf = ({ headers }: Request): string | null =>
  headers.get("payment-signature") ?? headers.get("x-payment");

/** Sells at any path, through a facilitator that has the fault. */
export function officialApp(options: SellerOptions, fault?: FacilitatorFault, sell = goodsOf(options)): Hono {
  const middleware = options.version === 1 ? middlewareV1(options, fault) : middlewareV2(options, fault);
  return new Hono().use(middleware).get("*", sell).post("*", sell);
}

const goodsOf =
  ({ goods = GOODS }: SellerOptions) =>
  (): Response =>
    Response.json(goods);

function middlewareV1(options: SellerOptions, fault?: FacilitatorFault): MiddlewareHandler {
  const { chain, facilitator, payTo, price = PRICE, maxTimeoutSeconds = 60 } = options;
  return paymentMiddlewareV1(
    payTo,
    {
      "/*": {
        price: {
          amount: price,
          asset: {
            address: chain.token,
            decimals: 6,
            eip712: { name: TOKEN_NAME, version: TOKEN_VERSION },
          },
        },
        network: NETWORK_V1,
        config: { description: "Goods", maxTimeoutSeconds },
      },
    },
    { url: facilitator.urlOf(fault) as `http://${string}` },
  );
}

/** How long version 2's middleware waits for a facilitator, and for one that hangs; version 1's waits for ever. */
const FACILITATOR_TIMEOUT_MS = 30_000;
const HANGING_TIMEOUT_MS = 1_000;

function middlewareV2(options: SellerOptions, fault?: FacilitatorFault): MiddlewareHandler {
  const { chain, facilitator, payTo, price = PRICE, maxTimeoutSeconds = 60 } = options;
  const client = new HTTPFacilitatorClient({
    url: facilitator.urlOf(fault),
    timeoutMs: fault?.endsWith("hangs") ? HANGING_TIMEOUT_MS : FACILITATOR_TIMEOUT_MS,
  });
  const server = new x402ResourceServer(client).register(NETWORK_V2, new ExactEvmScheme());
  return paymentMiddleware(
    {
      "/*": {
        accepts: {
          scheme: "exact",
          network: NETWORK_V2,
          payTo,
          price: {
            amount: price,
            asset: chain.token,
            extra: { name: TOKEN_NAME, version: TOKEN_VERSION },
          },
          maxTimeoutSeconds,
        },
        description: "Goods",
      },
    },
    server,
  );
}
