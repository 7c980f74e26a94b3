import type { OwedAmount, Payout } from "../../core/payout.ts";
import { submitPayout } from "../../core/postings.ts";
import type { PayoutWait, Waiting } from "../../core/rail.ts";
import { owedResource, type PayoutResource, payoutResource } from "../../resources/payout.ts";
import type { Put } from "../../store/change.ts";
import type { Scope } from "../../store/scope.ts";
import type { Entry } from "../audited.ts";
import { payoutPosting } from "../payout-posting.ts";

/** How a person begins to pay what is owed to a payee, by each rail. */
export type Begun = {
  readonly isReleased: boolean;
  readonly shown: PayoutResource;
  readonly put: readonly Put[];
  readonly entry: Entry;
};

const RELEASED: Waiting = { code: "released", detail: null, until: null };

/**
 * Releases what is owed to a payee at this moment: the server sends it with its next run, whatever the limits are and though a
 * payout failed. What is released later, of other warrants, is not released by this.
 */
export function releasedOf(
  { organisationId, mode }: Scope,
  { asset, payee, amount }: OwedAmount,
  before: PayoutWait | null,
  since: number,
): Begun {
  const row: PayoutWait = {
    ...{ organisationId, mode, asset, payee, code: "released", detail: null, until: null },
    ...{ released: amount, since },
  };
  const balance = { payable: amount, submitted: 0n, paidOut: 0n };
  const shown = owedResource({ organisationId, mode }, { asset, payee, balance }, "evm", RELEASED);
  return {
    ...{ isReleased: true, shown, put: [{ kind: "payoutWait", before, row }] },
    entry: { action: "payout.released", subject: payee, before: null, after: shown },
  };
}

/** Begins a payout that people pay by their own means. What was released to a wallet is not sent too. */
export function submittedOf(
  { organisationId, mode }: Scope,
  { asset, payee, amount }: OwedAmount,
  wait: PayoutWait | null,
  { id, recordedAt }: { readonly id: string; readonly recordedAt: number },
): Begun {
  const payout: Payout = {
    ...{ id, organisationId, mode, asset, payee, amount, rail: "book", status: "submitted", version: 1 },
    ...{ reference: null, reason: null, createdAt: recordedAt, endedAt: null },
  };
  const shown = payoutResource(payout);
  return {
    ...{ isReleased: false, shown },
    put: [
      { kind: "payout", before: null, row: payout },
      payoutPosting(payout, "payout_submitted", submitPayout(amount), recordedAt),
      ...nothingAwaited(wait, recordedAt),
    ],
    entry: { action: "payout.submitted", subject: id, before: null, after: shown },
  };
}

/** What a payee waited for is over with its payout, and so is its release. */
export const nothingAwaited = (before: PayoutWait | null, since: number): readonly Put[] =>
  before === null || (before.code === null && before.released === null)
    ? []
    : [
        {
          kind: "payoutWait",
          before,
          row: { ...before, code: null, detail: null, until: null, released: null, since },
        },
      ];

/** After a payout that failed its payee waits for a person, who may have released what it is owed already. */
export const failureAwaited = (
  { organisationId, mode, asset, payee, reason: detail }: Payout,
  before: PayoutWait | null,
  since: number,
): readonly Put[] =>
  before !== null && before.released !== null
    ? []
    : [
        {
          kind: "payoutWait",
          before,
          row: {
            ...{ organisationId, mode, asset, payee, code: "failed", detail, until: null },
            ...{ released: null, since },
          },
        },
      ];
