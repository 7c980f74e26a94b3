import { isRefusal, type Refusal, refuse } from "../../core/errors.ts";
import { refusePayAbove } from "../../core/passkey.ts";
import { ACCESS, type Caller } from "../../core/roles.ts";
import { isoTime, MINUTE_MS, SECOND_MS } from "../../core/time.ts";
import type { Warrant } from "../../core/warrant.ts";
import { caip2Of, isTestNetwork } from "../../core/x402/chains.ts";
import { parseChallenge } from "../../core/x402/challenge.ts";
import { RESERVED_BYTES, refuseFullQuota } from "../../core/x402/content.ts";
import type { Purchase } from "../../core/x402/purchase.ts";
import { AUTHORIZATION_MS_MAX, chooseEntry, type ExactPayment, type Quote } from "../../core/x402/quote.ts";
import type { TokenBalance } from "../../platform/evm-chain.ts";
import type { FirstAnswer } from "../../platform/x402-request.ts";
import type { Snapshot, WalletToken } from "../../store/needs.ts";
import type { Decision } from "../../store/store.ts";
import { callerNow, credentialOf } from "../caller-now.ts";
import type { Context } from "../context.ts";
import type { Moved } from "../transition.ts";
import { decideHold, decideTerms, holdingNeeds, type Ids, newHoldIds } from "../warrants/hold.ts";
import { type Opening, openingNeeds, refuseOpening, refuseUnknownSchema } from "../warrants/opening.ts";
import { ENDED_MEANWHILE } from "./answer.ts";
import { forgetting } from "./begin.ts";
import { type Order, openingFor } from "./order.ts";

/** The shortest time until a purchase's warrant expires. */
const DEADLINE_MS_MIN = 10 * MINUTE_MS;
/** How far our clock may be ahead of the newest block of a main network. */
const CLOCK_AHEAD_MS_MAX = 2 * MINUTE_MS;
const NONCE_BYTES = 32;

/** A purchase whose warrant is open; nothing is signed yet. */
export type Held = {
  readonly purchase: Purchase;
  readonly warrant: Warrant;
  /** The instance that makes the promise. A voucher names it. */
  readonly instanceId: string;
};

/** The first way to pay in the seller's challenge that this mode can use, or why there is none. */
export function quoteOf(ctx: Context, { mode }: Caller, order: Order, first: FirstAnswer): Quote | Refusal {
  const challenge = parseChallenge({ headers: first.headers, body: first.evidence.body });
  if (isRefusal(challenge)) return challenge;
  const { wallets, assets } = ctx.x402;
  return chooseEntry(challenge, {
    mode,
    maxAmount: order.maxAmount,
    asset: order.asset,
    payable: { hasWallet: wallets[mode] !== null, assets },
  });
}

/**
 * Holds the quoted amount as an open does, and stores in the same commit what will be signed. A refusal
 * leaves no hold, no purchase, and no key in flight.
 */
export async function holdQuote(
  ctx: Context,
  caller: Caller,
  order: Order,
  quoting: Purchase,
  quote: Quote,
): Promise<Held | Refusal> {
  const { pays, amount, payee } = quote;
  const payer = pays.kind === "exact" ? (ctx.x402.wallets[caller.mode]?.address ?? null) : null;
  const wallet = pays.kind === "exact" && payer !== null ? await fundsOf(ctx, pays, payer) : null;
  const nonce = payer === null ? null : newNonce(ctx);
  const ids = newHoldIds(ctx, order.clauses);
  const timeoutMs = (quote.timeoutSeconds ?? 0) * SECOND_MS;
  return ctx.store.execute({
    scope: caller,
    needs: quotedNeeds(caller, openingFor(order, { amount, payee, deadline: 0 }), quoting, wallet),
    decide(snapshot, now): Decision<Held> {
      const { purchase, heldKey, instance } = snapshot;
      if (purchase?.phase !== "quoting") return { answer: ENDED_MEANWHILE };
      const deadline = now + Math.max(DEADLINE_MS_MIN, timeoutMs);
      const opening = openingFor(order, { amount, payee, deadline });
      const { contentBytesMax } = ctx.x402;
      const held = decideQuoted(snapshot, caller, opening, { wallet, contentBytesMax }, ids, now);
      if (isRefusal(held)) return { answer: held, change: forgetting(purchase, heldKey) };
      const { warrant, change } = held;
      const row: Purchase = {
        ...purchase,
        phase: "held",
        quote,
        warrantId: warrant.id,
        contentBytes: RESERVED_BYTES,
        payer,
        nonce,
        validBefore: payer === null ? null : now + Math.min(AUTHORIZATION_MS_MAX, timeoutMs),
      };
      return {
        answer: { purchase: row, warrant, instanceId: instance.id },
        change: { put: [...change.put, { kind: "purchase", before: purchase, row }] },
      };
    },
  });
}

