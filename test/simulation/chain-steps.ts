import { expect } from "bun:test";
import { isRefusal } from "../../src/core/errors.ts";
import { submissionOf } from "../../src/core/passkey.ts";
import type { PersonCaller } from "../../src/core/roles.ts";
import { MACHINE } from "../../src/services/admin/authority.ts";
import { assignTransfer, listUnassigned } from "../../src/services/admin/chain-deposits.ts";
import { addDepositSender, removeDepositSender } from "../../src/services/admin/deposit-senders.ts";
import { readBatch } from "../../src/services/admin/payout-batch.ts";
import { listPayouts, submitPayouts } from "../../src/services/admin/payouts.ts";
import type { Context } from "../../src/services/context.ts";
import type { ModelTreasury } from "../support/model-treasury.ts";
import { putSignature } from "../support/passkeys.ts";
import { CONFIRMATIONS } from "../support/paying.ts";
import { must } from "../support/stage.ts";
import type { ChainCommand, Dies } from "./chain-commands.ts";
import { adminOf, shownPayout } from "./money-steps.ts";
import { referenceOf } from "./plain-treasury.ts";
import { EVERY, type Simulated } from "./service.ts";
import type { SimulatedTreasury } from "./treasury.ts";

/** Steps of a history with a treasury: what happens on its chain, its jobs, and what people say about it. */

type WithTreasury = Simulated & { readonly treasury: SimulatedTreasury };
type Of<Name extends ChainCommand["do"]> = Extract<ChainCommand, { do: Name }>;
type Met = (outcome: string) => void;

/** Less than 16 by what one run begins: so many wait for a block at most. */
const UNDER_WAY_MAX = 14;

const pick = <T>(items: readonly T[], at: number): T | undefined => items[at % items.length];

/** Runs a step, tells the model of it, and compares the answers. Nothing else runs meanwhile. */
export async function runChain(
  given: Exclude<ChainCommand, Of<"owe">>,
  simulated: Simulated,
  met: Met,
): Promise<void> {
  const { treasury } = simulated;
  if (treasury === null) throw new Error("this history has no treasury");
  const { chain } = treasury;
  const within = { ...simulated, treasury };
  switch (given.do) {
    case "transfer":
      chain.receive(treasury.senders[given.from], given.amount);
      return;
    case "mine":
      if (given.forgets) chain.drop();
      chain.mine(given.blocks);
      chain.fees = { max: given.fees, priority: given.fees / 10n };
      return;
    case "reorganise":
      reorganise(given, treasury, met);
      return;
    case "node":
      chain.away = given.is === "away" ? "timeout" : null;
      chain.coin = given.is === "without_gas" ? 0n : 10n ** 18n;
      chain.token = given.token === "plain" ? "plain" : "reverts";
      return;
    case "restart":
      treasury.restart();
      return;
    case "sender":
      return register(given, within);
    case "look":
      mine(chain, given.mined);
      return look(given.dies, within, met);
    case "payouts":
      mine(chain, given.mined);
      return payOut(given.dies, within, met);
    case "assign":
      return assign(given, within, met);
    case "release":
      return release(given, within, met);
  }
}

/** @param reverts whether the token takes no transfer in these blocks */
function mine(chain: ModelTreasury, { blocks, reverts }: Of<"payouts">["mined"]): void {
  const { token } = chain;
  if (reverts) chain.token = "reverts";
  chain.mine(blocks);
  chain.token = token;
}

/** The newest blocks are replaced by as many others, with what was in them, or without it. */
function reorganise(
  { blocks, empty, loses }: Of<"reorganise">,
  { chain }: SimulatedTreasury,
  met: Met,
): void {
  // What is confirmed is taken out only where no payout is in these blocks: the chain might pay a failed one later.
  const isFree = !chain.receipts().some(({ block }) => block > chain.newestBlock() - blocks);
  const isDeep = isFree && blocks >= CONFIRMATIONS;
  const count = isDeep ? blocks : Math.min(blocks, CONFIRMATIONS - 1);
  chain.takeOut(count);
  if (loses && !isDeep) chain.drop();
  const before = Math.min(empty, count - 1);
  chain.mine(count - before, before);
  met(`reorganise: ${isDeep ? "deep" : "within the confirmations"}`);
}

