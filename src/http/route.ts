import type { Bucket } from "../core/rate.ts";
import type { Access } from "../core/roles.ts";

/** What the shell enforces of a route before it runs. It stands in the route's OpenAPI entry, so both say the same. */
export type RouteRule = {
  /** Null on a public route. */
  readonly access: Access | null;
  /** Whether the worker's header is asked for instead. */
  readonly worker: boolean;
  /** Whether an Idempotency-Key is required: on the routes that move money. */
  readonly idempotent: boolean;
  readonly bucket: Bucket;
  /** Whether a request costs its caller one of the bucket; where not, it is never refused for the rate. */
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

/** The rule in a route's `detail`. Every route of ours has one. */
export function ruleOf(detail: object): RouteRule {
  const rule = (detail as { readonly [RULE]?: RouteRule })[RULE];
  if (!rule) throw new Error("a route without a rule");
  return rule;
}
