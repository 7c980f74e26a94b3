import type { Static, TSchema } from "@sinclair/typebox";
import type { Form } from "../core/form.ts";
import type { Bucket } from "../core/rate.ts";
import type { Access } from "../core/roles.ts";
import type { BYTES, Result } from "./answers.ts";
import type { Call } from "./call.ts";
import type { Models } from "./check-input.ts";
import type { Machine } from "./machines.ts";

/** What the shell checks before it calls the route's handler. OpenAPI is made from the same rule. */
export type RouteRule = {
  /** Null on a public route. */
  readonly access: Access | null;
  /** The machine that alone may call, by the secret in its header; null where people, agents or anybody may. */
  readonly machine: Machine | null;
  /** Whether an Idempotency-Key is required, as on all routes that move money. */
  readonly idempotent: boolean;
  /** Whether it decides on a warrant, so that without `If-Match` it stands on the version there was when its headers were read. */
  readonly decides: boolean;
  readonly bucket: Bucket;
  /** Whether requests count against the caller's rate limit. Where they do not, the limit does not refuse them either. */
  readonly counted: boolean;
  readonly bodyBytesMax: number;
  /** Whether the body is text, of whatever content type; else it is a JSON object. */
  readonly takesText: boolean;
  /** Whether a browser must show that the request comes from one of our own pages, as for the console's forms. */
  readonly ownPagesOnly: boolean;
};

export const BODY_BYTES_MAX = 256 * 1024;
const RULE = "x-holdfast-rule";
const ANSWERS = "x-holdfast-answers";
const AS_TEXT = "x-holdfast-as-text";

/**
 * The form of a route's successful answer, for the API's description: a resource, text of a media type, bytes, or
 * nothing.
 */
export type Answers = Form | `text/${string}` | typeof BYTES | "image/png" | null;

type Description = {
  readonly summary: string;
  readonly tags: string[];
  readonly access: Access | null;
  readonly machine?: Machine;
  readonly idempotent?: boolean;
  readonly decides?: boolean;
  readonly bucket: Bucket;
  readonly counted?: boolean;
  readonly bodyBytesMax?: number;
  readonly takesText?: boolean;
  readonly answers: Answers;
  /** Statuses that are answered as text, though they refuse. */
  readonly answersAsText?: readonly string[];
  readonly responses: Readonly<Record<string, string>>;
};

/** A route's `detail`: its description for people and its rule for the shell. */
export function route({
  access,
  machine,
  idempotent = false,
  decides = false,
  bucket,
  counted = true,
  bodyBytesMax = BODY_BYTES_MAX,
  takesText = false,
  ...description
}: Description) {
  const rule: RouteRule = {
    ...{ access, machine: machine ?? null, idempotent, decides, bucket, counted, bodyBytesMax, takesText },
    ownPagesOnly: false,
  };
  return {
    summary: description.summary,
    tags: description.tags,
    responses: Object.fromEntries(
      Object.entries(description.responses).map(([status, text]) => [status, { description: text }]),
    ),
    [RULE]: rule,
    [ANSWERS]: description.answers,
    [AS_TEXT]: description.answersAsText ?? [],
  };
}

/** The rule in a route's `detail`. */
export function ruleOf(detail: object): RouteRule {
  const rule = (detail as { readonly [RULE]?: RouteRule })[RULE];
  if (!rule) throw new Error("a route without a rule");
  return rule;
}

/** The form of a route's successful answer, from its `detail`. */
export function answersOf(detail: object): Answers {
  const answers = (detail as { readonly [ANSWERS]?: Answers })[ANSWERS];
  if (answers === undefined) throw new Error("a route without an answer");
  return answers;
}

/** The statuses that a route answers as text, though they refuse. */
export const answeredAsText = (detail: object): readonly string[] =>
  (detail as { readonly [AS_TEXT]?: readonly string[] })[AS_TEXT] ?? [];

type Detail = ReturnType<typeof route>;

/** A route as it is declared. */
export type Route = {
  readonly method: "GET" | "POST" | "DELETE";
  /** The pattern, such as `/v1/warrants/:id`. */
  readonly path: string;
  readonly models: Models;
  readonly detail: Detail;
  readonly rule: RouteRule;
  /**
   * Called by the shell, after it has checked query and body with the models. Declared as a method, since TypeScript then
   * accepts a handler whose call has a more exact type.
   */
  handle(call: Call): Result | Promise<Result>;
};

/** The parameters in a path: `/v1/warrants/:id` has `id`. */
type ParamsOf<Path extends string> = Path extends `${string}:${infer Name}/${infer Rest}`
  ? { readonly [Key in Name]: string } & ParamsOf<Rest>
  : Path extends `${string}:${infer Name}`
    ? { readonly [Key in Name]: string }
    : unknown;

type Inputs<Body extends TSchema, Query extends TSchema> = {
  readonly body?: Body;
  readonly query?: Query;
  readonly detail: Detail;
};

/**
 * Declares a route of this method. The types of the handler's body and query follow from the models; its
 * params follow from the path.
 */
const declare =
  (method: Route["method"]) =>
  <const Path extends string, Body extends TSchema, Query extends TSchema>(
    path: Path,
    { detail, ...models }: Inputs<Body, Query>,
    handle: (call: Call<Static<Body>, Static<Query>, ParamsOf<Path>>) => Result | Promise<Result>,
  ): Route => ({ method, path, models, detail, rule: ruleOf(detail), handle });

export const get = declare("GET");
export const post = declare("POST");
export const del = declare("DELETE");
