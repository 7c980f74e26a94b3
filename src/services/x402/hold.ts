import { isRefusal, type Refusal, refuse } from "../../core/errors.ts";
import { refusePayAbove } from "../../core/passkey.ts";
import { ACCESS, type Caller } from "../../core/roles.ts";
import { isoTime, MINUTE_MS, SECOND_MS } from "../../core/time.ts";
import type { Warrant } from "../../core/warrant.ts";
import { caip2Of, isTestNetwork } from "../../core/x402/chains.ts";
import { parseChallenge } from "../../core/x402/challenge.ts";
import type { Purchase } from "../../core/x402/purchase.ts";
import { AUTHORIZATION_MS_MAX, chooseEntry, type ExactPayment, type Quote } from "../../core/x402/quote.ts";
import type { TokenBalance } from "../../platform/evm-chain.ts";
import type { FirstAnswer } from "../../platform/x402-request.ts";
import type { Decision, Needs, Snapshot } from "../../store/store.ts";
import type { Context } from "../context.ts";
import { type Intent, needsOf, refuseEndedCaller } from "../intent.ts";
import { decideHold, needsOfOpening, refuseOpening } from "../warrants/open.ts";
import { type Order, openingFor } from "./order.ts";

/** What may be held of a purchase at the least before it expires (decisions.md, x402). */
const DEADLINE_MS_MIN = 10 * MINUTE_MS;
/** How much older than our clock the newest block of a main network may be. */
const CLOCK_AHEAD_MS_MAX = 2 * MINUTE_MS;
const NONCE_BYTES = 32;

export type Held = { readonly purchase: Purchase; readonly warrant: Warrant };

/** What the seller asks, of which this mode can pay what is taken; or why nothing of it. */
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
 * Holds the quote as an open does, and keeps the intent in the same commit: what will be signed is settled here. What is
 * refused leaves neither a hold, nor a purchase, nor a key in flight.
 */
export async function holdQuote(
  ctx: Context,
  caller: Caller,
  order: Order,
  intent: Intent,
  quoting: Purchase,
  quote: Quote,
): Promise<Held | Refusal> {
  const { pays } = quote;
  const payer = pays.kind === "exact" ? (ctx.x402.wallets[caller.mode]?.address ?? null) : null;
  const wallet = pays.kind === "exact" && payer !== null ? await fundsOf(ctx, pays, payer) : null;
  const ids = { warrantId: ctx.newId("warrant"), eventId: ctx.newId("event") };
  const now = ctx.now();
  const timeoutMs = (quote.timeoutSeconds ?? 0) * SECOND_MS;
  const opening = openingFor(order, { ...quote, deadline: now + Math.max(DEADLINE_MS_MIN, timeoutMs) });
  const intended: Purchase = {
    ...quoting,
    phase: "held",
    quote,
    warrantId: ids.warrantId,
    ...(payer !== null && {
      payer,
      nonce: newNonce(ctx),
      validBefore: now + Math.min(AUTHORIZATION_MS_MAX, timeoutMs),
    }),
  };
  return ctx.store.execute<Held>({
    scope: caller,
    needs: {
      ...needsOf(caller, intent),
      opening: needsOfOpening(opening),
      purchaseId: quoting.id,
      ...(wallet && { authorizationsOf: wallet.authorizations }),
    },
    decide: (snapshot): Decision<Held> => {
      if (snapshot.purchase?.phase !== "quoting")
        throw new Error(`the purchase ${quoting.id} is no longer asking`);
      const refused =
        refuseEndedCaller(caller, ACCESS.openWarrant, snapshot, now) ??
        refuseOpening(snapshot, caller, opening, null);
      const held = refused ?? decideHold(snapshot, caller, opening, ids, now, refusePayAbove);
      const last = isRefusal(held)
        ? held
        : wallet && (refuseFastClock(wallet) ?? refuseShortWallet(snapshot, quote, wallet.balance));
      if (last) return { answer: last, change: { forgetsPurchase: quoting } };
      if (isRefusal(held)) throw new Error("refused, and not refused");
      const { warrant, change } = held;
      const rows = [...(change.rows ?? []), { kind: "purchase" as const, row: intended }];
      return { answer: { purchase: intended, warrant }, change: { ...change, rows } };
    },
  });
}

type WalletFunds = TokenBalance & {
  readonly authorizations: NonNullable<Needs["authorizationsOf"]>;
};

/** What the wallet has, and what asks for the authorizations that are still open against it; null where no chain tells. */
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
 * A clock that is ahead of the chain's would sign what the seller can use for as much longer. A main network's newest block is
 * some seconds old; a test network makes blocks as it likes, and its money is not real.
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

/** Beyond the wallet's balance a seller would be promised what the chain refuses. Whose promises fill it is nobody else's business. */
function refuseShortWallet(
  { openAuthorizations }: Snapshot,
  { amount, asset }: Quote,
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
