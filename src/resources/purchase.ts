import { Type } from "@sinclair/typebox";
import { reasonCodesForm } from "../core/clauses/form.ts";
import type { ReasonCode } from "../core/clauses/reason-codes.ts";
import {
  amount,
  boolean,
  form,
  integer,
  is,
  object,
  oneOf,
  orNull,
  share,
  text,
  time,
  type Wire,
} from "../core/form.ts";
import { MODES } from "../core/roles.ts";
import { isoTime, isoTimeOrNull } from "../core/time.ts";
import { STATES, type State, type Warrant } from "../core/warrant.ts";
import { caip2Of } from "../core/x402/chains.ts";
import { ATTEMPTS, isContradicted, KNOWN, PHASES, type Purchase, WITNESSES } from "../core/x402/purchase.ts";
import type { Pays, Quote } from "../core/x402/quote.ts";
import { amountInput, assetInput, closed, id, literals, specInput, urlInput } from "./input.ts";

/** A purchase: as `POST /v1/x402/pay` answers it, and as the operator sees it. */

const quoteForm = () => orNull(object({ amount, asset: text, payee: text }));

const quoteResource = (quote: Quote | null): Wire<typeof quoteForm> =>
  quote && { amount: quote.amount.toString(), asset: quote.asset, payee: quote.payee };

export const paymentForm = form("Payment", () =>
  object({
    warrant_id: orNull(text),
    state: orNull(oneOf(STATES)),
    quoted: quoteForm(),
    paid: boolean,
    released_bps: share,
    passed: boolean,
    reason_codes: reasonCodesForm(),
    status: Type.Integer({ description: "Of what the seller answered; 0 where it did not." }),
    body: Type.String({ description: "Text, or base64 with `Service-Body-Encoding: base64`." }),
  }),
);

/**
 * The answer of `POST /v1/x402/pay`. `warrant` is null where nothing had to be paid. `body` is the last field
 * and still empty: the bought content is stored once, and filled in later.
 */
export const paymentResource = (
  { quote, responseStatus }: Purchase,
  warrant: Warrant | null,
  passed: boolean,
  reasonCodes: readonly ReasonCode[],
): Wire<typeof paymentForm> => ({
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

const paysForm = () =>
  Type.Union([
    object({ kind: is("voucher") }),
    object({
      kind: is("exact"),
      protocol: Type.Union([Type.Literal(1), Type.Literal(2)]),
      network: text,
      contract: text,
      pay_to: text,
    }),
  ]);

const paysResource = (pays: Pays): Wire<typeof paysForm> =>
  pays.kind === "voucher"
    ? { kind: pays.kind }
    : {
        kind: pays.kind,
        protocol: pays.protocol,
        network: caip2Of(pays.chainId),
        contract: pays.contract,
        pay_to: pays.payTo,
      };

const purchaseForm = form("Purchase", () =>
  object({
    id: text,
    object: is("purchase"),
    organisation_id: text,
    mode: oneOf(MODES),
    phase: oneOf(PHASES),
    method: text,
    url: text,
    max_amount: amount,
    agent_id: orNull(text),
    quoted: quoteForm(),
    pays: orNull(paysForm()),
    warrant_id: orNull(text),
    warrant_state: orNull(oneOf(STATES)),
    payer: orNull(text),
    nonce: orNull(text),
    valid_before: orNull(time),
    attempt: orNull(oneOf(ATTEMPTS)),
    known: orNull(oneOf(KNOWN)),
    known_by: orNull(oneOf(WITNESSES)),
    chain_said: orNull(oneOf(["paid", "unpaid"])),
    contradicted: boolean,
    acknowledged_at: orNull(time),
    transaction: orNull(text),
    response_status: orNull(integer),
    response_hash: orNull(text),
    created_at: time,
    answered_at: orNull(time),
    ended_at: orNull(time),
    next_check_at: orNull(time),
  }),
);

/** A purchase as the operator sees it: its phase, and whether the seller was paid and how that is known. */
export const purchaseResource = (
  purchase: Purchase,
  warrantState: State | null,
): Wire<typeof purchaseForm> => ({
  id: purchase.id,
  object: "purchase",
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
  chain_said: purchase.chainSaid,
  contradicted: isContradicted(purchase),
  acknowledged_at: isoTimeOrNull(purchase.acknowledgedAt),
  transaction: purchase.transaction,
  response_status: purchase.responseStatus,
  response_hash: purchase.responseHash,
  created_at: isoTime(purchase.createdAt),
  answered_at: isoTimeOrNull(purchase.answeredAt),
  ended_at: isoTimeOrNull(purchase.endedAt),
  next_check_at: isoTimeOrNull(purchase.nextCheckAt),
});

export const payBody = Type.Object(
  {
    url: urlInput,
    method: Type.Optional(literals(["GET", "POST"])),
    headers: Type.Optional(
      Type.Unsafe<Readonly<Record<string, string>>>(
        Type.Object(
          {},
          {
            additionalProperties: Type.String({
              pattern: "^[\\x20-\\x7e]{0,4096}$",
              description: "at most 4096 printable ASCII characters",
            }),
            description: "an object of names and strings",
          },
        ),
      ),
    ),
    /** The ceiling in the smallest unit of `asset`, the ledger's asset to pay in. */
    max_amount: amountInput,
    asset: assetInput,
    spec: specInput,
    agent_id: Type.Optional(id),
  },
  closed,
);