async function register(
  { registered }: Of<"sender">,
  { ctx, organisationId, treasury }: WithTreasury,
): Promise<void> {
  const { plain, senders } = treasury;
  const address = senders.registered;
  const sender = { organisation_id: organisationId, mode: "sandbox", address } as const;
  const answer = await (registered ? addDepositSender : removeDepositSender)(ctx, sender);
  const isKnown = registered || plain.senders.has(address);
  expect(isRefusal(answer) ? answer.refused : null).toBe(isKnown ? null : "deposit_sender_not_found");
  if (registered) plain.senders.add(address);
  else plain.senders.delete(address);
}

/** The deposits are looked for. Where the process dies meanwhile, a new one does the rest. */
async function look(dies: Dies, { ctx, organisationId, treasury }: WithTreasury, met: Met): Promise<void> {
  const { chain, plain, opening, firstBlock } = treasury;
  if (await treasury.run("deposits", dies)) {
    met("look: died");
    await treasury.run("deposits", null);
  }
  if (chain.away !== null) return;
  const confirmed = treasury.confirmed();
  const deposits = ctx.reader.deposits.list({ organisationId, mode: "sandbox" }, null, EVERY);
  const found = chain.received().filter(({ block }) => block > firstBlock && block <= confirmed);
  for (const transfer of found) {
    const { hash } = transfer;
    plain.arrive(transfer, deposits.find(({ reference }) => reference === referenceOf(hash))?.id ?? "");
    met(`look: ${plain.credited.has(hash) ? "credited" : "unassigned"}`);
  }
  const here = found.map(({ hash }) => hash);
  const waiting = (await unassignedOf(ctx, treasury)).map(({ transaction }) => transaction);
  expect(waiting.toSorted()).toEqual(here.filter((hash) => plain.unassigned.has(hash)).toSorted());
  // To the unit: what the ledger says of the treasury, and what the chain has.
  const sent = chain
    .receipts()
    .filter(({ block, succeeded }) => succeeded && block <= confirmed)
    .flatMap(({ transfers }) => transfers);
  const sumOf = (amounts: readonly { readonly amount: bigint }[]) =>
    amounts.reduce((sum, { amount }) => sum + amount, 0n);
  const watch = ctx.reader.treasuryWatches.list().find(({ address }) => address === chain.wallet.address);
  expect(watch).toMatchObject({
    ...{ opening, received: sumOf(found), sent: sumOf(sent), stopped: null },
    ...{ balance: opening + sumOf(found) - sumOf(sent), reconciled: { number: confirmed } },
  });
}

/** What waits for a person, of this treasury. */
const unassignedOf = async (ctx: Context, { chain }: SimulatedTreasury) =>
  must(await listUnassigned(ctx, { mode: "sandbox", limit: 100 })).data.filter(
    ({ treasury }) => treasury === chain.wallet.address,
  );

async function assign(
  { transfer: at }: Of<"assign">,
  { ctx, organisationId, treasury }: WithTreasury,
  met: Met,
): Promise<void> {
  const { plain } = treasury;
  const found = pick(await unassignedOf(ctx, treasury), at);
  const named = { transfer_id: found?.id ?? "ctr_unknown", organisation_id: organisationId };
  const answer = await assignTransfer(ctx, named);
  const expected = plain.assign(found?.transaction ?? "", isRefusal(answer) ? "" : answer.id);
  expect<string | null>(isRefusal(answer) ? answer.refused : null).toBe(expected);
  met(`assign: ${expected ?? "done"}`);
  // Said again, it is the same deposit.
  if (!isRefusal(answer)) expect(must(await assignTransfer(ctx, named)).id).toBe(answer.id);
}

/** What is owed is paid out. Where the process dies meanwhile, a new one does the rest. */
async function payOut(dies: Dies, simulated: WithTreasury, met: Met): Promise<void> {
  const { ctx, organisationId, treasury } = simulated;
  const { chain, plain } = treasury;
  const underWay = plain.sent.filter(({ payout }) => payout.status === "submitted").length;
  const mayBegin = chain.away === null && chain.coin > 0n && underWay < UNDER_WAY_MAX;
  if (await treasury.run("payouts", dies)) {
    met("payouts: died");
    follow(simulated, false, false);
    await treasury.run("payouts", null);
  }
  const before = plain.sent.length;
  const isExact = mayBegin && treasury.isAtFirst;
  follow(simulated, mayBegin, isExact);
  const paidNow = new Set(plain.sent.slice(before).map(({ payout }) => payout.payee));
  if (hasReplaced(simulated)) met("payouts: replaced");
  if (before === plain.sent.length && !mayBegin) met(`payouts: none, ${chain.away ?? "no_gas"}`);
  treasury.isAtFirst = mayBegin;
  if (!isExact) return;
  const scope = { organisation_id: organisationId, mode: "sandbox", status: "owed" } as const;
  const owed = must(await listPayouts(ctx, MACHINE, scope)).data.filter(({ asset }) => asset === "USDC");
  const reasons = plain.reasons(ctx.now(), paidNow, chain.token !== "plain");
  expect(owed.map(({ payee, waits_for }) => [payee, waits_for?.code ?? null])).toEqual(reasons);
  for (const [, reason] of reasons) met(`payouts: ${reason}`);
}

