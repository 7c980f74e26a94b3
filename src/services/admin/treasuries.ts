import { isRefusal, type Refusal } from "../../core/errors.ts";
import { type RailState, waitSentence } from "../../core/rail.ts";
import type { Treasury } from "../../core/treasury.ts";
import { caip2Of } from "../../core/x402/chains.ts";
import type { Context } from "../context.ts";
import { type ResumeInput, resumeRail } from "../rails/states.ts";
import { type Authority, refuseAuthority } from "./authority.ts";

const treasuryResource = (
  { mode, asset, chainId, token, address, limits }: Treasury,
  state: RailState | null,
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
  waits_for:
    state === null || state.code === null
      ? null
      : { code: state.code, message: waitSentence({ code: state.code, detail: state.detail }) },
  /** The wallet's next nonce, where its chain has transactions that the ledger does not know: `treasuries resume` takes it. */
  unknown_until_nonce: state?.seenNonce ?? null,
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
  const states = await store.read(({ rails }) => rails.states());
  const data = treasuries.map((treasury) =>
    treasuryResource(
      treasury,
      states.find(({ mode, asset }) => mode === treasury.mode && asset === treasury.asset) ?? null,
    ),
  );
  return { object: "list", data, has_more: false };
}

/** Lets payouts of a token go on that have stopped until a person looked. */
export async function resumeTreasury(ctx: Context, authority: Authority, input: ResumeInput) {
  const refused = refuseAuthority(authority, "admin");
  if (refused) return refused;
  const state = await resumeRail(ctx, input);
  if (isRefusal(state)) return state;
  const { mode, asset, code, detail } = state;
  return {
    ...{ object: "treasury" as const, mode, asset },
    waits_for: code === null ? null : { code, message: waitSentence({ code, detail }) },
  };
}
