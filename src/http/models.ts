import { Type } from "@sinclair/typebox";
import { clauseModels } from "../core/clauses/registry.ts";
import { BPS_WHOLE } from "../core/money.ts";
import { DECISIONS } from "../core/records.ts";
import { MODES } from "../core/roles.ts";
import { STATES } from "../core/warrant.ts";
import { OFFSET_MAX } from "../services/warrants/list.ts";

/**
 * The forms of bodies and queries (interface.md, Endpoints). A field's `description` completes the sentence "must be …" of
 * its refusal. Unknown fields are refused everywhere, so that nothing passes by mistake.
 */

const closed = { additionalProperties: false } as const;

const literals = <const Value extends string>(values: readonly Value[]) =>
  Type.Union(
    values.map((value) => Type.Literal(value)),
    { description: `one of ${values.join(", ")}` },
  ) as unknown as ReturnType<typeof Type.Unsafe<Value>>;

const amount = Type.String({
  pattern: "^[0-9]+$",
  maxLength: 256,
  description: "a string of digits, the amount in the asset's smallest unit",
});

const id = Type.String({ minLength: 1, maxLength: 64, description: "an id" });

/** Each clause is checked by its kind's own rule, which names the path; `x-items` says the eight to readers. */
const clauses = Type.Unsafe<readonly unknown[]>(
  Type.Array(Type.Unknown(), {
    minItems: 1,
    maxItems: 64,
    "x-items": { anyOf: Object.values(clauseModels) },
    description: "an array of 1 to 64 clauses",
  }),
);

const releasedBps = Type.Integer({
  exclusiveMinimum: 0,
  exclusiveMaximum: BPS_WHOLE,
  description: "an integer strictly between 0 and 10000",
});

export const openBody = Type.Object(
  {
    amount,
    asset: Type.Optional(
      Type.String({
        pattern: "^[A-Za-z0-9._:-]{1,32}$",
        description: "1 to 32 characters of A-Z a-z 0-9 . _ : -",
      }),
    ),
    payee: Type.String({
      // A character beyond the BMP is two units of the text, and one of the 512.
      pattern: "^(?:[^\\u0000-\\u001f\\u007f\\ud800-\\udfff]|[\\ud800-\\udbff][\\udc00-\\udfff]){1,512}$",
      description: "1 to 512 characters, none of them a control character",
    }),
    deadline: Type.String({ maxLength: 64, description: "an ISO 8601 time with a zone" }),
    spec: Type.Object({ clauses }, { ...closed, description: "an object with clauses" }),
    agent_id: Type.Optional(id),
    verifier_id: Type.Optional(id),
    policy_id: Type.Optional(id),
  },
  closed,
);

export const payBody = Type.Object(
  {
    url: Type.String({ maxLength: 8_192, description: "an http or https URL" }),
    method: Type.Optional(literals(["GET", "POST"])),
    headers: Type.Optional(
      Type.Unsafe<Readonly<Record<string, string>>>(
        Type.Object(
          {},
          {
            additionalProperties: Type.String({ description: "a string" }),
            description: "an object of names and strings",
          },
        ),
      ),
    ),
    max_amount: amount,
    spec: Type.Object({ clauses }, { ...closed, description: "an object with clauses" }),
    agent_id: Type.Optional(id),
  },
  closed,
);

export const verifyBody = Type.Object(
  { source_url: Type.String({ maxLength: 8_192, description: "an http or https URL" }) },
  closed,
);

export const partialBody = Type.Object({ released_bps: releasedBps }, closed);

/** For the routes that take no body: an empty object is as good as none, which Elysia hands over as undefined. */
export const noBody = Type.Union([Type.Undefined(), Type.Object({}, closed)], {
  description: "an empty object, or left out",
});

export const resolveBody = Type.Object(
  {
    decision: literals(DECISIONS),
    released_bps: Type.Optional(releasedBps),
    note: Type.Optional(
      Type.String({ maxLength: 2_000, description: "a string of at most 2000 characters" }),
    ),
  },
  closed,
);

export const benchBody = Type.Object(
  {
    clauses,
    deliverable: Type.Object(
      {
        reached: Type.Boolean({ description: "true or false" }),
        status: Type.Optional(Type.Integer({ description: "an integer" })),
        raw: Type.Optional(Type.String({ description: "a string of at most 128 kB" })),
        generated_at: Type.Optional(Type.String({ maxLength: 64, description: "an ISO 8601 time" })),
        uptime_ratio: Type.Optional(Type.Number({ description: "a number" })),
        emitted_topics: Type.Optional(
          Type.Array(Type.String({ maxLength: 512 }), {
            maxItems: 10_000,
            description: "an array of strings",
          }),
        ),
        judge_score: Type.Optional(Type.Number({ description: "a number" })),
      },
      { ...closed, description: "an object with reached" },
    ),
    now: Type.Optional(Type.String({ maxLength: 64, description: "an ISO 8601 time" })),
  },
  closed,
);

export const signInBody = Type.Object(
  {
    email: Type.String({ minLength: 1, maxLength: 254, description: "an e-mail address" }),
    password: Type.String({ minLength: 1, maxLength: 256, description: "a string of 1 to 256 characters" }),
    mode: Type.Optional(literals(MODES)),
  },
  closed,
);

export const listQuery = Type.Object(
  {
    state: Type.Optional(literals(STATES)),
    agent_id: Type.Optional(id),
    sort: Type.Optional(literals(["deadline", "created"])),
    limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 100, description: "an integer from 1 to 100" })),
    offset: Type.Optional(
      Type.Integer({ minimum: 0, maximum: OFFSET_MAX, description: "an integer from 0 to 100000" }),
    ),
    starting_after: Type.Optional(id),
    ending_before: Type.Optional(id),
  },
  closed,
);

export const noQuery = Type.Object({}, closed);
