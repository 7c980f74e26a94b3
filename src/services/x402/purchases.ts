import { isRefusal, type Refusal, refuse } from "../../core/errors.ts";
import { MODES, type Mode } from "../../core/roles.ts";
import { isoTime } from "../../core/time.ts";
import { caip2Of } from "../../core/x402/chains.ts";
import { decideAttestation, type Known, type Purchase } from "../../core/x402/purchase.ts";
import { recordingAct } from "../admin/acts.ts";
import { type Authority, reaches, refuseAuthority, refuseOrganisation } from "../admin/authority.ts";
import { refuseInteger, refuseText, refuseUnlisted } from "../admin/fields.ts";
import type { Context } from "../context.ts";
import { listResource } from "../resources.ts";
import { decideLearnt } from "./reconcile.ts";
import { purchaseResource } from "./resources.ts";

export type ListPurchasesInput = {
  readonly organisation_id: string;
  readonly mode: Mode;
  /** 1 to 100; 25 where it is not said. */
  readonly limit?: number;
  /** A purchase's id: those older than it. */
  readonly starting_after?: string;
};

const LIMIT_DEFAULT = 25;
const LIMIT_MAX = 100;

/** An organisation's purchases in one mode, newest first. */
export async function listPurchases(ctx: Context, authority: Authority, input: ListPurchasesInput) {
  const { organisation_id: organisationId, mode, limit = LIMIT_DEFAULT, starting_after = null } = input;
  const { organisations, purchases } = ctx.store.reader;
  const refused =
    refuseAuthority(authority, "viewer") ??
    refuseUnlisted("mode", mode, MODES) ??
    refuseInteger("limit", limit, 1, LIMIT_MAX) ??
    refuseOrganisation(authority, organisations.get(organisationId));
  if (refused) return refused;
  const found = purchases.list({ organisationId, mode }, starting_after, limit + 1);
  const data = found.slice(0, limit).map((purchase) => resourceOf(ctx, purchase));
  return { ...listResource(data), has_more: found.length > limit };
}

/** One purchase, by its id. */
export async function showPurchase(
  ctx: Context,
  authority: Authority,
  { purchase_id: id }: { readonly purchase_id: string },
) {
  const refused = refuseAuthority(authority, "viewer");
  if (refused) return refused;
  const purchase = findPurchase(ctx, authority, id);
  return isRefusal(purchase) ? purchase : resourceOf(ctx, purchase);
}

export type ResolvePurchaseInput = {
  readonly purchase_id: string;
  /** What a person found out of the payment. */
  readonly known: Exclude<Known, "unknown">;
  readonly note?: string;
};

/**
 * A person says whether the seller was paid, where no chain tells (decisions.md, x402). Unpaid: the hold returns. Paid:
 * the warrant waits for a person who releases it. Refused with `illegal_transition`, and why, in every other case.
 */
export async function resolvePurchase(
  ctx: Context,
  authority: Authority,
  { purchase_id: id, known, note }: ResolvePurchaseInput,
) {
  const refused =
    refuseAuthority(authority, "admin") ?? (note === undefined ? null : refuseText("note", note));
  if (refused) return refused;
  const found = findPurchase(ctx, authority, id);
  if (isRefusal(found)) return found;
  const ids = { eventId: ctx.newId("event"), escalationId: ctx.newId("escalation") };
  const recordAct = recordingAct(ctx, authority, "purchase.resolved");
  const now = ctx.now();
  const resolved = await ctx.store.execute<Purchase>({
    scope: found,
    needs: { purchaseId: found.id, instance: true },
    decide: (snapshot) => {
      const { purchase } = snapshot;
      if (!purchase) return { answer: purchaseNotFound() };
      // The server's chains count, whatever the command line itself was told.
      const wrong = refuseAttestation(purchase, snapshot.instance?.chainIds ?? [], now);
      if (wrong) return { answer: wrong };
      const learnt = { known, knownBy: "person", note: note ?? null } as const;
      const change = decideLearnt(snapshot, learnt, ids, now);
      if (!change) throw new Error(`the purchase ${purchase.id} waits for nobody`);
      if (isRefusal(change)) return { answer: change };
      const answer: Purchase = { ...purchase, known, knownBy: "person", nextCheckAt: null };
      const act = recordAct(
        purchase.organisationId,
        purchase.id,
        purchaseResource(purchase, snapshot.warrant?.state ?? null),
        purchaseResource(answer, change.warrant?.after.state ?? snapshot.warrant?.state ?? null),
      );
      return { answer, change: { ...change, rows: [...(change.rows ?? []), act] } };
    },
  });
  return isRefusal(resolved) ? resolved : resourceOf(ctx, resolved);
}

/** Null where only a person can say what became of the payment. */
function refuseAttestation(purchase: Purchase, chainIds: readonly number[], now: number): Refusal | null {
  const { quote, phase, known, knownBy, validBefore } = purchase;
  const illegal = (message: string) => refuse("illegal_transition", message);
  if (phase !== "ended") return illegal("The purchase is under way; it ends by itself.");
  if (quote === null) return illegal("Nothing had to be paid for it.");
  if (quote.pays.kind !== "exact") return illegal("A voucher moves no money; there is nothing to find out.");
  if (known !== "unknown" || validBefore === null) {
    return illegal(`The payment is known already: ${known}${knownBy === null ? "" : `, by ${knownBy}`}.`);
  }
  const { chainId } = quote.pays;
  const isAsked = chainIds.includes(chainId);
  const { isOpen, from } = decideAttestation({ ...purchase, validBefore }, isAsked, now);
  if (isOpen) return null;
  return illegal(
    isAsked
      ? `HOLDFAST_EVM_RPC reaches ${caip2Of(chainId)}: the chain decides, and is asked again. Where it stays away, a person may say it once it has been asked in vain for a day: not before ${isoTime(from)}.`
      : `The seller may still have the payment taken until ${isoTime(validBefore)}, by the chain's clock. A person may say what became of it from ${isoTime(from)} on.`,
  );
}

function findPurchase(ctx: Context, authority: Authority, id: string): Purchase | Refusal {
  const purchase = ctx.store.reader.purchases.get(id);
  return purchase && reaches(authority, purchase) ? purchase : purchaseNotFound();
}

const purchaseNotFound = (): Refusal => refuse("purchase_not_found", "There is no such purchase.");

const resourceOf = (ctx: Context, purchase: Purchase) =>
  purchaseResource(
    purchase,
    purchase.warrantId === null ? null : (ctx.store.reader.warrants.find(purchase.warrantId)?.state ?? null),
  );
