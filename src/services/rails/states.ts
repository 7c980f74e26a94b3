import type { Administrator } from "../../core/audit-entry.ts";
import { isRefusal, type Refusal, refuseField } from "../../core/errors.ts";
import { isStopped, type RailCode, type RailState, waitSentence } from "../../core/rail.ts";
import type { Mode } from "../../core/roles.ts";
import type { Treasury } from "../../core/treasury.ts";
import { caip2Of } from "../../core/x402/chains.ts";
import type { Put } from "../../store/change.ts";
import { type Audited, type Entry, executeAuditedOfAll } from "../audited.ts";
import type { Context } from "../context.ts";
import { refuseAsset, refuseInteger } from "../fields.ts";

/** The tokens that stand for assets, as the ledger knows them, and what keeps each from paying. */

type Named = Pick<RailState, "mode" | "asset">;

const RUNS = { code: null, detail: null, since: null, seenNonce: null } as const;

/** Brings what the ledger knows of the tokens in line with the settings of this server. */
export async function keepRailStates(ctx: Context): Promise<void> {
  const known = await ctx.store.read(({ rails }) => rails.states());
  for (const treasury of ctx.treasuries) await keepOne(ctx, treasury);
  for (const state of known) {
    const isNamed = ctx.treasuries.some(({ mode, asset }) => mode === state.mode && asset === state.asset);
    if (!isNamed) await setRailCode(ctx, [state], { code: "no_treasury", detail: null });
  }
}

function keepOne(ctx: Context, { mode, asset, chainId, token, address: wallet }: Treasury): Promise<unknown> {
  return ctx.store.execute({
    scope: null,
    needs: { railStates: [{ mode, asset }] },
    decide({ railStates: [before = null] }) {
      const isSameWallet = before?.wallet === wallet && before.chainId === chainId;
      if (isSameWallet && before.token === token && before.code !== "no_treasury") return { answer: null };
      const kept = isSameWallet ? before : { acceptedNonce: null, ...RUNS };
      const row: RailState = {
        ...{ mode, asset, chainId, wallet, token },
        ...{ acceptedNonce: kept.acceptedNonce, ...RUNS },
        // What stopped the wallet stops its next token too.
        ...(kept.code === "unknown_transactions" && {
          ...{ code: kept.code, detail: kept.detail, since: kept.since, seenNonce: kept.seenNonce },
        }),
      };
      return { answer: null, change: { put: [{ kind: "railState", before, row }] } };
    },
  });
}

/** What keeps a token from paying. `seenNonce`: see `RailState`. */
export type Keeping = {
  readonly code: RailCode | null;
  readonly detail: string | null;
  readonly seenNonce?: number;
};

/**
 * Keeps what keeps tokens from paying. What has stopped one until a person says otherwise stays.
 *
 * @returns whether one of them stays stopped
 */
export async function setRailCode(
  ctx: Context,
  of: readonly Named[],
  { code, detail, seenNonce }: Keeping,
): Promise<boolean> {
  const stopped = await Promise.all(
    of.map(({ mode, asset }) =>
      ctx.store.execute({
        scope: null,
        needs: { railStates: [{ mode, asset }] },
        decide({ railStates: [before = null], recordedAt }) {
          if (before !== null && isStopped(before)) return { answer: true };
          if (before === null || before.code === code) return { answer: false };
          const since = code === null ? null : recordedAt;
          const row: RailState = { ...before, code, detail, since, seenNonce: seenNonce ?? null };
          return { answer: false, change: { put: [{ kind: "railState", before, row }] } };
        },
      }),
    ),
  );
  return stopped.includes(true);
}

export type ResumeInput = {
  readonly mode: Mode;
  readonly asset: string;
  /** The next nonce of the wallet, as `holdfast treasuries list` shows it where the chain has unknown transactions. */
  readonly nonce?: number;
};

/**
 * Lets payouts of a token, and of the other tokens of its wallet, go on after the operator has compared. Where the chain has
 * transactions that the ledger does not know, the nonce says which of them the operator has looked at: a later one stops it again.
 * The wallet has the money of all organisations, so the audit log of each says who resumed it.
 */
export async function resumeRail(
  ctx: Context,
  actor: Administrator,
  { mode, asset, nonce }: ResumeInput,
): Promise<RailState | Refusal> {
  const refused =
    refuseAsset("asset", asset) ??
    (nonce === undefined ? null : refuseInteger("nonce", nonce, 0, Number.MAX_SAFE_INTEGER));
  if (refused) return refused;
  const states = await ctx.store.read(({ rails }) => rails.states());
  const asked = states.find((state) => state.mode === mode && state.asset === asset);
  if (!asked)
    return refuseField("asset", `must be one of holdfast treasuries list, ${mode}; ${asset} is not`);
  const ofWallet = states.filter(
    ({ chainId, wallet }) => chainId === asked.chainId && wallet === asked.wallet,
  );
  const answer = await executeAuditedOfAll<{ railStates: readonly Named[] }, null>(ctx, actor, {
    entriesMax: ofWallet.length,
    needs: { railStates: ofWallet.map((state) => ({ mode: state.mode, asset: state.asset })) },
    decide: ({ railStates }) => decideResume(railStates, asked, nonce),
  });
  if (isRefusal(answer)) return answer;
  return (await ctx.store.read(({ rails }) => rails.state(asked))) ?? asked;
}

function decideResume(
  railStates: readonly (RailState | null)[],
  asked: Named,
  nonce: number | undefined,
): Audited<null> {
  const put: Put[] = [];
  const entries: Entry[] = [];
  for (const before of railStates) {
    const isAsked = before?.mode === asked.mode && before.asset === asked.asset;
    const isOf = before?.code === "unknown_transactions" || (isAsked && before?.code === "other_amount");
    if (!before || !isOf) continue;
    const { seenNonce } = before;
    if (seenNonce !== null && seenNonce !== nonce) {
      return {
        answer: refuseField(
          "nonce",
          `must be ${seenNonce}: compare the wallet's transactions below it on the chain with holdfast payouts list`,
        ),
      };
    }
    const row = { ...before, ...RUNS, acceptedNonce: seenNonce ?? before.acceptedNonce };
    put.push({ kind: "railState", before, row });
    entries.push({
      ...{ action: "treasury.resumed", subject: before.wallet },
      ...{ before: stateWire(before), after: stateWire(row) },
    });
  }
  const [first, ...others] = entries;
  return first === undefined ? { answer: null } : { answer: null, put, entries: [first, ...others] };
}

/** A token that has stopped, or goes on, for the audit log. `accepted_nonce`: all transactions below it were compared. */
const stateWire = ({ mode, asset, chainId, token, wallet, ...state }: RailState) => ({
  ...{ object: "treasury", mode, asset, chain: caip2Of(chainId), token, address: wallet },
  waits_for:
    state.code === null ? null : { code: state.code, message: waitSentence({ ...state, code: state.code }) },
  ...{ unknown_until_nonce: state.seenNonce, accepted_nonce: state.acceptedNonce },
});
