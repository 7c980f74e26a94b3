import type { Clause } from "../../core/clauses/registry.ts";
import { isRefusal, type Refusal, refuseField } from "../../core/errors.ts";
import type { Wire } from "../../core/form.ts";
import { parseAmount } from "../../core/money.ts";
import { checkSourceUrl } from "../../core/source-url.ts";
import { NOTHING_CHOSEN } from "../../core/warrant.ts";
import type { payBody } from "../../resources/purchase.ts";
import { type Opening, parseSpec } from "../warrants/opening.ts";

/** The body of `POST /v1/x402/pay`. */
export type PayInput = Wire<typeof payBody>;

/** What is to be bought, with all fields parsed. */
export type Order = {
  readonly url: string;
  readonly method: "GET" | "POST";
  readonly headers: Readonly<Record<string, string>>;
  readonly maxAmount: bigint;
  readonly asset: string;
  readonly clauses: readonly Clause[];
  readonly agentId: string | null;
};

const HEADERS_MAX = 64;
const HEADER_NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,64}$/;

/**
 * Headers that the caller may not send: those of a connection (RFC 9110, 7.6.1), those of a body, since the
 * request has none, and those that carry the payment.
 */
const HEADERS_OF_OURS = new Set([
  ...["connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection"],
  ...["te", "trailer", "transfer-encoding", "upgrade", "host", "expect"],
  ...["content-length", "content-encoding", "content-range"],
  ...["x-payment", "x-payment-response", "payment-signature", "payment-required", "payment-response"],
]);

/** The order, or the first field that is wrong. */
export function parseOrder(input: PayInput): Order | Refusal {
  const problem = checkSourceUrl(input.url);
  if (problem !== null) return refuseField("url", problem);
  const { headers = {} } = input;
  const refused = refuseHeaders(headers);
  if (refused) return refused;
  const maxAmount = parseAmount(input.max_amount);
  if (maxAmount === null)
    return refuseField("max_amount", "must be a string of digits, at most 9223372036854775807");
  const clauses = parseSpec(input.spec);
  if (isRefusal(clauses)) return clauses;
  const { url, method = "GET", asset = "USDC", agent_id: agentId = null } = input;
  return { url, method, headers, maxAmount, asset, clauses, agentId };
}

function refuseHeaders(headers: Readonly<Record<string, string>>): Refusal | null {
  const names = Object.keys(headers);
  if (names.length > HEADERS_MAX) return refuseField("headers", `must be at most ${HEADERS_MAX} headers`);
  const seen = new Set<string>();
  for (const name of names) {
    const path = `headers.${name}`;
    const lower = name.toLowerCase();
    if (!HEADER_NAME.test(name)) return refuseField(path, "is not the name of a header");
    if (HEADERS_OF_OURS.has(lower)) return refuseField(path, "is not for the caller to send");
    if (seen.has(lower)) return refuseField(path, "is there twice");
    seen.add(lower);
  }
  return null;
}

/** The opening of the order's warrant. Before there is a quote, its amount is nothing. */
export const openingFor = (
  { url: sourceUrl, asset, clauses, agentId }: Order,
  quoted: Pick<Opening, "amount" | "payee" | "deadline"> = NOTHING_QUOTED,
): Opening => ({ ...NOTHING_CHOSEN, ...quoted, sourceUrl, asset, clauses, agentId });

const NOTHING_QUOTED = { amount: 0n, payee: "", deadline: 0 };
