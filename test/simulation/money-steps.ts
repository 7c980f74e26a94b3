import { expect } from "bun:test";
import { isRefusal, type Refusal } from "../../src/core/errors.ts";
import type { PersonCaller } from "../../src/core/roles.ts";
import { type Authority, MACHINE } from "../../src/services/admin/authority.ts";
import { fundBalance } from "../../src/services/admin/balances.ts";
import { correctBalance, decideCorrection } from "../../src/services/admin/corrections.ts";
import { failPayoutOf, markPaid, submitPayouts } from "../../src/services/admin/payouts.ts";
import { setPasskeyThreshold } from "../../src/services/admin/switches.ts";
import { must } from "../support/stage.ts";
import type { Command } from "./commands.ts";
import type { ModelAdmin, ModelCorrection, ModelPayout } from "./plain-money.ts";
import type { Simulated } from "./service.ts";

/** Commands of money in and out, sent to the service; the model then says what the answer must be. */

const IN = ["fund", "threshold", "correct", "correction"] as const;
const OUT = ["submit", "paid", "fail"] as const;
type InCommand = Extract<Command, { do: (typeof IN)[number] }>;
type OutCommand = Extract<Command, { do: (typeof OUT)[number] }>;

const isIn = (command: Command): command is InCommand => (IN as readonly string[]).includes(command.do);
export const isMoney = (command: Command): command is InCommand | OutCommand =>
  isIn(command) || (OUT as readonly string[]).includes(command.do);

type Shown = readonly (string | null)[];
/** What a command was answered, and what the model says when it is asked: a refusal's code, or what the answer shows. */
type Sent = {
  readonly answered: string | Shown | readonly Shown[];
  readonly expected: () => string | Shown | readonly Shown[];
};

const pick = <T>(items: readonly T[], at: number): T | undefined => items[at % items.length];

/**
 * Sends a command, and resolves to its judge when it was answered.
 *
 * @param met is told which outcome it had
 */
export async function sendMoney(
  given: InCommand | OutCommand,
  simulated: Simulated,
  met: (outcome: string) => void,
): Promise<() => void> {
  const { answered, expected } = await (isIn(given) ? sendIn(given, simulated) : sendOut(given, simulated));
  const done = given.do === "correction" ? given.decision : answered.length === 0 ? "nothing owed" : "done";
  met(`${given.do}: ${typeof answered === "string" ? answered : done}`);
  return () => expect(answered).toEqual(expected());
}

async function sendIn(
  given: InCommand,
  { ctx, organisationId, mode, model, people }: Simulated,
): Promise<Sent> {
  const { money } = model;
  const inMode = { organisation_id: organisationId, mode };
  switch (given.do) {
    case "fund": {
      const { asset, amount, reference } = given;
      const named = reference !== null && { reference };
      const answer = await fundBalance(ctx, MACHINE, { ...inMode, asset, amount: `${amount}`, ...named });
      return sent(
        answer,
        (shown) => [shown.id, shown.amount, shown.reference],
        () => money.fund(idOf(answer), asset, amount, reference),
        (of) => [of.id, `${of.amount}`, of.reference],
      );
    }
    case "threshold": {
      const amount = given.amount?.toString() ?? null;
      const answer = await setPasskeyThreshold(ctx, MACHINE, { organisation_id: organisationId, amount });
      const expected = () => {
        money.threshold = given.amount;
        return [amount];
      };
      return { answered: [must(answer).passkey_threshold], expected };
    }
    case "correct": {
      const deposit = given.deposit % 40 === 0 ? undefined : pick(money.deposits, given.deposit);
      const depositId = deposit?.id ?? "dep_unknown";
      const after = amountOf(given.to, deposit?.amount ?? 0n, deposit ? money.countsFor(deposit) : 0n);
      const by = authorityOf(given.by, people);
      const input = { deposit_id: depositId, amount: `${after}`, reason: "as the bank says" };
      const answer = await correctBalance(ctx, by, input);
      const expected = () => money.correct(adminOf(by), idOf(answer), depositId, after);
      return sent(answer, shownCorrection, expected, ofCorrection);
    }
    case "correction": {
      const proposed = money.corrections.filter(({ status }) => status === "proposed");
      const from = proposed.length > 0 && given.correction % 4 > 0 ? proposed : money.corrections;
      const id = pick(from, given.correction)?.id ?? "cor_unknown";
      const by = people[given.by] as PersonCaller;
      const answer = await decideCorrection(ctx, by, { correction_id: id, decision: given.decision });
      const expected = () => money.decideCorrection(adminOf(by), id, given.decision);
      return sent(answer, shownCorrection, expected, ofCorrection);
    }
  }
}

