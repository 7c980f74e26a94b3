import { isRefusal, type Refusal } from "../../core/errors.ts";
import { type RailState, waitSentence, watchKeyOf, whatKeeps } from "../../core/rail.ts";
import type { Treasury } from "../../core/treasury.ts";
import { type TreasuryWatch, watchKey } from "../../core/treasury-watch.ts";
import { caip2Of } from "../../core/x402/chains.ts";
import { type TreasuryState, treasuryStates } from "../chain/treasury-states.ts";
import type { Context } from "../context.ts";
import { type ResumeInput, resumeRail } from "../rails/states.ts";
import { type Authority, administratorOf, refuseAuthority } from "./authority.ts";

function waitsFor(rail: RailState, watch: TreasuryWatch | null) {
  const kept = whatKeeps(rail, watch);
  return kept && { code: kept.code, message: waitSentence(kept) };
}

const treasuryResource = (
  { mode, asset, chainId, token, address, limits }: Treasury,
  rail: RailState | null,
  deposits: TreasuryState | null,
) => ({
  object: "treasury" as const,
  mode,
  asset,
  /** CAIP-2. */
  chain: caip2Of(chainId),
  token,
  /** Where deposits are sent to, and payouts come from. It also needs the chain's coin, for gas. */
  address,
  payout_max: limits.payoutMax.toString(),
  day_max: limits.dayMax.toString(),
  /** What keeps payouts of it from being sent, as the server last found; null where nothing does. */
  waits_for: rail && waitsFor(rail, deposits?.watch ?? null),
  /** The wallet's next nonce, where its chain has transactions that the ledger does not know: `treasuries resume` takes it. */
  unknown_until_nonce: rail?.seenNonce ?? null,
  /** The last block at which its transfers added up to its balance, and that balance; null before the first. */
  block: deposits?.watch.reconciled.number ?? null,
  balance: deposits?.watch.balance.toString() ?? null,
  /** Why nothing is credited at the moment; null where all is as it should be. */
  stopped: deposits?.watch.stopped ?? null,
  /** Transfers that wait for a person, of which ten thousand at most are counted, and deposits that are in no block any more. */
  unassigned: deposits?.unassigned ?? 0,
  gone: deposits?.gone.count ?? 0,
});

type TreasuryResource = ReturnType<typeof treasuryResource>;

/** The tokens and wallets by which money comes in and goes out on chains, as this process is configured. */
export async function listTreasuries(
  { treasuries, store }: Context,
  authority: Authority,
): Promise<
  | {
      readonly object: "list";
      readonly data: readonly TreasuryResource[];
      readonly has_more: false;
    }
  | Refusal
> {
  const refused = refuseAuthority(authority, "admin");
  if (refused) return refused;
  const { rails, watches } = await store.read(async (reader) => ({
    rails: await reader.rails.states(),
    watches: await treasuryStates(reader),
  }));
  const data = treasuries.map((treasury) =>
    treasuryResource(
      treasury,
      rails.find(({ mode, asset }) => mode === treasury.mode && asset === treasury.asset) ?? null,
      watches.find(({ watch }) => watchKey(watch) === watchKey(treasury)) ?? null,
    ),
  );
  return { object: "list", data, has_more: false };
}

/** Lets payouts of a token go on that have stopped until a person looked. */
export async function resumeTreasury(ctx: Context, authority: Authority, input: ResumeInput) {
  const refused = refuseAuthority(authority, "admin");
  if (refused) return refused;
  const state = await resumeRail(ctx, administratorOf(authority), input);
  if (isRefusal(state)) return state;
  const { mode, asset } = state;
  const watch = await ctx.store.read(({ treasuryWatches }) => treasuryWatches.get(watchKeyOf(state)));
  return { object: "treasury" as const, mode, asset, waits_for: waitsFor(state, watch) };
}
