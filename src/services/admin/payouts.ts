import type { WalletTransaction } from "../../core/chain-transaction.ts";
import { isRefusal, type Refusal, refuse, refuseField } from "../../core/errors.ts";
import { isAboveThreshold } from "../../core/passkey.ts";
import {
  endedPayout,
  PAYOUT_STATUSES,
  type PayeeAccount,
  type PayeeName,
  type Payout,
  type PayoutEnd,
  type PayoutStatus,
  RAILS,
} from "../../core/payout.ts";
import { endPayout as endLegs, failPayout, submitPayout as submitLegs } from "../../core/postings.ts";
import { NO_PROGRESS, type Progress } from "../../core/progress.ts";
import { type PayoutTransaction, type PayoutWait, railOf } from "../../core/rail.ts";
import type { Mode } from "../../core/roles.ts";
import {
  owedResource,
  type PayoutList,
  type PayoutResource,
  payoutResource,
} from "../../resources/payout.ts";
import type { Scope } from "../../store/scope.ts";
import type { Audited } from "../audited.ts";
import type { Context } from "../context.ts";
import { refuseAsset, refuseInteger, refuseText, refuseUnlisted } from "../fields.ts";
import { refuseUnacknowledged } from "../instance.ts";
import { firstOf } from "../page-of-list.ts";
import { payoutPosting } from "../payout-posting.ts";
import { releasePut } from "../rails/release.ts";
import { owedOn, payoutOn } from "../rails/shown.ts";
import { type Authority, administer, reaches, readableScope, refuseAuthority } from "./authority.ts";

type ScopeInput = { readonly organisation_id: string; readonly mode: Mode };

/** How many payouts one run submits. */
const SUBMITTED_MAX = 1_000;
/** How many of them are given to the store at once. */
const AT_ONCE = 50;

export type SubmitInput = ScopeInput & {
  /** Without it, every payee that is owed something, of any asset. */
  readonly payee?: string;
  /** What is owed to that payee; without it, `USDC`. */
  readonly asset?: string;
  /** `book`: to be paid by your own means, also where a wallet could send it. */
  readonly rail?: "book";
};

/**
 * Begins payouts: of all that is owed to a payee, or to each of the first thousand. What goes to an address on a treasury's chain
 * is released instead, whatever the limits are: the answer shows it as owed, and the server sends it. Whoever is owed nothing gets no payout, so to
 * run it twice submits nothing twice. `has_more` says that more are owed something:
 * the payees after them, or those whose payout was refused, such as above the threshold. It is refused where all were.
 */
export async function submitPayouts(
  ctx: Context,
  authority: Authority,
  input: SubmitInput,
  progress: Progress = NO_PROGRESS,
): Promise<PayoutList | Refusal> {
  const { asset = "USDC", payee, rail } = input;
  const refused =
    refuseAuthority(authority, "admin") ??
    refuseAsset("asset", asset) ??
    (rail === undefined ? null : refuseUnlisted("rail", rail, RAILS.slice(0, 1))) ??
    (payee === undefined && input.asset !== undefined
      ? refuseField("asset", "goes together with payee; without both, all that is owed is submitted")
      : null);
  if (refused) return refused;
  const found = await ctx.store.read(async (reader) => {
    const scope = await readableScope(reader, authority, "admin", input);
    if (isRefusal(scope)) return scope;
    const owed =
      payee === undefined ? await reader.payees.owed(scope, 0, SUBMITTED_MAX + 1) : [{ payee, asset }];
    return { scope, owed };
  });
  if (isRefusal(found)) return found;
  const { scope, owed } = found;
  const data: PayoutResource[] = [];
  let left: Refusal | null = null;
  const [now, hasMore] = [owed.slice(0, SUBMITTED_MAX), owed.length > SUBMITTED_MAX];
  for (let at = 0; at < now.length; at += AT_ONCE) {
    const submitted = await Promise.all(
      now.slice(at, at + AT_ONCE).map((name) => submitOne(ctx, authority, scope, name, rail)),
    );
    for (const answer of submitted) {
      if (isRefusal(answer)) left ??= answer;
      else if (answer.payout !== null) data.push(answer.payout);
    }
    progress.update(Math.min(at + AT_ONCE, now.length), now.length);
  }
  if (left && data.length === 0) return left;
  return { object: "list", data, has_more: hasMore || left !== null, next_cursor: null };
}

/** `payout` is null where nothing is owed. */
type Submitted = { readonly payout: PayoutResource | null };

