import type { Database } from "bun:sqlite";
import { sha256 } from "../../../core/canonical.ts";
import { SECOND_MS } from "../../../core/time.ts";
import type { State, Warrant } from "../../../core/warrant.ts";
import { isTestNetwork } from "../../../core/x402/chains.ts";
import { countedBytes, RESERVED_BYTES } from "../../../core/x402/content.ts";
import {
  isContradicted,
  isOpenContradiction,
  isToBeAsked,
  PHASES_WITH_HEADER,
  PHASES_WITHOUT_WARRANT,
  type Purchase,
} from "../../../core/x402/purchase.ts";
import type { ExactPayment, Quote } from "../../../core/x402/quote.ts";
import { createNames, type Names } from "../../sql/names.ts";
import { purchaseOf } from "../../sql/rows.ts";
import { escalations } from "../../sql/tables/ledger.ts";
import { contents, purchases } from "../../sql/tables/purchases.ts";
import { expectSame, guarded, inSnapshot, readRows, readWarrant, rowsOf } from "./rows.ts";
import { BY_HASH, BY_ID, type Did, inSlice, type Slice, slicesOf } from "./slices.ts";

type Row = typeof purchases.$inferSelect;
type Quoted = Purchase & { readonly quote: Quote };

const PURCHASES_AT_ONCE = 500;
/** How many contents are read at once. Each has up to 10 MiB. */
const CONTENTS_AT_ONCE = 8;

/**
 * Checks each purchase by x402 against its warrant, its key, its signed header and the state of its payment;
 * and the stored contents against their hashes.
 */
export function* auditPurchases(database: Database, did: Did): Generator<string> {
  const names = createNames(database);
  yield* auditOnce(database);
  yield* auditContentSums(database);
  for (const slice of slicesOf(database, "purchases", BY_ID, PURCHASES_AT_ONCE, did))
    yield* inSnapshot(database, () => [...auditSlice(database, names, slice)]);
  for (const slice of slicesOf(database, "contents", BY_HASH, CONTENTS_AT_ONCE, did))
    yield* inSnapshot(database, () => [...auditContents(database, slice)]);
}

function* auditSlice(database: Database, names: Names, { after, last }: Slice<string>): Generator<string> {
  for (const { raw, read } of rowsOf(database, purchases, `WHERE ${inSlice("id")}`, after, last)) {
    const what = `purchase ${raw.id}`;
    yield* guarded(what, () => auditPurchase(database, names, what, read()));
  }
}

/** Checks that no two purchases share a warrant, or an authorization: the chain accepts a nonce only once. */
function* auditOnce(database: Database): Generator<string> {
  const shared = database.query<{ thing: string; count: bigint }, []>(
    `SELECT 'warrant ' || warrant_id AS thing, count(*) AS count FROM purchases
       WHERE warrant_id IS NOT NULL GROUP BY warrant_id HAVING count(*) > 1
     UNION ALL
     SELECT 'nonce ' || nonce, count(*) FROM purchases
       WHERE nonce IS NOT NULL GROUP BY payer, nonce HAVING count(*) > 1`,
  );
  for (const { thing, count } of shared.iterate()) yield `${thing}: is of ${count} purchases`;
}

function* auditPurchase(database: Database, names: Names, what: string, row: Row): Generator<string> {
  const purchase = purchaseOf(row);
  const { quote, warrantId, phase } = purchase;
  yield* auditContentBytes(database, purchase, what);
  if (phase !== "ended") yield* auditKey(database, purchase, what);
  if (quote === null) {
    yield* expectSame(`${what}: has no quote: warrant_id`, warrantId, null);
    yield* expectSame(`${what}: has no quote: header`, purchase.header, null);
    yield* expectSame(`${what}: has no quote: known`, purchase.known, null);
    if (!PHASES_WITHOUT_WARRANT.some((without) => without === phase))
      yield `${what}: is ${phase} without a quote`;
    return;
  }
  const warrant = warrantId === null ? null : readWarrant(database, names, warrantId);
  if (!warrant) {
    yield `${what}: has a quote, and its warrant ${warrantId} is not there`;
    return;
  }
  const quoted: Quoted = { ...purchase, quote };
  yield* auditTerms(quoted, warrant, what);
  yield* auditState(database, quoted, warrant, what);
  yield* auditPaymentTerms(quoted, row, what);
  yield* guarded(`${what}: its header`, () => auditHeader(quoted, what));
}

/** Checks that a purchase counts what it has reserved, or what its stored body counts. */
function* auditContentBytes(
  database: Database,
  { phase, responseHash, contentBytes }: Purchase,
  what: string,
): Generator<string> {
  const counted = `${what}: is ${phase}: content_bytes`;
  if (responseHash === null) {
    const isReserved = phase === "held" || phase === "signed";
    yield* expectSame(counted, contentBytes, isReserved ? RESERVED_BYTES : 0);
    return;
  }
  if (contentBytes === 0 && phase === "ended") return;
  const stored = database
    .query<{ length: bigint }, [string]>("SELECT length(bytes) AS length FROM contents WHERE hash = ?")
    .get(responseHash);
  if (stored === null)
    yield `${what}: is ${phase}, and the content ${responseHash} of its answer is not stored`;
  else yield* expectSame(counted, contentBytes, countedBytes(Number(stored.length)));
}

