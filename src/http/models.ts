import { Type } from "@sinclair/typebox";
import { DECISIONS } from "../core/escalation.ts";
import { ASSET_PATTERN, BPS_WHOLE, PAYEE_PATTERN } from "../core/money.ts";
import { SETTLEMENTS } from "../core/passkey.ts";
import { MODES } from "../core/roles.ts";
import { STATES } from "../core/warrant.ts";
import { clauseForm } from "../resources/clause.ts";
import { PASSWORD_LENGTH_MAX, PASSWORD_LENGTH_MIN } from "../services/fields.ts";
import { OFFSET_MAX } from "../services/warrants/list.ts";

/**
 * The forms of bodies and queries (interface.md, Endpoints). A field's `description` completes the sentence "must be …" of
 * its refusal. Unknown fields are refused everywhere, so that a misspelt field is never overlooked.
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

/** Each clause is checked by the rule of its kind, whose refusal names the path. `x-items` is for the API's description. */
const clauses = Type.Unsafe<readonly unknown[]>(
  Type.Array(Type.Unknown(), {
    minItems: 1,
    maxItems: 64,
    "x-items": clauseForm,
    description: "an array of 1 to 64 clauses",
  }),
);

const releasedBps = Type.Integer({
  exclusiveMinimum: 0,
  exclusiveMaximum: BPS_WHOLE,
  description: "an integer strictly between 0 and 10000",
});

const pageLimit = Type.Optional(
  Type.Integer({ minimum: 1, maximum: 100, description: "an integer from 1 to 100" }),
);

/** Of a sign-in. The password may be older than the rule for new ones. */
const password = Type.String({
  minLength: 1,
  maxLength: PASSWORD_LENGTH_MAX,
  description: `a string of 1 to ${PASSWORD_LENGTH_MAX} characters`,
});
const newPassword = Type.String({
  minLength: PASSWORD_LENGTH_MIN,
  maxLength: PASSWORD_LENGTH_MAX,
  description: `a string of ${PASSWORD_LENGTH_MIN} to ${PASSWORD_LENGTH_MAX} characters`,
});

const asset = Type.Optional(
  Type.String({
    pattern: ASSET_PATTERN,
    description: "1 to 32 characters of A-Z a-z 0-9 . _ : -",
  }),
);

export const openBody = Type.Object(
  {
    amount,
    asset,
    payee: Type.String({
      pattern: PAYEE_PATTERN,
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
    asset,
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

/** For routes without a body. An empty object is accepted too. */
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
    password,
    mode: Type.Optional(literals(MODES)),
  },
  closed,
);

export const passwordBody = Type.Object({ current_password: password, new_password: newPassword }, closed);

export const passwordResetBody = Type.Object(
  {
    token: Type.String({ minLength: 1, maxLength: 256, description: "the text after the link's #" }),
    new_password: newPassword,
  },
  closed,
);

export const passkeyOptionsBody = Type.Object({ password }, closed);

const base64url = (maxLength: number) =>
  Type.String({ pattern: "^[A-Za-z0-9_-]+$", maxLength, description: "base64url" });

/** What a browser sends about a credential. It may send more fields than are read here. */
const credential = {
  id: base64url(1_400),
  rawId: base64url(1_400),
  type: literals(["public-key"]),
};
const registrationResponse = Type.Object(
  {
    ...credential,
    response: Type.Object(
      {
        clientDataJSON: base64url(16_384),
        attestationObject: base64url(65_536),
        transports: Type.Optional(
          Type.Array(Type.String({ maxLength: 32 }), { maxItems: 16, description: "an array of strings" }),
        ),
      },
      { description: "an AuthenticatorAttestationResponse as JSON" },
    ),
  },
  { description: "what PublicKeyCredential.toJSON() gave" },
);
const assertionResponse = Type.Object(
  {
    ...credential,
    response: Type.Object(
      {
        clientDataJSON: base64url(16_384),
        authenticatorData: base64url(16_384),
        signature: base64url(4_096),
        userHandle: Type.Optional(Type.Union([base64url(128), Type.Null()], { description: "base64url" })),
      },
      { description: "an AuthenticatorAssertionResponse as JSON" },
    ),
  },
  { description: "what PublicKeyCredential.toJSON() gave" },
);

export const passkeyBody = Type.Object(
  {
    name: Type.Optional(
      Type.String({ minLength: 1, maxLength: 200, description: "a string of 1 to 200 characters" }),
    ),
    response: registrationResponse,
  },
  closed,
);

export const passkeySignInBody = Type.Object(
  { response: assertionResponse, mode: Type.Optional(literals(MODES)) },
  closed,
);

export const decisionBody = Type.Object(
  {
    warrant_id: id,
    version: Type.Integer({ minimum: 1, description: "the warrant's version, an integer from 1" }),
    decision: literals(SETTLEMENTS),
    released_bps: Type.Optional(releasedBps),
  },
  closed,
);

export const assertionBody = Type.Object({ response: assertionResponse }, closed);

export const listQuery = Type.Object(
  {
    state: Type.Optional(literals(STATES)),
    agent_id: Type.Optional(id),
    sort: Type.Optional(literals(["deadline", "created"])),
    limit: pageLimit,
    offset: Type.Optional(
      Type.Integer({ minimum: 0, maximum: OFFSET_MAX, description: "an integer from 0 to 100000" }),
    ),
    starting_after: Type.Optional(id),
    ending_before: Type.Optional(id),
  },
  closed,
);

export const auditLogQuery = Type.Object({ limit: pageLimit, starting_after: Type.Optional(id) }, closed);

export const noQuery = Type.Object({}, closed);
