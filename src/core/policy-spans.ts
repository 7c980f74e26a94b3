import type { ReasonCode } from "./clauses/reason-codes.ts";
import { type Band, bandAt, type PolicyRules, paidBpsOf } from "./policy.ts";

/** The bands of a policy as people see them: which stretch of the line from 0 to 1 each decides, and what two versions do differently. */

/** A stretch of scores: from `from` up to but without `to`, unless it is closed. Only the last one is, and ends with 1. */
export type Stretch = { readonly from: number; readonly to: number; readonly isClosed: boolean };

/** A stretch of scores that one band decides. */
export type Span = Stretch & { readonly band: Band };

/** The stretches of the line, lowest first. A band that another one hides has none. */
export function spansOf(rules: PolicyRules): readonly Span[] {
  return stretchesOf(rules).map((stretch) => ({ ...stretch, band: bandAt(rules, stretch.from) }));
}

/** The stretches between the scores at which a band of any of these rules begins. */
function stretchesOf(...all: readonly PolicyRules[]): readonly Stretch[] {
  const starts = [...new Set(all.flatMap(({ bands }) => bands.map(({ minScore }) => minScore)))];
  starts.sort((a, b) => a - b);
  return starts.map((from, at) => ({
    from,
    to: starts[at + 1] ?? 1,
    isClosed: at === starts.length - 1,
  }));
}

/** The bands that no score reaches, since an earlier one begins at the same score. */
export const hiddenBands = (rules: PolicyRules): readonly Band[] => {
  const shown = new Set(spansOf(rules).map(({ band }) => band));
  return rules.bands.filter((band) => !shown.has(band));
};

/** A stretch of scores that two versions decide differently, or under another label. */
export type ChangedSpan = Stretch & { readonly before: Band; readonly after: Band };

export type PolicyChanges = {
  readonly spans: readonly ChangedSpan[];
  /** Null where the maximum stays; else both, null for none. */
  readonly maxAmount: { readonly before: string | null; readonly after: string | null } | null;
  /** The reason codes for which another list decides than before; null where none does. */
  readonly codes: readonly {
    readonly code: ReasonCode;
    readonly before: Always;
    readonly after: Always;
  }[];
};

/** What a reason code leads to, whatever the score; null where the score decides. */
export type Always = "escalate" | "refund" | null;

/** `alwaysRefund` is asked first. */
export function alwaysOf({ alwaysRefund = [], alwaysEscalate = [] }: PolicyRules, code: ReasonCode): Always {
  if (alwaysRefund.includes(code)) return "refund";
  return alwaysEscalate.includes(code) ? "escalate" : null;
}

/** What two versions do differently. Bands in another order that decide the same are no difference. */
export function changesBetween(before: PolicyRules, after: PolicyRules): PolicyChanges {
  const codes = new Set(
    [before, after].flatMap(({ alwaysRefund = [], alwaysEscalate = [] }) => [
      ...alwaysRefund,
      ...alwaysEscalate,
    ]),
  );
  const amounts = { before: before.maxAmount ?? null, after: after.maxAmount ?? null };
  return {
    spans: changedSpans(before, after),
    maxAmount: amounts.before === amounts.after ? null : amounts,
    codes: [...codes]
      .map((code) => ({ code, before: alwaysOf(before, code), after: alwaysOf(after, code) }))
      .filter((code) => code.before !== code.after),
  };
}

export const isUnchanged = ({ spans, maxAmount, codes }: PolicyChanges): boolean =>
  spans.length + codes.length === 0 && maxAmount === null;

function changedSpans(before: PolicyRules, after: PolicyRules): readonly ChangedSpan[] {
  const changed: ChangedSpan[] = [];
  for (const stretch of stretchesOf(before, after)) {
    const { from, to, isClosed } = stretch;
    const span = { ...stretch, before: bandAt(before, from), after: bandAt(after, from) };
    if (decidesAlike(span.before, span.after)) continue;
    const last = changed.at(-1);
    const goesOn = last?.to === from && last.before === span.before && last.after === span.after;
    if (last && goesOn) changed.splice(-1, 1, { ...last, to, isClosed });
    else changed.push(span);
  }
  return changed;
}

const decidesAlike = (one: Band, other: Band): boolean =>
  one.outcome === other.outcome && paidBpsOf(one) === paidBpsOf(other) && one.label === other.label;
