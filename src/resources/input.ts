import { Type } from "@sinclair/typebox";
import { clauseForm } from "../core/clauses/form.ts";
import { NOTHING_HIDDEN, PLAIN_TEXT_PATTERN } from "../core/hidden-characters.ts";
import { ASSET_PATTERN, BPS_WHOLE, PAYEE_PATTERN } from "../core/money.ts";
import { PASSWORD_LENGTH_MAX, PASSWORD_LENGTH_MIN } from "../core/user.ts";

/**
 * The parts of which forms of bodies and queries are built. A field's `description` completes the sentence
 * "must be …" of its refusal. All forms refuse unknown fields, so that a misspelt field is noticed. They are
 * built at the start, since every request is checked with them.
 */

export const closed = { additionalProperties: false } as const;

export const literals = <const Value extends string>(values: readonly Value[]) =>
  Type.Union(
    values.map((value) => Type.Literal(value)),
    { description: `one of ${values.join(", ")}` },
  ) as unknown as ReturnType<typeof Type.Unsafe<Value>>;

/**
 * Text that a caller gives and that people read later. Every text of a body or a query is made by this, or has a pattern of
 * its own: a test walks all forms and finds those that would take hidden characters.
 */
export const plainText = ({ lengthMin = 0, lengthMax, description }: PlainText) =>
  Type.String({
    ...(lengthMin > 0 && { minLength: lengthMin }),
    maxLength: lengthMax,
    pattern: PLAIN_TEXT_PATTERN,
    description: `${description}, ${NOTHING_HIDDEN}`,
  });
type PlainText = {
  readonly lengthMin?: number;
  readonly lengthMax: number;
  readonly description: string;
};

/** The service that takes it checks the rest (`src/core/source-url.ts`). */
export const urlInput = plainText({ lengthMax: 8_192, description: "an http or https URL" });

export const amountInput = Type.String({
  pattern: "^[0-9]+$",
  maxLength: 256,
  description: "a string of digits, the amount in the asset's smallest unit",
});

export const id = Type.String({
  minLength: 1,
  maxLength: 64,
  pattern: PLAIN_TEXT_PATTERN,
  description: "an id",
});

/** Each clause is checked by the rule of its kind, whose refusal names the path. `x-items` is for the API's description. */
export const clauses = Type.Unsafe<readonly unknown[]>(
  Type.Array(Type.Unknown(), {
    minItems: 1,
    maxItems: 64,
    "x-items": clauseForm,
    description: "an array of 1 to 64 clauses",
  }),
);

export const specInput = Type.Object({ clauses }, { ...closed, description: "an object with clauses" });

export const releasedBps = Type.Integer({
  exclusiveMinimum: 0,
  exclusiveMaximum: BPS_WHOLE,
  description: "an integer strictly between 0 and 10000",
});

export const pageLimit = Type.Optional(
  Type.Integer({ minimum: 1, maximum: 100, description: "an integer from 1 to 100" }),
);

/** The password of a sign-in. It may be older than the rule for new passwords. */
export const password = Type.String({
  minLength: 1,
  maxLength: PASSWORD_LENGTH_MAX,
  description: `a string of 1 to ${PASSWORD_LENGTH_MAX} characters`,
});
export const newPassword = Type.String({
  minLength: PASSWORD_LENGTH_MIN,
  maxLength: PASSWORD_LENGTH_MAX,
  description: `a string of ${PASSWORD_LENGTH_MIN} to ${PASSWORD_LENGTH_MAX} characters`,
});

export const assetInput = Type.Optional(
  Type.String({
    pattern: ASSET_PATTERN,
    description: "1 to 32 characters of A-Z a-z 0-9 . _ : -",
  }),
);

export const payeeInput = Type.String({
  pattern: PAYEE_PATTERN,
  description: `1 to 512 characters, ${NOTHING_HIDDEN}`,
});

/** For routes without a body. An empty object is accepted too. */
export const noBody = Type.Union([Type.Undefined(), Type.Object({}, closed)], {
  description: "an empty object, or left out",
});

export const noQuery = Type.Object({}, closed);