function submitOne(
  ctx: Context,
  authority: Authority,
  scope: Scope,
  { asset, payee }: PayeeName,
  rail: SubmitInput["rail"],
): Promise<Submitted | Refusal> {
  const id = ctx.newId("payout");
  return administer(ctx, authority, "admin", {
    scope,
    needs: {
      payeeBalance: { asset, payee },
      payoutWait: { asset, payee },
      railState: { mode: scope.mode, asset },
    },
    decide(
      { payeeBalance, payoutWait, railState, organisation, instance, recordedAt },
      now,
    ): Audited<Submitted> {
      const amount = payeeBalance?.payable ?? 0n;
      if (amount === 0n) return { answer: { payout: null } };
      const refused =
        refuseUnacknowledged(instance, scope.mode) ??
        refuseUnsigned(authority, organisation.passkeyThreshold, { amount, asset });
      if (refused) return { answer: refused };
      if ((rail ?? railOf(payee, railState)) === "evm")
        return released(authority, scope, { asset, payee, amount }, payoutWait, recordedAt);
      const { organisationId, mode } = scope;
      const payout: Payout = {
        ...{ id, organisationId, mode, asset, payee, amount, rail: "book", status: "submitted", version: 1 },
        ...{ reference: null, reason: null, createdAt: now, endedAt: null },
      };
      const after = payoutResource(payout);
      return {
        answer: { payout: after },
        put: [
          { kind: "payout", before: null, row: payout },
          payoutPosting(payout, "payout_submitted", submitLegs(amount), recordedAt),
          ...(payoutWait?.released == null ? [] : [unreleasedPut(payoutWait, recordedAt)]),
        ],
        entries: [{ action: "payout.submitted", subject: id, before: null, after }],
      };
    },
  });
}

/** What was released and is paid by other means is not sent too. */
const unreleasedPut = (before: PayoutWait, since: number) =>
  ({
    kind: "payoutWait",
    before,
    row: { ...before, code: null, detail: null, until: null, released: null, since },
  }) as const;

/** What a wallet is to send: it does so by itself within its limits, and above them where the operator of the machine says so. */
function released(
  authority: Authority,
  scope: Scope,
  { amount, ...name }: PayeeName & { readonly amount: bigint },
  before: PayoutWait | null,
  recordedAt: number,
): Audited<Submitted> {
  if (authority.kind !== "machine") {
    return {
      answer: refuse(
        "passkey_required",
        `A wallet sends what is owed to ${name.payee} by itself, within its limits. Above them, or after a payout that failed, the operator of the machine releases it, with holdfast payouts submit.`,
      ),
    };
  }
  const balance = { payable: amount, submitted: 0n, paidOut: 0n };
  const after = owedResource(scope, { ...name, balance }, "evm", {
    ...{ code: "released", detail: null, until: null },
  });
  return {
    answer: { payout: after },
    put: [releasePut(scope, name, amount, before, recordedAt)],
    entries: [{ action: "payout.released", subject: name.payee, before: null, after }],
  };
}

/** Above the passkey threshold nobody pays out in a browser: the operator of the machine does. */
const refuseUnsigned = (
  authority: Authority,
  threshold: bigint | null,
  priced: { readonly amount: bigint; readonly asset: string },
): Refusal | null =>
  authority.kind !== "machine" && isAboveThreshold(threshold, priced)
    ? refuse(
        "passkey_required",
        `The payout of ${priced.amount} ${priced.asset} is above the passkey threshold ${threshold}. The operator of the machine submits it, with holdfast payouts submit.`,
      )
    : null;

/** Records that a payout has reached its payee. With the same reference again, the answer is the payout as it is. */
export function markPaid(
  ctx: Context,
  authority: Authority,
  { payout_id, reference }: { readonly payout_id: string; readonly reference: string },
): Promise<PayoutResource | Refusal> {
  const refused = refuseText("reference", reference);
  return refused
    ? Promise.resolve(refused)
    : endOne(ctx, authority, payout_id, { status: "paid", reference });
}

/**
 * Records that a payout has failed, or (`returned`) that its payment came back: its amount is owed again. With the same reason
 * again, the answer is the payout as it is.
 */
export function failPayoutOf(
  ctx: Context,
  authority: Authority,
  {
    payout_id,
    reason,
    returned = false,
  }: { readonly payout_id: string; readonly reason: string; readonly returned?: boolean },
): Promise<PayoutResource | Refusal> {
  const refused = refuseText("reason", reason);
  return refused
    ? Promise.resolve(refused)
    : endOne(ctx, authority, payout_id, { status: "failed", reason, returned });
}

