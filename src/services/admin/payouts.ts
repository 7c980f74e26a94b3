import { hashSecret } from "../../core/api-key.ts";
import type { WalletTransaction } from "../../core/chain-transaction.ts";
import { isRefusal, type Refusal, refuse, refuseField } from "../../core/errors.ts";
import { submissionOf } from "../../core/passkey.ts";
import {
  batchDigest,
  endedPayout,
  type OwedAmount,
  PAYOUT_STATUSES,
  type PayeeAccount,
  type PayeeName,
  type Payout,
  type PayoutEnd,
  type PayoutStatus,
  RAILS,
  totalsOf,
} from "../../core/payout.ts";
import { endPayout as endLegs, failPayout, type PayeeBalance } from "../../core/postings.ts";
import { type PayoutTransaction, railOf } from "../../core/rail.ts";
import type { Mode } from "../../core/roles.ts";
import {
  owedResource,
  type PayoutList,
  type PayoutResource,
  payoutResource,
} from "../../resources/payout.ts";
import type { Put } from "../../store/change.ts";
import type { Scope } from "../../store/scope.ts";
import type { Audited } from "../audited.ts";
import { useApproval } from "../auth/passkeys/use-approval.ts";
import type { Context } from "../context.ts";
import { refuseAsset, refuseInteger, refuseText, refuseUnlisted } from "../fields.ts";
import { fromCopy } from "../from-copy.ts";
import { refuseUnacknowledged } from "../instance.ts";
import { firstOf, ofScope, refuseCursor } from "../page-of-list.ts";
import { payoutPosting } from "../payout-posting.ts";
import { failureAwaited, releasedOf, submittedOf } from "../rails/release.ts";
import { owedOn, payoutOn } from "../rails/shown.ts";
import { type Authority, administer, reaches, readableScope, refuseAuthority } from "./authority.ts";
import { type Asked, readBatch, readBatchByHand, refuseOtherBatch } from "./payout-batch.ts";
import { refuseOwedAgain } from "./pooled-money.ts";

type ScopeInput = { readonly organisation_id: string; readonly mode: Mode };

export type SubmitInput = ScopeInput &
  Asked & {
    /** The batch that a person has seen, by its digest: anything else is refused. Without it, what is owed now. */
    readonly batch?: string;
    /** The token of a passkey's signature over that batch. */
    readonly passkey_token?: string;
    /** `book`: to be paid by your own means, also where a wallet could send it. */
    readonly rail?: "book";
  };

/**
 * Begins payouts: of all that is owed to a payee, or to each of the first thousand; all of them, or none. What goes
 * to an address on a treasury's chain a person releases instead, with a passkey and whatever the limits are: the answer shows it as
 * owed, and the server sends it. The operator of the machine, who has no passkey, submits what people pay by their own means alone.
 * Whoever is owed nothing gets no payout, so to run it twice submits nothing twice. `has_more` says that payees after them are owed something.
 */
export async function submitPayouts(
  ctx: Context,
  authority: Authority,
  { organisation_id, mode, batch: seen, passkey_token: token, rail, ...asked }: SubmitInput,
): Promise<PayoutList | Refusal> {
  const refused =
    refuseAuthority(authority, "admin") ??
    refuseAsset("asset", asked.asset ?? "USDC") ??
    (rail === undefined ? null : refuseUnlisted("rail", rail, RAILS.slice(0, 1))) ??
    (asked.payee === undefined && asked.asset !== undefined
      ? refuseField("asset", "goes together with payee; without both, all that is owed is submitted")
      : null);
  if (refused) return refused;
  const found = await ctx.store.read(async (reader) => {
    const scope = await readableScope(reader, authority, "admin", { organisation_id, mode });
    if (isRefusal(scope)) return scope;
    const isByHand = authority.kind === "machine" && asked.payee === undefined && rail === undefined;
    return {
      scope,
      batch: await (isByHand ? readBatchByHand(reader, scope) : readBatch(reader, scope, asked)),
    };
  });
  if (isRefusal(found)) return found;
  const { scope, batch } = found;
  const shown = { seen: seen ?? null, passkeyToken: token ?? null, rail };
  const made = await releasePayouts(ctx, authority, { scope, payees: batch.payouts, ...shown });
  return isRefusal(made) ? made : { object: "list", data: made, has_more: batch.hasMore, next_cursor: null };
}

