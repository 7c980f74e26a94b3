import type { Bucket } from "../core/rate.ts";
import type { Access } from "../core/roles.ts";

/** What the shell enforces of a route before it runs. It stands in the route's OpenAPI entry, so both say the same. */
export type RouteRule = {
  /** Null on a public route. */
  readonly access: Access | null;
  /** Whether an Idempotency-Key is required: on the routes that move money. */
  readonly idempotent: boolean;
  readonly bucket: Bucket;
  readonly bodyBytesMax: number;
};

const BODY_BYTES_MAX = 256 * 1024;
const RULE = "x-holdfast-rule";

type Description = {
  readonly summary: string;
  readonly tags: string[];
  readonly access: Access | null;
  readonly idempotent?: boolean;
  readonly bucket: Bucket;
  readonly bodyBytesMax?: number;
  readonly responses: Readonly<Record<string, string>>;
};

/** A route's `detail`: its description for people and its rule for the shell. */
export function route({
  access,
  idempotent = false,
  bucket,
  bodyBytesMax = BODY_BYTES_MAX,
  ...description
}: Description) {
  const rule: RouteRule = { access, idempotent, bucket, bodyBytesMax };
  const security = access === null ? [] : [...(access.keys ? [{ apiKey: [] }] : []), { session: [] }];
  const keyHeader = {
    name: "Idempotency-Key",
    in: "header" as const,
    required: true,
    schema: { type: "string" as const, minLength: 1, maxLength: 255 },
  };
  return {
    summary: description.summary,
    tags: description.tags,
    security,
    ...(idempotent && { parameters: [keyHeader] }),
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
