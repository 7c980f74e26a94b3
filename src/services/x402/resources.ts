import type { ReasonCode } from "../../core/clauses/reason-codes.ts";
import { isoTime, isoTimeOrNull } from "../../core/time.ts";
import type { State, Warrant } from "../../core/warrant.ts";
import { caip2Of } from "../../core/x402/chains.ts";
import type { Purchase } from "../../core/x402/purchase.ts";
import type { Pays, Quote } from "../../core/x402/quote.ts";

/** Wire shapes of purchases. */

const quoteResource = (quote: Quote | null) =>
  quote && { amount: quote.amount.toString(), asset: quote.asset, payee: quote.payee };

/**
 * The answer of `POST /v1/x402/pay`. `warrant` is null where nothing had to be paid. `body` stands last and empty: what was
 * bought is kept once and filled in from there.
 */
export const paymentResource = (
  { quote, responseStatus }: Purchase,
  warrant: Warrant | null,
  passed: boolean,
  reasonCodes: readonly ReasonCode[],
) => ({
  warrant_id: warrant?.id ?? null,
  state: warrant?.state ?? null,
  quoted: quoteResource(quote),
  paid: warrant?.state === "released" || warrant?.state === "partially_released",
  released_bps: warrant?.releasedBps ?? null,
  passed,
  reason_codes: reasonCodes,
  status: responseStatus ?? 0,
  body: "",
});

const paysResource = (pays: Pays) =>
  pays.kind === "voucher"
    ? { kind: pays.kind }
    : {
        kind: pays.kind,
        protocol: pays.protocol,
        network: caip2Of(pays.chainId),
        contract: pays.contract,
        pay_to: pays.payTo,
      };

/** A purchase as the operator sees it: how far it came, and what is known of the money and how. */
export const purchaseResource = (purchase: Purchase, warrantState: State | null) => ({
  id: purchase.id,
  object: "purchase" as const,
  organisation_id: purchase.organisationId,
  mode: purchase.mode,
  phase: purchase.phase,
  method: purchase.method,
  url: purchase.url,
  max_amount: purchase.maxAmount.toString(),
  agent_id: purchase.agentId,
  quoted: quoteResource(purchase.quote),
  pays: purchase.quote && paysResource(purchase.quote.pays),
  warrant_id: purchase.warrantId,
  warrant_state: warrantState,
  payer: purchase.payer,
  nonce: purchase.nonce,
  valid_before: isoTimeOrNull(purchase.validBefore),
  attempt: purchase.attempt,
  known: purchase.known,
  known_by: purchase.knownBy,
  transaction: purchase.transaction,
  response_status: purchase.responseStatus,
  response_hash: purchase.responseHash,
  created_at: isoTime(purchase.createdAt),
  answered_at: isoTimeOrNull(purchase.answeredAt),
  ended_at: isoTimeOrNull(purchase.endedAt),
  next_check_at: isoTimeOrNull(purchase.nextCheckAt),
});
