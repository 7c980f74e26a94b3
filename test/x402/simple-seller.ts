import { createRemoteJWKSet, type JWTPayload, jwtVerify } from "jose";
import { type Listener, listen } from "./listener.ts";

/** The price of a seller without a chain, and the instance whose vouchers it takes. */
export type SimpleSellerOptions = {
  /** The instance's base URL, as its vouchers name it. */
  readonly holdfast: string;
  /** The URL of its keys, if it is not below the base URL: a test server's address differs from its name. */
  readonly jwksUrl?: string;
  readonly mode: "sandbox" | "live";
  readonly amount?: string;
  readonly asset?: string;
  readonly payee?: string;
  readonly goods?: unknown;
  /** Whether the challenge stands under `x402`. */
  readonly nested?: boolean;
};

export type SimpleSeller = {
  readonly url: string;
  /** The claims of the vouchers that were taken, in order. */
  readonly vouchers: readonly JWTPayload[];
  close(): Promise<void>;
};

const VOUCHER_PRICE = "250000";
const RULES = {
  typ: "holdfast-voucher+jwt",
  algorithms: ["EdDSA"],
  requiredClaims: ["exp", "iat", "jti", "receipt"],
};

/** A seller that asks `{ amount, asset, payee }` and sells at any path for a voucher that holds, each once. */
export async function startSimpleSeller(options: SimpleSellerOptions): Promise<SimpleSeller> {
  const app = simpleApp(options);
  const { url, close }: Listener = await listen(app.fetch);
  return { url: `${url}/goods`, vouchers: app.vouchers, close };
}

export function simpleApp(options: SimpleSellerOptions) {
  const { holdfast, mode, amount = VOUCHER_PRICE, asset = "USDC", payee = "acme" } = options;
  const { jwksUrl = `${holdfast}/.well-known/jwks.json`, goods = { ok: true, answer: 42 } } = options;
  const keys = createRemoteJWKSet(new URL(jwksUrl));
  const vouchers: JWTPayload[] = [];
  const asked = { amount, asset, payee };
  return {
    vouchers,
    async fetch(request: Request): Promise<Response> {
      const terms = { ...asked, mode, url: request.url };
      const voucher = await readVoucher(request.headers.get("x-payment"), keys, holdfast);
      const fits =
        voucher !== null &&
        Object.entries(terms).every(([claim, value]) => voucher[claim] === value) &&
        !vouchers.some(({ jti }) => jti === voucher.jti);
      if (!fits) return Response.json(options.nested ? { x402: asked } : asked, { status: 402 });
      vouchers.push(voucher);
      return Response.json(goods);
    },
  };
}

async function readVoucher(
  header: string | null,
  keys: ReturnType<typeof createRemoteJWKSet>,
  issuer: string,
): Promise<JWTPayload | null> {
  try {
    const { x402Version, scheme, network, payload } = JSON.parse(atob(header ?? ""));
    if (x402Version !== 1 || scheme !== "warrant" || !/^holdfast:ins_/.test(network)) return null;
    return (await jwtVerify(payload.voucher, keys, { ...RULES, issuer })).payload;
  } catch {
    return null;
  }
}
