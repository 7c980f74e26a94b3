import { hashJson } from "../canonical.ts";
import type { JsonSchema, Schemas } from "./schema.ts";

/** The built-in schemas that a bench run knows (README, "Bench"). */

const digest = { type: "string", pattern: "^[0-9a-f]{64}$" };
const amount = { type: "string", pattern: "^[0-9]+$" };
const time = { type: "string", format: "date-time" };
const text = { type: "string" };
const mode = { enum: ["sandbox", "live"] };
const releasedBps = { type: ["integer", "null"], minimum: 1, maximum: 10_000 };
const orNull = (schema: { type: string; [keyword: string]: unknown }): JsonSchema => ({
  ...schema,
  type: [schema.type, "null"],
});

const object = (properties: Record<string, JsonSchema>, optional: readonly string[] = []): JsonSchema => ({
  type: "object",
  properties,
  required: Object.keys(properties).filter((name) => !optional.includes(name)),
});

const actor = object({ kind: { enum: ["agent", "user", "system"] }, id: orNull(text) });

const tracePayload = object(
  {
    warrant_id: text,
    mode,
    from: orNull(text),
    to: text,
    version: { type: "integer", minimum: 1 },
    actor,
    recorded_at: time,
    amount,
    asset: text,
    payee: text,
    released_bps: releasedBps,
    spec_hash: digest,
    schema_hashes: { type: ["array", "object", "null"] },
    agent_id: orNull(text),
    policy_id: orNull(text),
    policy_version: orNull({ type: "integer" }),
    rules_hash: digest,
    check_id: orNull(text),
    score: orNull({ type: "integer", minimum: 0, maximum: 10_000 }),
    reason_codes: { type: ["array", "null"], items: text },
    evidence_hash: orNull(digest),
    check_hash: orNull(digest),
  },
  ["schema_hashes", "check_id", "score", "reason_codes", "evidence_hash", "check_hash"],
);

const event = object({
  id: { type: "string", pattern: "^evt_" },
  object: { const: "event" },
  type: {
    enum: [
      "warrant.opened",
      "warrant.verifying",
      "warrant.released",
      "warrant.partially_released",
      "warrant.refunded",
    ],
  },
  mode,
  created_at: time,
  data: tracePayload,
});

const receipt = object({
  object: { const: "receipt" },
  mode,
  warrant: object({
    id: { type: "string", pattern: "^wrt_" },
    state: { enum: ["released", "partially_released", "refunded", "expired"] },
    amount,
    asset: text,
    released_bps: releasedBps,
    payee: text,
    spec_hash: digest,
    spec: { type: ["object", "null"] },
    policy_version: orNull({ type: "integer" }),
    rules_hash: digest,
    opened_at: time,
    settled_at: time,
  }),
  checks: { type: "array", items: { type: "object" } },
  trace: {
    type: "array",
    minItems: 1,
    items: object({
      to: text,
      from: orNull(text),
      actor,
      recorded_at: time,
      payload_hash: digest,
      chain_ref: orNull(text),
      rules_hash: orNull(digest),
      sequence: { type: "integer", minimum: 0 },
      payload: { type: "object" },
      entry_hash: digest,
    }),
  },
  anchor: { type: ["object", "null"] },
  signature: orNull(text),
});

const named = (schemas: Readonly<Record<string, JsonSchema>>): Schemas =>
  Object.fromEntries(
    Object.entries(schemas).map(([name, schema]) => [name, { hash: hashJson(schema), schema }]),
  );

export const benchSchemas: Schemas = named({
  object: { type: "object" },
  array: { type: "array" },
  non_empty_array: { type: "array", minItems: 1 },
  "holdfast.receipt": receipt,
  "holdfast.event": event,
});
