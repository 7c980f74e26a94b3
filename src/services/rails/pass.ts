import { isStopped } from "../../core/rail.ts";
import type { Treasury } from "../../core/treasury.ts";
import { keepsPayouts } from "../../core/treasury-watch.ts";
import type { Context } from "../context.ts";
import { createPayingBatch, type PayingWallet, type Trouble } from "./batch.ts";

/**
 * A pass through all that is owed on a wallet's chain: each organisation in turn gets one payout, oldest payees first, so that one
 * with a million payees keeps nobody waiting, though none of them can be paid. It goes on from run to run, and each run does a
 * limited amount.
 */
export type Pass = {
  /**
   * Goes on until it is through, nothing more fits under way, or something keeps the wallet from paying.
   *
   * @param isOver whether the run has taken long enough
   */
  goOn(isOver: () => boolean): Promise<Trouble | "more" | "done">;
};

/** How many payees a run looks at. */
const LOOKED_AT_MAX = 500;
/** How many payees of an organisation are read at once, and looked at in one turn at most. */
const PAGE = 100;

/** Where the pass is in an organisation's payees. */
type Place = {
  readonly treasury: Treasury;
  readonly organisationId: string;
  after: number;
  /** Until when a payee waits for the limit of 24 hours: those after it must not use that up. Null where none does. */
  limitedUntil: number | null;
  /** The payees that were read and not looked at. */
  page: { readonly at: number; readonly payee: string; readonly payable: bigint }[];
};

export async function beginPass(ctx: Context, paying: PayingWallet): Promise<Pass> {
  const places: Place[] = await ctx.store.read(async ({ rails }) => {
    const found: Place[] = [];
    for (const treasury of paying.tokens)
      for (const organisationId of await rails.owing(treasury.mode, treasury.asset))
        found.push({ treasury, organisationId, after: 0, limitedUntil: null, page: [] });
    return found;
  });
  return {
    async goOn(isOver) {
      const batch = createPayingBatch(ctx, paying);
      for (let lookedAt = 0; lookedAt < LOOKED_AT_MAX && !isOver(); lookedAt++) {
        const place = places[0];
        if (place === undefined) return "done";
        const next = await nextOf(ctx, place);
        const [state, watch] = await ctx.store.read(({ rails, treasuryWatches }) =>
          Promise.all([rails.state(place.treasury), treasuryWatches.get(place.treasury)]),
        );
        if (next === null || state === null || isStopped(state) || keepsPayouts(watch)) {
          places.shift();
          continue;
        }
        const { treasury, organisationId } = place;
        const { mode, asset } = treasury;
        const owed = { organisationId, mode, asset, payee: next.payee };
        const paid = await batch.pay(owed, next.payable, treasury, state, place.limitedUntil);
        if (paid === "full") return "more";
        if (typeof paid === "object" && "code" in paid) return paid;
        if (typeof paid === "object") place.limitedUntil = paid.limitedUntil;
        place.page.shift();
        place.after = next.at;
        // Then it is the next organisation's turn: a page of payees that get nothing is a turn too.
        if (paid === "submitted" || place.page.length === 0) places.push(...places.splice(0, 1));
      }
      return "more";
    },
  };
}

/** The next payee of an organisation; null where it has no more. */
async function nextOf(ctx: Context, place: Place): Promise<Place["page"][number] | null> {
  if (place.page.length === 0) {
    const { treasury, organisationId, after } = place;
    const { mode, asset } = treasury;
    const owed = await ctx.store.read(({ payees }) =>
      payees.owed({ organisationId, mode }, after, PAGE, asset),
    );
    place.page = owed.map(({ at, payee, balance }) => ({ at, payee, payable: balance.payable }));
  }
  return place.page[0] ?? null;
}
