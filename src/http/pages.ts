import type { PageData } from "../core/receipt/saved-page.ts";
import type { Answer } from "./answers.ts";

/** The pages, scripts and stylesheets of the console, by path. The composition root passes them in. */
export type Pages = Readonly<Record<string, { readonly type: string; readonly body: string }>>;

/** The page of a receipt, as the console writes it: as it is served, and as one file that loads nothing. */
export type ReceiptPages = {
  served(data: PageData): string;
  saved(data: PageData): string;
};

/**
 * A page with a Content-Security-Policy that forbids everything which the page does not need.
 *
 * @param allowed the directives of what the page loads, such as `style-src 'self'`
 */
export const html = (body: string, allowed: readonly string[]): Answer => ({
  ...text("text/html", body),
  headers: {
    "Content-Security-Policy": [
      "default-src 'none'",
      ...allowed,
      "base-uri 'none'",
      "form-action 'none'",
      "frame-ancestors 'none'",
    ].join("; "),
    "Referrer-Policy": "no-referrer",
  },
});

export const text = (type: string, body: string): Answer => ({
  status: 200,
  body,
  contentType: `${type}; charset=utf-8`,
});
