import { parseJsonText } from "../json-text.ts";
import { isRecord } from "../shapes.ts";
import type { Sha256 } from "../signed-note.ts";
import { hexOf } from "../signed-note.ts";

/**
 * The page of a receipt as one file. It holds the receipt and the keys as data, and ends with a signature over everything
 * before: what a person reads in it is what the instance wrote.
 */

/** The `typ` of the signature at its end. */
export const PAGE_TYPE = "holdfast-receipt-page+jws";

const DATA = /<script type="application\/json" id="receipt-data">([^<]*)<\/script>/;
const END = /<!-- holdfast-receipt-page ([A-Za-z0-9_.-]+) -->\n$/;

/** What a page shows, and what it is verified with. */
export type PageData = {
  readonly receipt: object;
  readonly jwks: object;
  /** The verifier keys of the instance's witnesses, as it names them. */
  readonly witnesses: readonly string[];
};

/** The data as a block of a page. It has no `<`, so nothing in it ends the block. */
export const dataBlock = (data: PageData): string =>
  `<script type="application/json" id="receipt-data">${JSON.stringify(data).replaceAll("<", "\\u003c")}</script>`;

/** What the signature at the end of a page signs. */
export const pageStatement = (page: string, sha256: Sha256) => ({
  object: "receipt_page",
  sha256: hexOf(sha256(new TextEncoder().encode(page))),
});

/** A page with its signature. */
export const signedPage = (page: string, signature: string): string =>
  `${page}<!-- holdfast-receipt-page ${signature} -->\n`;

export type SavedPage = {
  readonly receipt: unknown;
  readonly jwks: unknown;
  /** The page without its signature. */
  readonly page: string;
  readonly signature: string;
};

export const isPage = (text: string): boolean => /^\s*</.test(text);

/** The parts of a saved page, or the problem with it, in words that follow "the page". */
export function partsOfPage(text: string): SavedPage | { readonly problem: string } {
  const end = END.exec(text);
  const [, block] = DATA.exec(text) ?? [];
  if (block === undefined) return { problem: "has no receipt in it" };
  const data = parseJsonText(block);
  if ("problem" in data) return { problem: `has a receipt in it that ${data.problem}` };
  if (!isRecord(data.value)) return { problem: "has no receipt in it" };
  const { receipt, jwks } = data.value;
  if (!end?.[1]) return { problem: "does not end with its signature" };
  return { receipt, jwks, page: text.slice(0, end.index), signature: end[1] };
}