type Release = {
  readonly scope: Scope;
  /** Whom to pay, each of them once. */
  readonly payees: readonly PayeeName[];
  /** The digest of the batch that a person has seen (`batchDigest`); null where they submit whatever is owed. */
  readonly seen: string | null;
  readonly passkeyToken: string | null;
  readonly rail: SubmitInput["rail"];
};

/**
 * Begins a payout of all that is owed to each of these payees, in one commit. Where one of them, or their sum, is above the
 * passkey threshold, or a wallet is to send one, a person's passkey must have signed exactly these: else `passkey_required` or `passkey_unavailable`. The
 * signature is used up in the same commit. Refused with `version_conflict` where something else is owed than what was seen.
 */
async function releasePayouts(
  ctx: Context,
  authority: Authority,
  { scope, payees, seen, passkeyToken, rail }: Release,
): Promise<readonly PayoutResource[] | Refusal> {
  const ids = payees.map(() => ctx.newId("payout"));
  return administer(ctx, authority, "admin", {
    scope,
    entriesMax: payees.length,
    needs: {
      payeeBalances: payees,
      payoutWaits: payees,
      railStates: payees.map(({ asset }) => ({ mode: scope.mode, asset })),
      passkeyApproval: passkeyToken === null ? null : hashSecret(passkeyToken),
      passkeys: authority.kind === "person" ? authority.userId : null,
    },
    decide(snapshot, now): Audited<readonly PayoutResource[]> {
      const owed = owedNow(payees, snapshot.payeeBalances);
      if (seen !== null && seen !== batchDigest(scope, owed)) return { answer: refuseOtherBatch() };
      const placeIn = (one: PayeeName) =>
        payees.findIndex(({ asset, payee }) => asset === one.asset && payee === one.payee);
      const isSent = (one: PayeeName) =>
        (rail ?? railOf(one.payee, snapshot.railStates[placeIn(one)] ?? null)) === "evm";
      const sent = owed.find(isSent);
      if (sent && authority.kind !== "person") return { answer: refuseWalletSends(sent) };
      const begun = owed.map((one) => {
        const at = placeIn(one);
        const wait = snapshot.payoutWaits[at] ?? null;
        return isSent(one)
          ? releasedOf(scope, one, wait, snapshot.recordedAt)
          : submittedOf(scope, one, wait, { id: ids[at] ?? "", recordedAt: snapshot.recordedAt });
      });
      const [first, ...others] = begun;
      if (first === undefined) return { answer: [] };
      const standsStill = refuseUnacknowledged(snapshot.instance, scope.mode);
      if (standsStill) return { answer: standsStill };
      const used =
        authority.kind === "person"
          ? useApproval(
              snapshot,
              submissionOf(authority.userId, batchDigest(scope, owed)),
              totalsOf(owed),
              now,
              begun.some(({ isReleased }) => isReleased) ? BY_WALLET : null,
            )
          : [];
      if (isRefusal(used)) return { answer: used };
      return {
        answer: begun.map(({ shown }) => shown),
        put: [...begun.flatMap(({ put }) => put), ...used],
        entries: [first.entry, ...others.map(({ entry }) => entry)],
      };
    },
  });
}

/** Why what a wallet sends is signed, however little it is. */
const BY_WALLET = "is sent by a wallet, whatever its limits are";

/** Above the wallet's limits a person with a passkey decides, and nobody instead of them. */
const refuseWalletSends = ({ payee }: PayeeName): Refusal =>
  refuse(
    "passkey_required",
    `What is owed to ${payee} is sent by the treasury: by itself within its limits, and above them, or after a payout that failed, once an admin releases it in the console with a passkey. To pay it by your own means, submit it with the option --rail \`book\`.`,
  );

