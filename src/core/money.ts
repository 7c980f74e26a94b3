import { HIDDEN_CHARACTERS } from "./hidden-characters.ts";

/** Amounts are whole numbers of an asset's smallest unit: bigint inside, digit strings outside (docs/concepts, "Amounts"). */

/** 2^63 - 1: the largest amount, balance and ceiling. */
export const AMOUNT_MAX = 9_223_372_036_854_775_807n;

/** Basis points of a whole: 10000 is all of it. */
export const BPS_WHOLE = 10_000;

/**
 * The form of an asset and of a payee (docs/concepts, "Bounds"). JavaScript writes a character beyond the BMP as two
 * units; the payee's pattern counts the pair as one of its 512 characters.
 */
export const ASSET_PATTERN = "^[A-Za-z0-9._:-]{1,32}$";
export const PAYEE_PATTERN = `^(?:[^${HIDDEN_CHARACTERS}\\ud800-\\udfff]|[\\ud800-\\udbff][\\udc00-\\udfff]){1,512}$`;

const DIGITS = /^[0-9]+$/;
/** How many digits of an asset's amounts come after the point. Those of other assets are not known here. */
export const DECIMALS: ReadonlyMap<string, number> = new Map([["USDC", 6]]);

/** The amount of a digit string, leading zeros allowed; null for any other text, and for an amount above AMOUNT_MAX. */
export function parseAmount(text: unknown): bigint | null {
  if (typeof text !== "string" || !DIGITS.test(text)) return null;
  const significant = text.replace(/^0+(?=.)/, "");
  if (significant.length > 19) return null;
  const amount = BigInt(significant);
  return amount <= AMOUNT_MAX ? amount : null;
}

/** What a share pays: floor(amount × bps / 10000) (docs/concepts, "Shares"). `bps` is an integer from 0 to 10000. */
export const shareOf = (amount: bigint, bps: number): bigint => (amount * BigInt(bps)) / BigInt(BPS_WHOLE);

/** An amount for people, such as `8.40 USDC`; an asset whose decimals are not known is shown in its smallest unit. */
export function displayAmount(amount: bigint, asset: string): string {
  const decimals = DECIMALS.get(asset);
  if (decimals === undefined) return `${amount} ${asset}`;
  const digits = amount.toString().padStart(decimals + 1, "0");
  const whole = digits.slice(0, -decimals).replace(/\B(?=(\d{3})+$)/g, " ");
  const fraction = digits.slice(-decimals).replace(/0+$/, "").padEnd(2, "0");
  return `${whole}.${fraction} ${asset}`;
}

/** The exact digits of an amount, as the API has them, for whoever looks closer. */
export const exactAmount = (amount: bigint, asset: string): string =>
  `${amount} in the smallest unit of ${asset}`;

/** What a person writes for an amount, such as `8.40` USDC or `1 200`; null for any other text, and for more digits than the asset has. */
export function parseUnits(text: string, asset: string): bigint | null {
  const decimals = decimalsOf(asset);
  const [, whole = "", fraction = ""] = /^(\d{1,3}(?:[ ,]\d{3})+|\d+)(?:\.(\d+))?$/.exec(text) ?? [];
  if (whole === "" || fraction.length > decimals) return null;
  return parseAmount(whole.replace(/[ ,]/g, "") + fraction.padEnd(decimals, "0"));
}

/** How many digits of an asset's amount come after the point where people read it. */
export const decimalsOf = (asset: string): number => DECIMALS.get(asset) ?? 0;