/** Checks the sums of content against what the purchases count. */
function* auditContentSums(database: Database): Generator<string> {
  const rows = database.query<
    { organisation_id: string; mode: string; bought: bigint; kept: bigint; found: bigint },
    []
  >(
    `SELECT organisation_id, mode, bought, kept, found FROM (
       SELECT scope, bought, sum(kept) AS kept, sum(found) AS found FROM (
         SELECT scope, bought, bytes AS kept, 0 AS found FROM content_sums
         UNION ALL
         SELECT position, warrant_id IS NOT NULL, 0, content_bytes
         FROM purchases JOIN scopes USING (organisation_id, mode) WHERE content_bytes > 0
       ) GROUP BY scope, bought HAVING sum(kept) <> sum(found)
     ) LEFT JOIN scopes ON scopes.position = scope`,
  );
  for (const { organisation_id: organisation, mode, bought, kept, found } of rows.iterate())
    yield `content of ${organisation}, ${mode}: ${kept} bytes are counted as ${bought === 1n ? "bought" : "free"}, and its purchases count ${found}`;
}

/** Checks that the key of an unfinished purchase is in flight: otherwise the same request could buy twice. */
function* auditKey(
  database: Database,
  { id, organisationId, mode, phase }: Purchase,
  what: string,
): Generator<string> {
  const held = database
    .query<{ status: bigint | null }, [string, string, string]>(
      `SELECT status FROM idempotency_keys JOIN scopes ON scopes.position = scope
       WHERE organisation_id = ? AND mode = ? AND holder = ? AND status IS NULL`,
    )
    .get(organisationId, mode, id);
  if (held === null) yield `${what}: is ${phase}, and its idempotency key is not in flight`;
}

/** Checks that the warrant has the quoted terms, and that the price is within the ceiling. */
function* auditTerms(purchase: Quoted, warrant: Warrant, what: string): Generator<string> {
  const { quote } = purchase;
  yield* expectSame(`${what}: its warrant's organisation`, warrant.organisationId, purchase.organisationId);
  yield* expectSame(`${what}: its warrant's mode`, warrant.mode, purchase.mode);
  yield* expectSame(`${what}: its warrant's agent`, warrant.agentId, purchase.agentId);
  yield* expectSame(`${what}: its warrant's amount`, warrant.amount, quote.amount);
  yield* expectSame(`${what}: its warrant's asset`, warrant.asset, quote.asset);
  yield* expectSame(`${what}: its warrant's payee`, warrant.payee, quote.payee);
  if (quote.amount > purchase.maxAmount)
    yield `${what}: its quote ${quote.amount} is above max_amount ${purchase.maxAmount}`;
}

const UNDER_WAY: Readonly<Record<Exclude<Purchase["phase"], "ended">, readonly State[]>> = {
  quoting: [],
  held: ["held", "verifying"],
  signed: ["held", "verifying"],
  answered: ["held", "verifying"],
};

/**
 * The states in which a purchase may leave its warrant when it has ended. A voucher is settled in the ledger;
 * otherwise the state of the payment decides.
 */
function statesOfEnded({ quote, known }: Quoted): readonly State[] {
  if (quote.pays.kind === "voucher")
    return known === "unpaid" ? ["released", "partially_released", "refunded", "escalated", "disputed"] : [];
  if (known === "paid") return ["released", "escalated"];
  if (known === "unpaid") return ["refunded"];
  return known === "unknown" ? ["escalated"] : [];
}

/** Checks that the phase of the purchase and the state of its payment fit the state of its warrant. */
function* auditState(
  database: Database,
  purchase: Quoted,
  { id, state }: Warrant,
  what: string,
): Generator<string> {
  const { phase, known, quote } = purchase;
  const states = phase === "ended" ? statesOfEnded(purchase) : UNDER_WAY[phase];
  if (!states.includes(state)) {
    yield `${what}: is ${phase} (${quote.pays.kind}, ${known ?? "nothing known"}) with a warrant that is ${state}`;
  }
  if (phase !== "ended") yield* expectSame(`${what}: is ${phase}: known`, known, null);
  const isSaid = purchase.knownBy !== null;
  if ((known === "paid" && !isSaid) || (known !== "paid" && known !== "unpaid" && isSaid))
    yield `${what}: its payment is ${known}, and known_by is ${purchase.knownBy}`;
  yield* auditChainsWord(purchase, what);
  if (quote.pays.kind !== "exact" || phase !== "ended" || state !== "escalated") return;
  const code = known === "paid" ? "payment_irrevocable" : "payment_unknown";
  const waiting = readRows(database, escalations, "WHERE warrant_id = ? AND status <> 'resolved'", id);
  if (!waiting.some(({ reasonCodes }) => reasonCodes.includes(code)))
    yield `${what}: is ${known}, and no open escalation of its warrant says ${code}`;
}

