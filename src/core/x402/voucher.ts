import type { Mode } from "../roles.ts";
import { SECOND_MS } from "../time.ts";
import { writeJsonHeader } from "./json-header.ts";

/**
 * A voucher promises a seller the held amount. The settlement in the ledger pays it, and the public receipt
 * shows it (docs/x402, "Accepting Holdfast vouchers"). Times are epoch seconds, as in every JWT.
 */
export type VoucherClaims = {
  /** The base URL of the instance; its keys are at `<iss>/.well-known/jwks.json`. */
  readonly iss: string;
  /** The warrant's id: there is one voucher for a warrant. */
  readonly jti: string;
  readonly iat: number;
  readonly exp: number;
  readonly mode: Mode;
  readonly warrant: string;
  /** A digit string, in the asset's smallest unit. */
  readonly amount: string;
  readonly asset: string;
  readonly payee: string;
  /** What is bought. It has no fragment, since no request sends one. */
  readonly url: string;
  /** Where the public receipt is, once the warrant is settled. */
  readonly receipt: string;
};

/**
 * The `typ` in a voucher's header. With it nothing else that the key signs can pass for a voucher (RFC 8725,
 * 3.11).
 */
export const VOUCHER_TYPE = "holdfast-voucher+jwt";

/** What a voucher is made of; times in epoch milliseconds. */
export type Promised = {
  readonly mode: Mode;
  readonly warrantId: string;
  readonly amount: bigint;
  readonly asset: string;
  readonly payee: string;
  readonly url: string;
};

export function voucherClaims(
  promised: Promised,
  baseUrl: string,
  now: number,
  expiresAt: number,
): VoucherClaims {
  const { mode, warrantId, amount, asset, payee } = promised;
  const url = new URL(promised.url);
  url.hash = "";
  return {
    iss: baseUrl,
    jti: warrantId,
    iat: Math.floor(now / SECOND_MS),
    exp: Math.floor(expiresAt / SECOND_MS),
    mode,
    warrant: warrantId,
    amount: amount.toString(),
    asset,
    payee,
    url: url.href,
    receipt: `${baseUrl}/t/${warrantId}`,
  };
}

/** The `X-PAYMENT` header of a voucher, given as a compact JWS. */
export const voucherHeader = (instanceId: string, voucher: string): string =>
  writeJsonHeader({
    x402Version: 1,
    scheme: "warrant",
    network: `holdfast:${instanceId}`,
    payload: { voucher },
  });
