import { REASON_CODES, type ReasonCode } from "../../core/clauses/reason-codes.ts";
import { type Refusal, refuseField } from "../../core/errors.ts";
import { BPS_WHOLE, decimalsOf, parseAmount, parseUnits } from "../../core/money.ts";
import { type Outcome, type PolicyRules, parsePolicyRules } from "../../core/policy.ts";
import { type Always, alwaysOf } from "../../core/policy-spans.ts";

/** A draft of a policy as the fields of a form have it, and the rules that it means. */

type Fields = Readonly<Record<string, string>>;

/** A band as a person writes it: a score from 0 to 1, and a share in per cent. */
export type DraftBand = Readonly<Record<"minScore" | "outcome" | "share" | "label", string>>;

export type Draft = {
  readonly name: string;
  /** Null for the whole organisation. */
  readonly agentId: string | null;
  /** The version that it comes from; null for none. */
  readonly base: string | null;
  readonly bands: readonly DraftBand[];
  /** In USDC, such as 50.00; empty for none. */
  readonly maxAmount: string;
  /** The reason codes that decide by themselves. */
  readonly always: ReadonlyMap<ReasonCode, NonNullable<Always>>;
};

/** More bands than a policy may have, so that its own refusal says that there are too many. */
const BANDS_READ_MAX = 65;

const NEW_BAND: DraftBand = { minScore: "", outcome: "escalate", share: "", label: "" };

export function draftOfFields(fields: Fields): Draft {
  const bands: DraftBand[] = [];
  for (let at = 0; at < BANDS_READ_MAX && `bands.${at}.minScore` in fields; at++) {
    const { minScore, outcome, share, label } = NEW_BAND;
    bands.push({
      minScore: fields[`bands.${at}.minScore`] ?? minScore,
      outcome: fields[`bands.${at}.outcome`] ?? outcome,
      share: fields[`bands.${at}.share`] ?? share,
      label: fields[`bands.${at}.label`] ?? label,
    });
  }
  const always = new Map<ReasonCode, NonNullable<Always>>();
  for (const code of REASON_CODES) {
    const chosen = fields[`always.${code}`];
    if (chosen === "escalate" || chosen === "refund") always.set(code, chosen);
  }
  return {
    name: fields.name ?? "",
    agentId: fields.agent_id || null,
    base: fields.base || null,
    bands,
    maxAmount: fields.max_amount ?? "",
    always,
  };
}

/** The draft that a saved version, or the rules that are built in, begin with. Highest band first, as people read them. */
export const draftOfRules = (rules: PolicyRules, of: Pick<Draft, "name" | "agentId" | "base">): Draft => ({
  ...of,
  // A sort keeps the order of bands that begin at the same score, of which the earlier decides.
  bands: rules.bands
    .toSorted((a, b) => b.minScore - a.minScore)
    .map(({ minScore, outcome, releasedBps, label = "" }) => ({
      minScore: String(minScore),
      outcome,
      share: releasedBps === undefined ? "" : String(releasedBps / 100),
      label,
    })),
  maxAmount: rules.maxAmount === undefined ? "" : unitsOf(rules.maxAmount),
  always: new Map(
    REASON_CODES.flatMap((code) => {
      const always = alwaysOf(rules, code);
      return always === null ? [] : [[code, always] as const];
    }),
  ),
});

/** `8400000` → 8.4, in USDC. */
function unitsOf(amount: string): string {
  const decimals = decimalsOf("USDC");
  const digits = (parseAmount(amount) ?? 0n).toString().padStart(decimals + 1, "0");
  return `${digits.slice(0, -decimals)}.${digits.slice(-decimals)}`.replace(/\.?0+$/, "");
}

/** The draft with a band more, or with one less. */
export const withBand = (draft: Draft): Draft => ({ ...draft, bands: [...draft.bands, NEW_BAND] });
export const withoutBand = (draft: Draft, at: number): Draft => ({
  ...draft,
  bands: draft.bands.filter((_, index) => index !== at),
});

/** The rules that a draft means, or the first problem in them: the refusals of `parsePolicyRules`. */
export function rulesOfDraft({ bands, maxAmount, always }: Draft): PolicyRules | Refusal {
  const written = maxAmount.trim();
  const units = written === "" ? null : parseUnits(written, "USDC");
  if (written !== "" && units === null)
    return refuseField("rules.maxAmount", "must be an amount of USDC, such as 50.00, or empty");
  const codesOf = (wanted: Always) => REASON_CODES.filter((code) => always.get(code) === wanted);
  const [alwaysEscalate, alwaysRefund] = [codesOf("escalate"), codesOf("refund")];
  return parsePolicyRules({
    bands: bands.map(bandOf),
    ...(units !== null && { maxAmount: units.toString() }),
    ...(alwaysEscalate.length > 0 && { alwaysEscalate }),
    ...(alwaysRefund.length > 0 && { alwaysRefund }),
  });
}

/** What is no number stays a text, which is refused by its path. */
const numberOf = (text: string): number | string =>
  /^-?(\d+\.?\d*|\.\d+)(e-?\d+)?$/i.test(text.trim()) ? Number(text) : text;

function bandOf({ minScore, outcome, share, label }: DraftBand) {
  const isPartial = outcome === ("partial_release" satisfies Outcome);
  return {
    minScore: numberOf(minScore),
    outcome,
    ...(isPartial && { releasedBps: bpsOf(share) }),
    ...(label.trim() !== "" && { label: label.trim() }),
  };
}

/** A share in per cent, such as 40 or 12.5. What has more than two digits after the point is no number of basis points. */
function bpsOf(share: string): number | string {
  const text = share.trim();
  return /^\d{1,3}(\.\d{1,2})?$/.test(text) ? Math.round((Number(text) * BPS_WHOLE) / 100) : text;
}