async function sendOut(
  given: OutCommand,
  { ctx, organisationId, mode, model, people, payeeOf }: Simulated,
): Promise<Sent> {
  const { money } = model;
  const by = authorityOf(given.by, people);
  if (given.do === "submit") {
    const to = given.payee === null ? null : { payee: payeeOf(given.payee), asset: given.asset };
    // The operator of the machine who names nobody leaves out what a wallet sends.
    const isOfAll = by.kind === "machine" && to === null && !given.byHand;
    // It is read before the commit, so before anything that is sent at the same time.
    const found = money.owed(to).filter((one) => !isOfAll || !money.isPaidByWallet(one));
    const rail = given.byHand && { rail: "book" as const };
    const answer = await submitPayouts(ctx, by, { organisation_id: organisationId, mode, ...to, ...rail });
    const ids = isRefusal(answer) ? [] : answer.data.map(({ id }) => id);
    return sent(
      answer,
      ({ data }) => data.map(shownPayout),
      () => money.submit(adminOf(by), ids, found, { byHand: given.byHand, isSigned: false }),
      (payouts) => payouts.map(shownPayout),
    );
  }
  const payout = given.payout % 40 === 0 ? undefined : pick(money.payouts.toReversed(), given.payout);
  const payout_id = payout?.id ?? "pay_unknown";
  const answer = await (given.do === "paid"
    ? markPaid(ctx, by, { payout_id, reference: given.reference })
    : failPayoutOf(ctx, by, { payout_id, reason: given.reason, returned: given.returned }));
  return sent(answer, shownPayout, () => money.end(adminOf(by), payout_id, given), shownPayout);
}

/** What a command was answered, and what is expected, in the same form. */
const sent = <Answer extends object, Known extends object>(
  answer: Answer | Refusal,
  shown: (answer: Answer) => Shown | readonly Shown[],
  expected: () => Known | string,
  ofKnown: (known: Known) => Shown | readonly Shown[],
): Sent => ({
  answered: isRefusal(answer) ? answer.refused : shown(answer),
  expected() {
    const known = expected();
    return typeof known === "string" ? known : ofKnown(known);
  },
});

/** What a deposit is corrected to. */
const amountOf = (
  to: "nothing" | "half" | "less" | "same" | "more",
  amount: bigint,
  counted: bigint,
): bigint =>
  ({
    nothing: 0n,
    half: amount / 2n,
    less: counted === 0n ? 0n : counted - 1n,
    same: counted,
    more: counted < 2n ** 62n ? counted + 200n : counted,
  })[to];

const authorityOf = (
  by: "machine" | "operator" | "admin" | "owner",
  people: Simulated["people"],
): Authority => (by === "machine" ? MACHINE : people[by]);

export function adminOf(by: Authority): ModelAdmin {
  if (by.kind === "machine") return by;
  if (by.kind === "key") throw new Error("a key administers nothing");
  return { kind: "person", userId: by.userId, isSenior: by.role === "admin" || by.role === "owner" };
}

const idOf = (answer: { readonly id: string } | Refusal): string => (isRefusal(answer) ? "" : answer.id);

type CorrectionShown = {
  readonly id: string;
  readonly status: string;
  readonly amount_before: string;
  readonly amount_after: string;
};
const shownCorrection = (of: CorrectionShown): Shown => [of.id, of.status, of.amount_before, of.amount_after];
const ofCorrection = (of: ModelCorrection): Shown => [of.id, of.status, `${of.before}`, `${of.after}`];

type PayoutShown = Pick<ModelPayout, "asset" | "payee" | "reference" | "reason"> & {
  readonly id: string | null;
  readonly amount: string | bigint;
  readonly status: string;
};
export const shownPayout = (of: PayoutShown): Shown => [
  ...[of.id, of.asset, of.payee, `${of.amount}`, of.status],
  ...[of.reference, of.reason],
];
