import { FormatRegistry, type TSchema, Type } from "@sinclair/typebox";
import { Errors, type ValueError, ValueErrorType } from "@sinclair/typebox/errors";
import { hashJson } from "./canonical.ts";
import { REASON_CODES, type ReasonCode } from "./clauses/reason-codes.ts";
import { type ErrorCode, type Refusal, refuse, refuseField } from "./errors.ts";
import { NOTHING_HIDDEN, PLAIN_TEXT_PATTERN } from "./hidden-characters.ts";
import { BPS_WHOLE, parseAmount } from "./money.ts";

/** What a policy can decide. */
export const OUTCOMES = ["release", "partial_release", "escalate", "refund"] as const;
export type Outcome = (typeof OUTCOMES)[number];

export type Band = {
  readonly minScore: number;
  readonly outcome: Outcome;
  readonly releasedBps?: number;
  readonly label?: string;
};

export type PolicyRules = {
  readonly bands: readonly Band[];
  readonly maxAmount?: string;
  readonly alwaysEscalate?: readonly ReasonCode[];
  readonly alwaysRefund?: readonly ReasonCode[];
};

/** A policy row is never edited; new rules make a new version of the name. */
export type Policy = {
  readonly id: string;
  readonly organisationId: string;
  /** Null where the policy is the organisation's default. */
  readonly agentId: string | null;
  readonly name: string;
  readonly version: number;
  readonly rules: PolicyRules;
  readonly rulesHash: string;
  readonly createdAt: number;
};

/** The rules that apply where no policy was saved: only a clean pass pays (docs/policies, "Which policy a warrant gets"). */
export const BUILT_IN_RULES: PolicyRules = {
  bands: [
    { minScore: 1, outcome: "release" },
    { minScore: 0, outcome: "escalate" },
  ],
};
export const BUILT_IN_RULES_HASH = hashJson(BUILT_IN_RULES);

/** A score as it is stored: in basis points, rounded half up. */
export const scoreInBps = (score: number): number => Math.round(score * BPS_WHOLE);

const BANDS_MAX = 64;
const LABEL_LENGTH_MAX = 200;
/** The limit in characters of JSON. Every open reads the rules, so they must be small. */
const RULES_LENGTH_MAX = 16 * 1024;

// In these models `refused` is the code of a refusal, and `description` follows the path in its message.
FormatRegistry.Set("amount", (text) => parseAmount(text) !== null);

/** The model of a band with this outcome. Only a partial release has a share. */
const bandOf = (outcome: Outcome) =>
  Type.Object(
    {
      minScore: Type.Number({
        minimum: 0,
        maximum: 1,
        refused: "policy_band_out_of_range",
        description: "must be a number from 0 to 1",
      }),
      outcome: Type.Literal(outcome, { description: `must be one of ${OUTCOMES.join(", ")}` }),
      releasedBps:
        outcome === "partial_release"
          ? Type.Integer({
              exclusiveMinimum: 0,
              exclusiveMaximum: BPS_WHOLE,
              refused: "policy_band_bps_required",
              description: "must be an integer strictly between 0 and 10000",
            })
          : Type.Optional(Type.Never({ description: `goes with partial_release only, not with ${outcome}` })),
      label: Type.Optional(
        Type.String({
          maxLength: LABEL_LENGTH_MAX,
          pattern: PLAIN_TEXT_PATTERN,
          description: `must be a string of at most ${LABEL_LENGTH_MAX} characters, ${NOTHING_HIDDEN}`,
        }),
      ),
    },
    { additionalProperties: false, description: "must be an object" },
  );

const bands = Type.Array(Type.Union(OUTCOMES.map(bandOf)), {
  minItems: 1,
  maxItems: BANDS_MAX,
  contains: Type.Object({ minScore: Type.Literal(0) }),
  refused: "policy_no_bands",
  description: "a policy needs at least one band",
});

const reasonCodes = Type.Array(Type.Union(REASON_CODES.map((code) => Type.Literal(code))), {
  description: "must be an array of reason codes",
});

const anything = Type.Optional(Type.Unknown());

/**
 * The rules, without a check of their lists of reason codes. A list may be very long, so the length of the
 * whole is checked first.
 */
const RULES = Type.Object(
  {
    bands,
    maxAmount: Type.Optional(
      Type.String({
        format: "amount",
        description: "must be a string of digits, at most 9223372036854775807",
      }),
    ),
    alwaysEscalate: anything,
    alwaysRefund: anything,
  },
  { additionalProperties: false, description: "must be an object" },
);

const REASON_CODE_LISTS = Type.Object({
  alwaysEscalate: Type.Optional(reasonCodes),
  alwaysRefund: Type.Optional(reasonCodes),
});

/**
 * The rules of a policy that is about to be saved, or the first problem in them: `policy_no_bands`,
 * `policy_band_out_of_range`, `policy_band_bps_required`, `policy_no_floor_band`, else `validation_failed`. The message
 * starts with the path.
 */