async function endOne(
  ctx: Context,
  authority: Authority,
  id: string,
  end: PayoutEnd,
): Promise<PayoutResource | Refusal> {
  const refused = refuseAuthority(authority, "admin");
  if (refused) return refused;
  const found = await ctx.store.read((reader) => reader.payouts.get(id));
  if (!found || !reaches(authority, found)) return payoutNotFound(id);
  return administer(ctx, authority, "admin", {
    scope: found,
    needs: {
      payout: id,
      payoutTransaction: { from: "payout" },
      payoutChainTransaction: { from: "payoutTransaction" },
    },
    decide(
      { payout, payoutTransaction, payoutChainTransaction, instance, recordedAt },
      now,
    ): Audited<PayoutResource> {
      if (!payout) return { answer: payoutNotFound(id) };
      const after = endedPayout(payout, end, now);
      if (isRefusal(after)) return { answer: after };
      const answer = payoutResource(after);
      if (after === payout) return { answer };
      const standsStill =
        refuseUnacknowledged(instance, payout.mode) ??
        refuseUnderWay(payout, payoutTransaction, payoutChainTransaction);
      if (standsStill) return { answer: standsStill };
      const legs = end.status === "paid" ? endLegs(payout.amount) : failPayout(payout.amount, end.returned);
      return {
        answer,
        put: [
          { kind: "payout", before: payout, row: after },
          payoutPosting(after, `payout_${end.status}`, legs, recordedAt),
        ],
        entries: [
          { action: `payout.${end.status}`, subject: id, before: payoutResource(payout), after: answer },
        ],
      };
    },
  });
}

/** What a chain may still do, or has done and nobody has looked at, no person decides. */
function refuseUnderWay(
  { id }: Payout,
  of: PayoutTransaction | null,
  transaction: WalletTransaction | null,
): Refusal | null {
  if (of === null || transaction === null || of.judged) return null;
  return refuse(
    "illegal_transition",
    transaction.state === "open"
      ? `The transaction of the payout ${id} may still get into a block, so nobody ends it by hand. The server does when the chain has confirmed it.`
      : `The transaction of the payout ${id} has ended, and the server is about to account for it.`,
  );
}

const payoutNotFound = (id: string): Refusal => refuse("payout_not_found", `There is no payout ${id}.`);

export const PAGE_MAX = 1_000;

export type ListInput = ScopeInput & {
  /** Without it, what is owed. */
  readonly status?: PayoutStatus;
  /** 1 to 1,000; without it, 100. */
  readonly limit?: number;
  /** The `next_cursor` of the page before. */
  readonly starting_after?: string;
};

/** A page of payouts of one status, newest first; or of what is owed, in the order in which each payee was first paid. */
export async function listPayouts(
  ctx: Context,
  authority: Authority,
  input: ListInput,
): Promise<PayoutList | Refusal> {
  const { status = "owed", limit = 100, starting_after: after = null } = input;
  const refused =
    refuseAuthority(authority, "viewer") ??
    refuseUnlisted("status", status, PAYOUT_STATUSES) ??
    refuseInteger("limit", limit, 1, PAGE_MAX);
  if (refused) return refused;
  return ctx.store.read(async (reader) => {
    const scope = await readableScope(reader, authority, "viewer", input);
    if (isRefusal(scope)) return scope;
    if (status === "owed") {
      const at = after === null ? 0 : Number(/^[0-9]{1,15}$/.exec(after)?.[0] ?? Number.NaN);
      if (Number.isNaN(at)) return refuseField("starting_after", "must be the next_cursor of a page before");
      const { rows, more } = firstOf(await reader.payees.owed(scope, at, limit + 1), limit, placeOf);
      const data: PayoutResource[] = [];
      for (const row of rows) {
        const { rail, waiting } = await owedOn(reader, scope, row);
        data.push(owedResource(scope, row, rail, waiting));
      }
      return { object: "list", data, ...more };
    }
    const payouts = await reader.payouts.list(scope, status, after, limit + 1);
    const { rows, more } = firstOf(payouts, limit, ({ id }) => id);
    const data: PayoutResource[] = [];
    for (const row of rows) data.push(payoutResource(row, await payoutOn(reader, row)));
    return { object: "list", data, ...more };
  });
}

const placeOf = ({ at }: PayeeAccount): string => String(at);
