import { hashJson } from "./canonical.ts";
import { isReasonCode, type ReasonCode } from "./clauses/reason-codes.ts";
import { isRefusal, type Refusal, refuse, refuseField } from "./errors.ts";
import { BPS_WHOLE, parseAmount } from "./money.ts";

/** What a policy can decide (interface.md, Policy). */
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
  /** Null on an organisation's own policy. */
  readonly agentId: string | null;
  readonly name: string;
  readonly version: number;
  readonly rules: PolicyRules;
  readonly rulesHash: string;
  readonly createdAt: number;
};

/** Only a clean pass pays (interface.md, Resolution order). */
export const BUILT_IN_RULES: PolicyRules = {
  bands: [
    { minScore: 1, outcome: "release" },
    { minScore: 0, outcome: "escalate" },
  ],
};
export const BUILT_IN_RULES_HASH = hashJson(BUILT_IN_RULES);

/** What a score is stored as: basis points, rounded half up (decisions.md, Warrants). */
export const scoreInBps = (score: number): number => Math.round(score * BPS_WHOLE);

const BANDS_MAX = 64;
const LABEL_LENGTH_MAX = 200;
/** Rules are read with every open: 16 kB of JSON say a lot. */
const RULES_LENGTH_MAX = 16 * 1024;

type Fields = Readonly<Record<string, unknown>>;

const isObject = (value: unknown): value is Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value);

function refuseUnknownField(fields: Fields, known: readonly string[], path: string): Refusal | null {
  const unknown = Object.keys(fields).find((name) => !known.includes(name));
  return unknown === undefined
    ? null
    : refuseField(`${path}.${unknown}`, `unknown field; known are ${known.join(", ")}`);
}

function parseBand(value: unknown, path: string): Band | Refusal {
  if (!isObject(value)) return refuseField(path, "must be an object");
  const unknown = refuseUnknownField(value, ["minScore", "outcome", "releasedBps", "label"], path);
  if (unknown) return unknown;
  const { minScore, outcome, releasedBps, label } = value;
  if (typeof minScore !== "number" || !(minScore >= 0 && minScore <= 1)) {
    return refuse("policy_band_out_of_range", `${path}.minScore: must be a number from 0 to 1`);
  }
  if (!OUTCOMES.some((known) => known === outcome)) {
    return refuseField(`${path}.outcome`, `must be one of ${OUTCOMES.join(", ")}`);
  }
  if (outcome === "partial_release") {
    const whole = typeof releasedBps === "number" && Number.isInteger(releasedBps);
    if (!whole || releasedBps <= 0 || releasedBps >= BPS_WHOLE) {
      return refuse(
        "policy_band_bps_required",
        `${path}.releasedBps: must be an integer strictly between 0 and 10000`,
      );
    }
  } else if (releasedBps !== undefined) {
    return refuseField(`${path}.releasedBps`, `goes with partial_release only, not with ${String(outcome)}`);
  }
  if (label !== undefined && (typeof label !== "string" || label.length > LABEL_LENGTH_MAX)) {
    return refuseField(`${path}.label`, `must be a string of at most ${LABEL_LENGTH_MAX} characters`);
  }
  return value as unknown as Band;
}

function refuseReasonCodes(value: unknown, path: string): Refusal | null {
  if (value === undefined) return null;
  if (!Array.isArray(value)) return refuseField(path, "must be an array of reason codes");
  const index = value.findIndex((code) => !isReasonCode(code));
  return index < 0
    ? null
    : refuseField(`${path}.${index}`, `${JSON.stringify(value[index])} is not a reason code`);
}

/**
 * The rules of a policy that is about to be saved, or why they are none: `policy_no_bands`, `policy_band_out_of_range`,
 * `policy_band_bps_required`, `policy_no_floor_band`, else `validation_failed` naming the path.
 */
export function parsePolicyRules(value: unknown): PolicyRules | Refusal {
  if (!isObject(value)) return refuseField("rules", "must be an object");
  const unknown = refuseUnknownField(
    value,
    ["bands", "maxAmount", "alwaysEscalate", "alwaysRefund"],
    "rules",
  );
  if (unknown) return unknown;
  const { bands } = value;
  if (!Array.isArray(bands) || bands.length === 0) {
    return refuse("policy_no_bands", "rules.bands: a policy needs at least one band");
  }
  if (bands.length > BANDS_MAX) return refuseField("rules.bands", `must be at most ${BANDS_MAX} bands`);
  for (const [index, candidate] of bands.entries()) {
    const band = parseBand(candidate, `rules.bands.${index}`);
    if (isRefusal(band)) return band;
  }
  if (!bands.some((band) => band.minScore === 0)) {
    return refuse(
      "policy_no_floor_band",
      "rules.bands: one band must have minScore 0, so that every score has an outcome",
    );
  }
  if (value.maxAmount !== undefined && parseAmount(value.maxAmount) === null) {
    return refuseField("rules.maxAmount", "must be a string of digits, at most 9223372036854775807");
  }
  if (JSON.stringify(value).length > RULES_LENGTH_MAX)
    return refuseField("rules", "must be at most 16 kB of JSON");
  return (
    refuseReasonCodes(value.alwaysEscalate, "rules.alwaysEscalate") ??
    refuseReasonCodes(value.alwaysRefund, "rules.alwaysRefund") ??
    (value as unknown as PolicyRules)
  );
}

/** An outcome and its share: 10000 on a release, the band's on a partial release, 0 where nothing is paid. */
export type PolicyDecision = {
  readonly outcome: Outcome;
  readonly releasedBps: number;
  readonly bandLabel: string | null;
};

/**
 * How a verification picks the outcome (interface.md): `alwaysRefund`, then `alwaysEscalate`, then the highest band that
 * the score reaches; of bands with equal `minScore`, the earlier.
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
  const band = rules.bands
    .toSorted((a, b) => b.minScore - a.minScore)
    .find(({ minScore }) => score >= minScore);
  if (!band) throw new Error("a policy without a floor band");
  const released = band.outcome === "release" ? BPS_WHOLE : 0;
  return { outcome: band.outcome, releasedBps: band.releasedBps ?? released, bandLabel: band.label ?? null };
}

/** A warrant above a policy's `maxAmount` is refused at open; the maximum speaks of USDC's units only (decisions.md). */
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