export function parsePolicyRules(value: unknown): PolicyRules | Refusal {
  return (
    refuseFirst(RULES, value) ??
    (JSON.stringify(value).length > RULES_LENGTH_MAX
      ? refuseField("rules", "must be at most 16 kB of JSON")
      : refuseFirst(REASON_CODE_LISTS, value)) ??
    (value as PolicyRules)
  );
}

function refuseFirst(model: TSchema, value: unknown): Refusal | null {
  const error = firstOf(Errors(model, value));
  return error && refusalOf(error);
}

/** The error to answer with, or null. A band's errors are those of the model for its own outcome. */
function firstOf(errors: Iterable<ValueError>): ValueError | null {
  for (const error of errors) {
    // A missing field is reported twice: first before all other fields, then in its place among them.
    if (error.type === ValueErrorType.ObjectRequiredProperty) continue;
    const bandErrors = error.schema === bands.items && error.errors[outcomeIndex(error.value)];
    return bandErrors ? firstOf(bandErrors) : error;
  }
  return null;
}

/** The index of the model for a band's outcome. An outcome that does not exist gets the first model, which refuses it. */
const outcomeIndex = (band: unknown): number =>
  Math.max(0, OUTCOMES.indexOf((band as { readonly outcome: Outcome } | null)?.outcome as Outcome));

function refusalOf({ type, schema, path: pointer, value }: ValueError): Refusal {
  const path = `rules${pointer.replaceAll("/", ".")}`.replaceAll("~1", "/").replaceAll("~0", "~");
  if (type === ValueErrorType.ObjectAdditionalProperties) {
    return refuseField(path, `unknown field; known are ${Object.keys(schema.properties).join(", ")}`);
  }
  if (type === ValueErrorType.ArrayMaxItems) return refuseField(path, `must be at most ${BANDS_MAX} bands`);
  if (type === ValueErrorType.ArrayContains) {
    const why = "one band must have minScore 0, so that every score has an outcome";
    return refuse("policy_no_floor_band", `${path}: ${why}`);
  }
  if (schema === reasonCodes.items) return refuseField(path, `${JSON.stringify(value)} is not a reason code`);
  const { refused = "validation_failed", description = "" } = schema as TSchema & { refused?: ErrorCode };
  return refuse(refused, `${path}: ${description}`);
}

/** An outcome and its share: 10000 on a release, the band's on a partial release, 0 where nothing is paid. */
export type PolicyDecision = {
  readonly outcome: Outcome;
  readonly releasedBps: number;
  readonly bandLabel: string | null;
};

/**
 * How a verification picks the outcome (docs/policies, "Which policy a warrant gets"): by `alwaysRefund`, then `alwaysEscalate`, then the highest band
 * that the score reaches; of bands with equal `minScore`, the earlier.
 *
 * @param score a fraction from 0 to 1
 */
export function decideOutcome(
  rules: PolicyRules,
  score: number,
  reasonCodes: readonly ReasonCode[],
): PolicyDecision {
  const matches = (always: readonly ReasonCode[] = []) => reasonCodes.some((code) => always.includes(code));
  if (matches(rules.alwaysRefund)) return { outcome: "refund", releasedBps: 0, bandLabel: null };
  if (matches(rules.alwaysEscalate)) return { outcome: "escalate", releasedBps: 0, bandLabel: null };
  const band = bandAt(rules, score);
  return { outcome: band.outcome, releasedBps: paidBpsOf(band), bandLabel: band.label ?? null };
}

/** The highest band that a score reaches; of bands with equal `minScore`, the earlier. */
export function bandAt({ bands }: PolicyRules, score: number): Band {
  const band = bands.toSorted((a, b) => b.minScore - a.minScore).find(({ minScore }) => score >= minScore);
  if (!band) throw new Error("a policy without a floor band");
  return band;
}

/** The share that a band pays, in basis points. */
export const paidBpsOf = ({ outcome, releasedBps }: Band): number =>
  releasedBps ?? (outcome === "release" ? BPS_WHOLE : 0);

/** An open above the policy's `maxAmount` is refused. The maximum is in USDC's units, so every other asset is refused too. */
export function refuseAboveMaximum(rules: PolicyRules, amount: bigint, asset: string): Refusal | null {
  const maximum = rules.maxAmount === undefined ? null : parseAmount(rules.maxAmount);
  if (maximum === null) return null;
  if (asset !== "USDC") {
    return refuse(
      "policy_max_amount_exceeded",
      `The policy's maxAmount is in USDC; it does not allow ${asset}.`,
    );
  }
  return amount <= maximum
    ? null
    : refuse(
        "policy_max_amount_exceeded",
        `The amount ${amount} is above the policy's maxAmount ${maximum}.`,
      );
}
