import { isRefusal, type Refusal, refuse } from "../../core/errors.ts";
import { MODES, type Mode } from "../../core/roles.ts";
import { isoTime } from "../../core/time.ts";
import { caip2Of } from "../../core/x402/chains.ts";
import {
  decideAttestation,
  isContradicted,
  isOpenContradiction,
  type Known,
  type Purchase,
} from "../../core/x402/purchase.ts";
import { listResource } from "../../resources/list.ts";
import { purchaseResource } from "../../resources/purchase.ts";
import type { Reader } from "../../store/reader.ts";
import {
  type Authority,
  administer,
  reaches,
  refuseAuthority,
  refuseOrganisation,
} from "../admin/authority.ts";
import type { Audited } from "../audited.ts";
import type { Context } from "../context.ts";
import { refuseInteger, refuseText, refuseUnlisted } from "../fields.ts";
import { OF_PURCHASE } from "../transition.ts";
import { decideLearnt, learningNeeds, newLearningIds } from "./reconcile.ts";

export type ListPurchasesInput = {
  readonly organisation_id: string;
  readonly mode: Mode;
  /** 1 to 100; 25 by default. */
  readonly limit?: number;
  /** The id of a purchase: the list continues with the next older one. */
  readonly starting_after?: string;
};

const LIMIT_DEFAULT = 25;
const LIMIT_MAX = 100;

/** An organisation's purchases in one mode, newest first. */
export function listPurchases(ctx: Context, authority: Authority, input: ListPurchasesInput) {
  const { organisation_id: organisationId, mode, limit = LIMIT_DEFAULT, starting_after = null } = input;
  return ctx.store.read(async (reader) => {
    const refused =
      refuseAuthority(authority, "viewer") ??
      refuseUnlisted("mode", mode, MODES) ??
      refuseInteger("limit", limit, 1, LIMIT_MAX) ??
      refuseOrganisation(authority, await reader.organisations.get(organisationId));
    if (refused) return refused;
    // One row more than the page shows whether another page follows.
    const found = await reader.purchases.list({ organisationId, mode }, starting_after, limit + 1);
    const data = await Promise.all(found.slice(0, limit).map((purchase) => resourceOf(reader, purchase)));
    return { ...listResource(data), has_more: found.length > limit };
  });
}

/** One purchase, by its id. */
export async function showPurchase(
  ctx: Context,
  authority: Authority,
  { purchase_id: id }: { readonly purchase_id: string },
): Promise<PurchaseResource | Refusal> {
  const refused = refuseAuthority(authority, "viewer");
  if (refused) return refused;
  return ctx.store.read(async (reader) => {
    const purchase = await findPurchase(reader, authority, id);
    return isRefusal(purchase) ? purchase : resourceOf(reader, purchase);
  });
}

export type ResolvePurchaseInput = {
  readonly purchase_id: string;
  /** What a person has found out about the payment. */
  readonly known: Exclude<Known, "unknown">;
  readonly note?: string;
};

/**
 * A person attests whether the seller was paid, where the chain does not answer. If not, the hold returns. If
 * so, the warrant waits for a person to release it. In every other case refused with `illegal_transition` and
 * the reason.
 */
export async function resolvePurchase(
  ctx: Context,
  authority: Authority,
  { purchase_id: id, known, note }: ResolvePurchaseInput,
): Promise<PurchaseResource | Refusal> {
  const refused =
    refuseAuthority(authority, "admin") ?? (note === undefined ? null : refuseText("note", note));
  if (refused) return refused;
  const found = await ctx.store.read((reader) => findPurchase(reader, authority, id));
  if (isRefusal(found)) return found;
  const ids = newLearningIds(ctx);
  return administer(ctx, authority, "admin", {
    scope: found,
    needs: learningNeeds(found.id),
    decide(snapshot, now): Audited<PurchaseResource> {
      const { purchase, warrant, instance } = snapshot;
      if (!purchase) return { answer: purchaseNotFound() };
      // The chains of the last server count here, even where this command's own settings have others.
      const wrong = refuseAttestation(purchase, instance.chainIds, now);
      if (wrong) return { answer: wrong };
      const learnt = decideLearnt(snapshot, { known, knownBy: "person", note: note ?? null }, ids, now);
      // An unknown payment always has an open escalation, which only learning of the payment closes.
      if (!learnt) throw new Error(`the purchase ${purchase.id} waits for nobody`);
      if (isRefusal(learnt)) return { answer: learnt };
      const after = purchaseResource(learnt.purchase, learnt.warrant.state);
      const before = purchaseResource(purchase, warrant?.state ?? null);
      return {
        answer: after,
        put: learnt.change.put,
        entries: [{ action: "purchase.resolved", subject: purchase.id, before, after }],
      };
    },
  });
}

export type AcknowledgePurchaseInput = {
  readonly purchase_id: string;
  /** What was done about it. It is kept in the audit log. */
  readonly note?: string;
};

/**
 * An administrator acknowledges that the chain contradicts what a person said of a payment. No money moves: what
 * was paid or lost outside is set right outside. From then on it is no disagreement of the audit. Refused with
 * `illegal_transition` where nothing is contradicted. Acknowledged again, it stays as it is.
 */
export async function acknowledgePurchase(
  ctx: Context,
  authority: Authority,
  { purchase_id: id, note }: AcknowledgePurchaseInput,
): Promise<PurchaseResource | Refusal> {
  const refused =
    refuseAuthority(authority, "admin") ?? (note === undefined ? null : refuseText("note", note));
  if (refused) return refused;
  const found = await ctx.store.read((reader) => findPurchase(reader, authority, id));
  if (isRefusal(found)) return found;
  return administer(ctx, authority, "admin", {
    scope: found,
    needs: { purchase: id, warrant: OF_PURCHASE },
    decide({ purchase, warrant }, now): Audited<PurchaseResource> {
      if (!purchase) return { answer: purchaseNotFound() };
      const state = warrant?.state ?? null;
      if (!isContradicted(purchase))
        return { answer: refuse("illegal_transition", "No chain contradicts what is known of its payment.") };
      const row: Purchase = { ...purchase, acknowledgedAt: purchase.acknowledgedAt ?? now };
      const [before, after] = [purchaseResource(purchase, state), purchaseResource(row, state)];
      if (!isOpenContradiction(purchase)) return { answer: before };
      return {
        answer: after,
        put: [{ kind: "purchase", before: purchase, row }],
        entries: [{ action: "purchase.acknowledged", subject: id, before, after: { ...after, note } }],
      };
    },
  });
}

/** Null where only a person can find out whether the payment was made. */
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

async function findPurchase(reader: Reader, authority: Authority, id: string): Promise<Purchase | Refusal> {
  const purchase = await reader.purchases.get(id);
  return purchase && reaches(authority, purchase) ? purchase : purchaseNotFound();
}

const purchaseNotFound = (): Refusal => refuse("purchase_not_found", "There is no such purchase.");

type PurchaseResource = ReturnType<typeof purchaseResource>;

async function resourceOf(reader: Reader, purchase: Purchase): Promise<PurchaseResource> {
  const { warrantId } = purchase;
  const warrant = warrantId === null ? null : await reader.warrants.find(warrantId);
  return purchaseResource(purchase, warrant?.state ?? null);
}