/** Whether a transaction of the wallet was signed again, with higher fees. */
const hasReplaced = ({ ctx, treasury }: WithTreasury): boolean =>
  treasury.plain.sent.some(
    ({ payout }) => (ctx.reader.rails.transactionOf(payout.id)?.transaction.signings.length ?? 0) > 1,
  );

/**
 * Tells the model what the service has begun, and what the chain says of what is under way.
 *
 * @param isSure whether the service must have accounted for all that the chain has confirmed
 * @param isInOrder whether it has looked at every payee since, in their order
 */
function follow({ ctx, organisationId, treasury }: WithTreasury, isSure: boolean, isInOrder: boolean): void {
  const { chain, plain } = treasury;
  const onChain = ctx.reader.payouts
    .list({ organisationId, mode: "sandbox" }, null, null, EVERY)
    .filter(({ rail }) => rail === "evm")
    .reverse();
  for (const [nonce, receipt] of chain.receipts().entries())
    if (receipt.block <= treasury.confirmed() && (isSure || onChain[nonce]?.status !== "submitted"))
      plain.account(nonce, receipt);
  // What has failed is owed again before the next ones begin.
  for (const { id, payee, amount } of onChain.slice(plain.sent.length))
    expect(plain.begin(id, payee, amount, ctx.now(), isInOrder)).toBeNull();
}

/** An admin lets the wallet send what it keeps, with a passkey or without. */
async function release(
  given: Of<"release">,
  { ctx, organisationId, model, people, payeeOf }: WithTreasury,
  met: Met,
): Promise<void> {
  const { money } = model;
  const by = people[given.by] as PersonCaller;
  const payee = given.payee === null ? null : payeeOf(given.payee);
  const named = payee === null ? {} : { payee };
  const asked = { organisation_id: organisationId, mode: "sandbox", ...named } as const;
  const { digest } = await ctx.store.read((reader) => readBatch(reader, by, named));
  const found = money.owed(payee === null ? null : { payee, asset: "USDC" });
  const token = await tokenOf(given, by, digest);
  const answer = await submitPayouts(ctx, by, {
    ...asked,
    batch: given.signs === "not_as_seen" ? "f".repeat(64) : digest,
    ...(token !== null && { passkey_token: token }),
  });
  const ids = isRefusal(answer) ? [] : answer.data.map(({ id }) => id);
  const how = { byHand: false, isSigned: given.signs === "this" };
  const admin = adminOf(by);
  const isSeen = given.signs !== "not_as_seen" || (admin.kind === "person" && !admin.isSenior);
  const expected = isSeen ? money.submit(admin, ids, found, how) : "version_conflict";
  expect<unknown>(isRefusal(answer) ? answer.refused : answer.data.map(shownPayout)).toEqual(
    typeof expected === "string" ? expected : expected.map(shownPayout),
  );
  if (isRefusal(answer)) return met(`release: ${answer.refused}`);
  const isReleased = answer.data.some(({ status }) => status === "owed");
  // A signature is good once.
  if (isReleased && token !== null) {
    const again = await submitPayouts(ctx, by, { ...asked, passkey_token: token });
    expect(isRefusal(again) ? again.refused : again).toBe("passkey_required");
  }
  met(`release: ${answer.data.length === 0 ? "nothing owed" : isReleased ? "done" : "by hand"}`);

  /** The token of what the person signs: the batch, or something else. Null where it is nothing. */
  async function tokenOf({ signs }: Of<"release">, by: PersonCaller, batch: string): Promise<string | null> {
    if (signs === "nothing") return null;
    money.withPasskey.add(by.userId);
    return putSignature(ctx, by, submissionOf(by.userId, signs === "another" ? "0".repeat(64) : batch));
  }
}