/** Whoever is owed nothing is left out. */
const owedNow = (
  payees: readonly PayeeName[],
  balances: readonly (PayeeBalance | null)[],
): readonly OwedAmount[] =>
  payees
    .map(({ asset, payee }, at) => ({ asset, payee, amount: balances[at]?.payable ?? 0n }))
    .filter(({ amount }) => amount > 0n);

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
      payoutWaits: [{ asset: found.asset, payee: found.payee }],
      railStates: [{ mode: found.mode, asset: found.asset }],
    },
    decide({
      payout,
      payoutTransaction,
      payoutChainTransaction,
      instance,
      recordedAt,
      ...at
    }): Audited<PayoutResource> {
      if (!payout) return { answer: payoutNotFound(id) };
      const after = endedPayout(payout, end, recordedAt);
      if (isRefusal(after)) return { answer: after };
      const answer = payoutResource(after);
      if (after === payout) return { answer };
      const standsStill =
        refuseUnacknowledged(instance, payout.mode) ??
        refuseOwedAgain(authority, payout, end) ??
        refuseUnderWay(payout, payoutTransaction, payoutChainTransaction);
      if (standsStill) return { answer: standsStill };
      const isAwaited = after.status === "failed" && railOf(payout.payee, at.railStates[0] ?? null) === "evm";
      const legs = end.status === "paid" ? endLegs(payout.amount) : failPayout(payout.amount, end.returned);
      return {
        answer,
        put: [
          { kind: "payout", before: payout, row: after },
          payoutPosting(after, `payout_${end.status}`, legs, recordedAt),
          ...decided(payoutTransaction),
          ...(isAwaited ? failureAwaited(after, at.payoutWaits[0] ?? null, recordedAt) : []),
        ],
        entries: [
          { action: `payout.${end.status}`, subject: id, before: payoutResource(payout), after: answer },
        ],
      };
    },
  });
}

/** What a person had to decide about a payout on a chain is decided with its end. */
const decided = (before: PayoutTransaction | null): readonly Put[] =>
  before === null || before.problem === null
    ? []
    : [{ kind: "payoutTransaction", before, row: { ...before, problem: null } }];

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

const PAGE_MAX = 1_000;

export type ListInput = ScopeInput & {
  /** Without it, what is owed. */
  readonly status?: PayoutStatus;
  /** 1 to 1,000; without it, 100. */
  readonly limit?: number;
  /** The `next_cursor` of the page before. */
  readonly starting_after?: string;
};

/** Answers how to read the long pages of a list one after the other, from one copy of the ledger where there is one. */
export function pagesOfPayouts(
  given: Context,
  authority: Authority,
  input: Omit<ListInput, "limit" | "starting_after">,
): (after: string | null) => Promise<PayoutList | Refusal> {
  const ctx = fromCopy(given);
  return (after) =>
    listPayouts(ctx, authority, {
      ...input,
      limit: PAGE_MAX,
      ...(after !== null && { starting_after: after }),
    });
}

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
      if (Number.isNaN(at)) return refuseCursor();
      const { rows, more } = firstOf(await reader.payees.owed(scope, at, limit + 1), limit, placeOf);
      const data: PayoutResource[] = [];
      for (const row of rows) {
        const { rail, waiting } = await owedOn(reader, scope, row);
        data.push(owedResource(scope, row, rail, waiting));
      }
      return { object: "list", data, ...more };
    }
    if (after !== null && ofScope(scope, await reader.payouts.get(after)) === null) return refuseCursor();
    const payouts = await reader.payouts.list(scope, status, after, limit + 1);
    const { rows, more } = firstOf(payouts, limit, ({ id }) => id);
    const data: PayoutResource[] = [];
    for (const row of rows) data.push(payoutResource(row, await payoutOn(reader, row)));
    return { object: "list", data, ...more };
  });
}

const placeOf = ({ at }: PayeeAccount): string => String(at);
