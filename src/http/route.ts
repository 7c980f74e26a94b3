import type { Static, TSchema } from "@sinclair/typebox";
import type { Bucket } from "../core/rate.ts";
import type { Access } from "../core/roles.ts";
import type { Result } from "./answers.ts";
import type { Call } from "./call.ts";
import type { Models } from "./check-input.ts";

/** What the shell enforces before a route's handler runs. It is part of the route's OpenAPI entry, so both say the same. */
export type RouteRule = {
  /** Null on a public route. */
  readonly access: Access | null;
  /** Whether the worker's header is asked for instead. */
  readonly worker: boolean;
  /** Whether an Idempotency-Key is required: on the routes that move money. */
  readonly idempotent: boolean;
  readonly bucket: Bucket;
  /** Whether a request is counted against its caller's rate. Where it is not, it is never refused for the rate. */
  readonly counted: boolean;
  readonly bodyBytesMax: number;
};

const BODY_BYTES_MAX = 256 * 1024;
const RULE = "x-holdfast-rule";

type Description = {
  readonly summary: string;
  readonly tags: string[];
  readonly access: Access | null;
  readonly worker?: boolean;
  readonly idempotent?: boolean;
  readonly bucket: Bucket;
  readonly counted?: boolean;
  readonly bodyBytesMax?: number;
  readonly responses: Readonly<Record<string, string>>;
};

/** A route's `detail`: its description for people and its rule for the shell. */
export function route({
  access,
  worker = false,
  idempotent = false,
  bucket,
  counted = true,
  bodyBytesMax = BODY_BYTES_MAX,
  ...description
}: Description) {
  const rule: RouteRule = { access, worker, idempotent, bucket, counted, bodyBytesMax };
  return {
    summary: description.summary,
    tags: description.tags,
    responses: Object.fromEntries(
      Object.entries(description.responses).map(([status, text]) => [status, { description: text }]),
    ),
    [RULE]: rule,
  };
}

/** The rule in a route's `detail`. */
export function ruleOf(detail: object): RouteRule {
  const rule = (detail as { readonly [RULE]?: RouteRule })[RULE];
  if (!rule) throw new Error("a route without a rule");
  return rule;
}

type Detail = ReturnType<typeof route>;

/** A declared route. */
export type Route = {
  readonly method: "GET" | "POST" | "DELETE";
  /** With the names of its parameters, such as `/v1/warrants/:id`. */
  readonly path: string;
  readonly models: Models;
  readonly detail: Detail;
  readonly rule: RouteRule;
  /** A method, for TypeScript compares the types of a method's parameters both ways: a handler asks more of its call than this says. */
  handle(call: Call): Result | Promise<Result>;
};

/** The parameters in a path: `/v1/warrants/:id` has `id`. */
type ParamsOf<Path extends string> = Path extends `${string}:${infer Name}/${infer Rest}`
  ? { readonly [Key in Name]: string } & ParamsOf<Rest>
  : Path extends `${string}:${infer Name}`
    ? { readonly [Key in Name]: string }
    : unknown;

type Form<Body extends TSchema, Query extends TSchema> = {
  readonly body?: Body;
  readonly query?: Query;
  readonly detail: Detail;
};

/** Declares the routes of a method. A handler gets its query and its body in the types of their models, which the shell has checked. */
const declare =
  (method: Route["method"]) =>
  <const Path extends string, Body extends TSchema, Query extends TSchema>(
    path: Path,
    { body, query, detail }: Form<Body, Query>,
    handle: (call: Call<Static<Body>, Static<Query>, ParamsOf<Path>>) => Result | Promise<Result>,
  ): Route => ({ method, path, models: { body, query }, detail, rule: ruleOf(detail), handle });

export const get = declare("GET");
export const post = declare("POST");
export const del = declare("DELETE");