/** Checks that the chain is asked as long as it has something to say, and that it agrees with what a person has said. */
function* auditChainsWord(purchase: Quoted, what: string): Generator<string> {
  const { phase, known, knownBy, chainSaid, acknowledgedAt, nextCheckAt } = purchase;
  const isAsked = phase === "ended" && isToBeAsked(purchase);
  if (isAsked !== (nextCheckAt !== null))
    yield `${what}: next_check_at is ${nextCheckAt}, and its payment is ${known}`;
  if (chainSaid !== null && knownBy !== "person")
    yield `${what}: chain_said is ${chainSaid}, and known_by is ${knownBy}`;
  if (isOpenContradiction(purchase))
    yield `${what}: a person said that its payment is ${known}, and its chain says ${chainSaid}`;
  if (acknowledgedAt !== null && !isContradicted(purchase))
    yield `${what}: is acknowledged, and its chain contradicts nobody`;
}

/**
 * Checks what the hold fixed for the signature: the payer, the chain, the nonce and the expiry; and that
 * there is a header in the right phases only.
 */
function* auditPaymentTerms(purchase: Quoted, row: Row, what: string): Generator<string> {
  const { quote, phase, header, mode } = purchase;
  const { pays } = quote;
  const isExact = pays.kind === "exact";
  yield* expectSame(`${what}: chain_id`, row.chainId, isExact ? pays.chainId : null);
  yield* expectSame(`${what}: contract`, row.contract, isExact ? pays.contract : null);
  for (const [name, value] of Object.entries({
    payer: row.payer,
    nonce: row.nonce,
    valid_before: row.validBefore,
  })) {
    if ((value !== null) !== isExact) yield `${what}: is paid by ${pays.kind}, and its ${name} is ${value}`;
  }
  if (isExact && isTestNetwork(pays.chainId) !== (mode === "sandbox"))
    yield `${what}: is ${mode}, and paid on eip155:${pays.chainId}`;
  const isSigned =
    PHASES_WITH_HEADER.some((signed) => signed === phase) || (phase === "ended" && row.attempt !== null);
  if (isSigned && header === null) yield `${what}: is ${phase} without a header`;
  if ((phase === "quoting" || phase === "held") && header !== null)
    yield `${what}: is ${phase} with a header`;
}

/** Checks that the signed header belongs to this warrant or this authorization. */
function* auditHeader(purchase: Quoted, what: string): Generator<string> {
  const { header, quote } = purchase;
  if (header === null) return;
  const { x402Version, payload } = JSON.parse(Buffer.from(header.value, "base64").toString());
  const { pays } = quote;
  if (pays.kind === "voucher") {
    yield* auditVoucher(purchase, payload.voucher, what);
    return;
  }
  yield* expectSame(`${what}: its header's x402Version`, x402Version, pays.protocol);
  for (const [name, value] of Object.entries(authorizationOf(purchase, pays)))
    yield* expectSame(
      `${what}: its header's ${name}`,
      String(payload.authorization[name]).toLowerCase(),
      value,
    );
}

/**
 * The authorization that the header must contain. Addresses and nonces are in lower case, since they may be
 * written in either.
 */
const authorizationOf = (
  { payer, nonce, validBefore, quote }: Quoted,
  pays: ExactPayment,
): Readonly<Record<string, string>> => ({
  from: String(payer).toLowerCase(),
  to: pays.payTo.toLowerCase(),
  value: `${quote.amount}`,
  validBefore: `${Math.floor((validBefore ?? 0) / SECOND_MS)}`,
  nonce: String(nonce).toLowerCase(),
});

function* auditVoucher(
  { warrantId, mode, quote }: Quoted,
  voucher: unknown,
  what: string,
): Generator<string> {
  const [, body = ""] = String(voucher).split(".");
  const claims = JSON.parse(Buffer.from(body, "base64url").toString());
  const promised = {
    jti: warrantId,
    mode,
    amount: `${quote.amount}`,
    asset: quote.asset,
    payee: quote.payee,
  };
  for (const [name, value] of Object.entries(promised))
    yield* expectSame(`${what}: its voucher's ${name}`, claims[name], value);
}

/** Checks that each stored content has its hash, and a purchase or a capsule that keeps it. */
function* auditContents(database: Database, { after, last }: Slice<string>): Generator<string> {
  const keeper = database.query<unknown, [string]>(
    `SELECT 1 FROM purchases WHERE response_hash = ?1 AND content_bytes > 0
     UNION ALL SELECT 1 FROM capsules WHERE stored_hash = ?1 LIMIT 1`,
  );
  for (const { raw, read } of rowsOf(database, contents, `WHERE ${inSlice("hash")}`, after, last)) {
    const what = `content ${raw.hash}`;
    yield* guarded(what, () =>
      expectSame(`${what}: the SHA-256 of its bytes`, sha256(read().bytes), raw.hash),
    );
    if (keeper.get(String(raw.hash)) === null) yield `${what}: no purchase and no capsule keeps it`;
  }
}
