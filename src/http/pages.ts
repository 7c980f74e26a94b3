import type { Client } from "../core/client.ts";
import type { Refusal } from "../core/errors.ts";
import type { PageData } from "../core/receipt/saved-page.ts";
import type { Access } from "../core/roles.ts";
import type { SignedIn } from "../services/auth/callers.ts";
import type { AfterSignIn, NewSession } from "../services/auth/sign-in.ts";
import type { Context } from "../services/context.ts";
import type { Idempotency } from "../services/idempotency.ts";
import type { Answer } from "./answers.ts";

/** What the page of a receipt loads, by path. The composition root passes it in. */
export type Pages = Readonly<Record<string, { readonly type: string; readonly body: string }>>;

/** The page of a receipt, as the console writes it: as it is served, and as one file that loads nothing. */
export type ReceiptPages = {
  served(data: PageData): string;
  saved(data: PageData): string;
};

/** The console, as the composition root passes it in: pages that are made for the person who asks. */
export type Site = {
  /** Null where the console has no such page. */
  find(method: string, path: string): SitePage | null;
};

export type SitePage = {
  /** The pattern of its path. */
  readonly path: string;
  /** Null on a page that anybody may see, such as the sign-in. */
  readonly access: Access | null;
  readonly params: Readonly<Record<string, string>>;
  answer(asked: Asked): Promise<Shown | Refusal>;
  /** How a refusal is shown to a person. */
  refuse(asked: Asked, refusal: Refusal): Shown;
};

/** What a page is asked with. */
export type Asked = {
  readonly ctx: Context;
  /** Null where nobody is signed in, which only a page without access sees. */
  readonly signedIn: SignedIn | null;
  readonly client: Client;
  readonly path: string;
  readonly search: URLSearchParams;
  /** What the browser has heard of a stream that broke off; null where it says nothing of it. */
  readonly lastEventId: string | null;
  /** Where whoever reads the page stands in the stream of what changes. */
  readonly position: string;
  /** Whether a form was sent; else a page is asked for. */
  readonly isForm: boolean;
  /** The fields of a form, without its Idempotency-Key; none on a GET. */
  readonly fields: Fields;
  /** The key that the form was made with; null on a GET, and on a form that anybody may send. */
  readonly idempotency: Idempotency | null;
  readonly cookies: Pick<Bun.CookieMap, "get">;
  /** Aborts where the browser leaves before the answer. */
  readonly gone: () => AbortSignal;
};
type Fields = Readonly<Record<string, string>>;

export type Shown =
  | { readonly kind: "page"; readonly status: number; readonly body: string }
  | { readonly kind: "file"; readonly type: string; readonly body: string }
  | { readonly kind: "worker"; readonly type: string; readonly body: string }
  | { readonly kind: "stream"; readonly body: ReadableStream<Uint8Array> }
  | {
      readonly kind: "download";
      readonly name: string;
      readonly type: string;
      readonly body: ReadableStream<Uint8Array>;
    }
  | {
      readonly kind: "redirect";
      readonly to: string;
      /** The sign-in that began; null where the browser's sign-in ended. */
      readonly session?: NewSession | null;
      /** How it began; by the password, unless said otherwise. */
      readonly by?: AfterSignIn["by"];
      readonly headers?: Readonly<Record<string, string>>;
    };

/**
 * A page with a Content-Security-Policy that forbids everything which the page does not need.
 *
 * @param allowed the directives of what the page loads, such as `style-src 'self'`
 * @param hasForms whether a browser sends the page's forms itself, without a script
 */
export const html = (body: string, allowed: readonly string[], hasForms = false): Answer => ({
  ...text("text/html", body),
  headers: {
    "Content-Security-Policy": [
      "default-src 'none'",
      ...allowed,
      "base-uri 'none'",
      hasForms ? "form-action 'self'" : "form-action 'none'",
      "frame-ancestors 'none'",
    ].join("; "),
    // Under no-referrer a browser sends its forms from the origin "null", which nobody could tell from another site.
    "Referrer-Policy": hasForms ? "same-origin" : "no-referrer",
  },
});

export const text = (type: string, body: string): Answer => ({
  status: 200,
  body,
  contentType: `${type}; charset=utf-8`,
});