/** The needs of a hold for a quote. The purchase has already claimed the request's key. */
const quotedNeeds = (caller: Caller, opening: Opening, { id }: Purchase, wallet: WalletFunds | null) => ({
  ...credentialOf(caller),
  ...openingNeeds(opening),
  ...holdingNeeds(opening),
  purchase: id,
  heldKey: id,
  contentBytes: "bought" as const,
  openAuthorizations: wallet?.authorizations ?? null,
});

/**
 * (none) → held, or the first refusal: by the caller's credential, by the checks of an open, by the quota of
 * what was bought, or by the wallet.
 */
function decideQuoted(
  snapshot: Snapshot<ReturnType<typeof quotedNeeds>>,
  caller: Caller,
  opening: Opening,
  { wallet, contentBytesMax }: { readonly wallet: WalletFunds | null; readonly contentBytesMax: number },
  ids: Ids,
  now: number,
): Moved | Refusal {
  const present = callerNow(caller, ACCESS.openWarrant, snapshot, now);
  if (isRefusal(present)) return present;
  const refused = refuseUnknownSchema(snapshot, opening.clauses) ?? refuseOpening(snapshot, present, opening);
  const terms = refused ?? decideTerms(snapshot, present, opening, now);
  if (isRefusal(terms)) return terms;
  const held =
    refusePayAbove(snapshot.organisation.passkeyThreshold, opening) ??
    refuseFullQuota(snapshot.contentBytes, contentBytesMax) ??
    decideHold(snapshot, present, opening, terms, ids, now);
  if (isRefusal(held) || wallet === null) return held;
  return (
    refuseFastClock(wallet) ?? refuseShortWallet(snapshot.openAuthorizations, opening, wallet.balance) ?? held
  );
}

type WalletFunds = TokenBalance & { readonly authorizations: WalletToken };

/**
 * The wallet's balance, and the question for what it has signed and not yet paid. Null where no chain
 * answers.
 */
async function fundsOf(
  ctx: Context,
  { chainId, contract }: ExactPayment,
  payer: string,
): Promise<WalletFunds | null> {
  const since = ctx.now();
  const funds = await ctx.x402.chains.balanceOf(chainId, contract, payer);
  return funds && { ...funds, authorizations: { payer, chainId, contract, since } };
}

/**
 * Refuses to sign while our clock is ahead of the chain's. The seller could use the authorization for longer
 * than intended, by as much as the clock is ahead. A main network's newest block is only seconds old. A test
 * network makes blocks irregularly, and its money is not real, so it is not checked.
 */
function refuseFastClock({ blockTime, authorizations }: WalletFunds): Refusal | null {
  const { chainId, since } = authorizations;
  return isTestNetwork(chainId) || since - blockTime <= CLOCK_AHEAD_MS_MAX
    ? null
    : refuse(
        "internal_error",
        `The newest block of ${caip2Of(chainId)} is of ${isoTime(blockTime)}, and the service's clock says ${isoTime(since)}: it is ahead, or the chain's endpoint is behind. Nothing is held.`,
      );
}

/**
 * Refuses more than the wallet's balance covers: the chain would reject the payment. The message does not
 * name the other authorizations, since they may belong to another organisation.
 */
function refuseShortWallet(
  openAuthorizations: bigint,
  { amount, asset }: Opening,
  balance: bigint,
): Refusal | null {
  return balance - openAuthorizations >= amount
    ? null
    : refuse(
        "insufficient_funds",
        `The wallet that pays on the chain does not cover ${amount} ${asset} besides what it has signed already.`,
      );
}

const newNonce = ({ randomByte }: Context): string =>
  `0x${Buffer.from(Array.from({ length: NONCE_BYTES }, randomByte)).toString("hex")}`;
