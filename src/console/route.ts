import type { Client } from "../core/client.ts";
import type { Refusal } from "../core/errors.ts";
import type { Access, PersonCaller } from "../core/roles.ts";
import type { SignedIn } from "../services/auth/callers.ts";
import type { AfterSignIn, NewSession } from "../services/auth/sign-in.ts";
import type { Surroundings } from "../services/console/surroundings.ts";
import type { Context } from "../services/context.ts";
import type { Idempotency } from "../services/idempotency.ts";
import type { Markup } from "./parts/markup.ts";

/**
 * How a page of the console is declared. A page says who may see it, and a form who may send it: without that neither compiles.
 * What is the same for all of them is done in one place, before the page's own code runs: who asks and what they may, that a form
 * comes from our own pages, that it does one thing however often it is sent, and that it was made in the mode that it is sent in.
 */

/** What `http` asks a page with. */
export type Asked = {
  readonly ctx: Context;
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
  /** The fields of a form; none on a GET. */
  readonly fields: Readonly<Record<string, string>>;
  readonly idempotency: Idempotency | null;
  readonly cookies: Pick<Bun.CookieMap, "get">;
  readonly gone: () => AbortSignal;
};

/** A person who asks for a page, and what every page shows around its own content. */
export type Visit<Params = unknown> = Omit<Asked, "idempotency"> & {
  readonly params: Params;
  readonly caller: PersonCaller;
  readonly user: SignedIn["user"];
  readonly signedIn: SignedIn;
  readonly around: Surroundings;
};

/** A form that a person sent. */
export type Submission<Params = unknown> = Visit<Params> & { readonly idempotency: Idempotency };

/** The parts of the console that the navigation leads to. */
export type Section =
  | "overview"
  | "warrants"
  | "escalations"
  | "agents"
  | "policies"
  | "verifiers"
  | "purchases"
  | "money"
  | "webhooks"
  | "people"
  | "settings";

export type Page = {
  readonly title: string;
  /** Null for a page that is in no section. */
  readonly section: Section | null;
  readonly content: Markup;
  /** 200 by default. A form that is shown again with what is wrong in it has the refusal's status. */
  readonly status?: number;
  /** Whether a secret is in it, which is shown once. */
  readonly hasSecret?: true;
};

export type Redirect = {
  readonly to: string;
  /** The sign-in that began; null where the browser's sign-in ended. */
  readonly session?: NewSession | null;
  /** How it began; by the password, unless said otherwise. */
  readonly by?: AfterSignIn["by"];
  readonly headers?: Readonly<Record<string, string>>;
};

/** A file that is made while it is read. */
export type Download = {
  readonly name: string;
  readonly type: string;
  readonly body: ReadableStream<Uint8Array>;
};

type Answer = Page | Redirect | Refusal;

type Declared = { readonly method: "GET" | "POST"; readonly path: string };
export type Route = Declared &
  (
    | { readonly kind: "page"; readonly access: Access; show(visit: Visit): Promise<Answer> }
    | { readonly kind: "trial"; readonly access: Access; show(visit: Visit): Promise<Answer> }
    | { readonly kind: "form"; readonly access: Access; send(submission: Submission): Promise<Answer> }
    | {
        readonly kind: "stream";
        readonly access: Access;
        open(asked: Asked & { readonly signedIn: SignedIn }): ReadableStream<Uint8Array> | Refusal;
      }
    | {
        readonly kind: "download";
        readonly access: Access;
        open(visit: Visit): Promise<Download | Refusal>;
      }
    | { readonly kind: "open"; readonly access: null; answer(asked: Asked): Promise<Answer> }
    | { readonly kind: "file"; readonly access: null; readonly type: string; readonly body: string }
    | { readonly kind: "worker"; readonly access: null; readonly type: string; readonly body: string }
  );

/** The parameters in a path: `/console/warrants/:id` has `id`. */
type ParamsOf<Path extends string> = Path extends `${string}:${infer Name}/${infer Rest}`
  ? { readonly [Key in Name]: string } & ParamsOf<Rest>
  : Path extends `${string}:${infer Name}`
    ? { readonly [Key in Name]: string }
    : unknown;

/** A page for people with this access. */
export const page = <const Path extends string>(
  path: Path,
  access: Access,
  show: (visit: Visit<ParamsOf<Path>>) => Promise<Answer>,
): Route => ({ method: "GET", kind: "page", path, access, show: show as (visit: Visit) => Promise<Answer> });

/** A form that people with this access may send. Its answer is a redirect, or the form again with what is wrong in it. */
export const form = <const Path extends string>(
  path: Path,
  access: Access,
  send: (submission: Submission<ParamsOf<Path>>) => Promise<Answer>,
): Route => ({
  ...{ method: "POST", kind: "form", path, access },
  send: send as (submission: Submission) => Promise<Answer>,
});

/**
 * A form that only asks, such as what a draft would do. It changes nothing, so it may be sent again as it is, with other values
 * too, and each time it is answered anew.
 */
export const trial = <const Path extends string>(
  path: Path,
  access: Access,
  show: (visit: Visit<ParamsOf<Path>>) => Promise<Answer>,
): Route => ({
  ...{ method: "POST", kind: "trial", path, access },
  show: show as (visit: Visit) => Promise<Answer>,
});
/** A file for people with this access. */
export const download = (
  path: string,
  access: Access,
  open: (visit: Visit) => Promise<Download | Refusal>,
): Route => ({ method: "GET", kind: "download", path, access, open });

/** A stream of events for people with this access. */
export const stream = (
  path: string,
  access: Access,
  open: Extract<Route, { readonly kind: "stream" }>["open"],
): Route => ({ method: "GET", kind: "stream", path, access, open });

/** A page or a form for somebody who is not signed in. A form must come from our own pages all the same. */
export const open = (
  method: Declared["method"],
  path: string,
  answer: (asked: Asked) => Promise<Answer>,
): Route => ({ method, kind: "open", path, access: null, answer });

/** A script or a stylesheet, whose path changes with its content. */
export const file = (path: string, type: string, body: string): Route => ({
  ...{ method: "GET", kind: "file", path, access: null, type, body },
});

/** A service worker, which a browser asks for by the same path for good. */
export const worker = (path: string, type: string, body: string): Route => ({
  ...{ method: "GET", kind: "worker", path, access: null, type, body },
});
