import { createRemoteJWKSet, customFetch, type JWTVerifyOptions, jwtVerify } from "jose";
import { VOUCHER_TYPE, type VoucherClaims } from "../core/x402/voucher.ts";

/** What a page asks to be paid before it delivers. */
export type Terms = {
  /** A digit string, in the asset's smallest unit. */
  readonly amount: string;
  readonly asset: string;
  readonly payee: string;
};

/** Whose vouchers the page accepts. */
export type Trusted = {
  /** The instance's base URL, as its vouchers name it. */
  readonly issuer: string;
  readonly jwksUrl: string;
};

export type PaidPage = {
  /** The vouchers that it accepted, in order. */
  vouchers(): readonly VoucherClaims[];
  /** @param url the page's own: a voucher for another one buys nothing here */
  answer(request: Request, url: string): Promise<Response>;
};

/** A page that answers 402 with its terms, unless the request has a sandbox voucher for exactly these. It accepts each voucher once. */
export function createPaidPage({ issuer, jwksUrl }: Trusted, terms: Terms, deliver: () => object): PaidPage {
  const keys = createRemoteJWKSet(new URL(jwksUrl), {
    [customFetch]: (url, options) => fetch(url, { ...options, proxy: false }),
  });
  const rules: JWTVerifyOptions = {
    issuer,
    typ: VOUCHER_TYPE,
    algorithms: ["EdDSA"],
    requiredClaims: ["exp", "jti"],
  };
  const accepted = new Map<string, VoucherClaims>();
  async function readVoucher(request: Request): Promise<VoucherClaims | null> {
    try {
      const { payload } = JSON.parse(atob(request.headers.get("X-PAYMENT") ?? ""));
      return (await jwtVerify<VoucherClaims>(payload.voucher, keys, rules)).payload;
    } catch {
      return null;
    }
  }
  return {
    vouchers: () => [...accepted.values()],
    async answer(request, url) {
      const voucher = await readVoucher(request);
      const { amount, asset, payee } = terms;
      const fits =
        voucher?.mode === "sandbox" &&
        voucher.amount === amount &&
        voucher.asset === asset &&
        voucher.payee === payee &&
        voucher.url === url;
      if (!fits || accepted.has(voucher.jti)) return Response.json({ amount, asset, payee }, { status: 402 });
      accepted.set(voucher.jti, voucher);
      return Response.json(deliver());
    },
  };
}
