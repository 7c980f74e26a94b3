import { hashSecret } from "../../core/api-key.ts";
import { type Correction, countedAmount, differenceOf, movedBy } from "../../core/correction.ts";
import type { Deposit } from "../../core/deposit.ts";
import { isRefusal, type Refusal, refuse, refuseField } from "../../core/errors.ts";
import { AMOUNT_MAX, displayAmount, parseAmount } from "../../core/money.ts";
import { approvalOfCorrection, isAboveThreshold } from "../../core/passkey.ts";
import { type Balance, correct, NO_BALANCE } from "../../core/postings.ts";
import type { PersonCaller } from "../../core/roles.ts";
import { type CorrectionResource, correctionResource } from "../../resources/correction.ts";
import type { Put } from "../../store/change.ts";
import type { Audited } from "../audited.ts";
import { useApproval } from "../auth/passkeys/use-approval.ts";
import type { Context } from "../context.ts";
import { refuseText } from "../fields.ts";
import { refuseUnacknowledged } from "../instance.ts";
import { type Authority, administer, reaches, refuseAuthority } from "./authority.ts";
import { refusePooledCorrection } from "./pooled-money.ts";

export type CorrectInput = {
  readonly deposit_id: string;
  /** What the deposit really brought, in the smallest unit. 0: it never came. */
  readonly amount: string;
  readonly reason: string;
};

/**
 * Records what a deposit really brought, and posts the difference. Where the difference, or that of all corrections of the deposit
 * together, is above the organisation's passkey threshold it is only proposed, and waits for a second person. The same amount again
 * is answered with the correction that is there.
 */
export async function correctBalance(
  ctx: Context,
  authority: Authority,
  { deposit_id: depositId, ...input }: CorrectInput,
): Promise<CorrectionResource | Refusal> {
  const refused = refuseAuthority(authority, "admin") ?? refuseText("reason", input.reason);
  if (refused) return refused;
  const amountAfter = parseAmount(input.amount);
  if (amountAfter === null) return refuseField("amount", `must be a string of digits, at most ${AMOUNT_MAX}`);
  const found = await ctx.store.read((reader) => reader.deposits.get(depositId));
  if (!found || !reaches(authority, found)) return depositNotFound(depositId);
  const id = ctx.newId("correction");
  const proposedBy = authority.kind === "person" ? authority.userId : null;
  return administer(ctx, authority, "admin", {
    scope: found,
    needs: {
      deposit: depositId,
      depositCorrection: { from: "deposit" },
      balance: { from: "deposit" },
      railStates: authority.kind === "machine" ? [] : [found],
    },
    decide(
      { deposit, depositCorrection: newest, balance, organisation, railStates, instance, recordedAt },
      now,
    ): Audited<CorrectionResource> {
      if (!deposit) return { answer: depositNotFound(depositId) };
      const there = correctedAlready(deposit, newest, amountAfter);
      if (there) return { answer: there };
      const correction: Correction = {
        ...{
          id,
          organisationId: deposit.organisationId,
          mode: deposit.mode,
          asset: deposit.asset,
          depositId,
        },
        ...{ amountBefore: countedAmount(deposit, newest), amountAfter, reason: input.reason },
        ...{ status: "recorded", proposedBy, decidedBy: null, createdAt: now, decidedAt: null },
      };
      const problem =
        refuseUnacknowledged(instance, deposit.mode) ??
        refusePooledCorrection(correction, railStates[0] ?? null) ??
        refuseDifference(balance, correction);
      if (problem) return { answer: problem };
      const { passkeyThreshold } = organisation;
      return movedBy(correction, deposit).some((moved) => isAboveThreshold(passkeyThreshold, moved))
        ? written(null, { ...correction, status: "proposed" }, recordedAt)
        : written(null, correction, recordedAt);
    },
  });
}

/** The correction that says so already, or why another one has to wait. */
function correctedAlready(
  deposit: Deposit,
  newest: Correction | null,
  amountAfter: bigint,
): CorrectionResource | Refusal | null {
  if (newest?.amountAfter === amountAfter) return correctionResource(newest);
  if (newest?.status === "proposed")
    return refuse(
      "illegal_transition",
      `The correction ${newest.id} of this deposit waits for a second person. It is approved or withdrawn first.`,
    );
  return newest === null && deposit.amount === amountAfter
    ? refuseField(
        "amount",
        `is what the deposit brought as it was recorded: ${displayAmount(deposit.amount, deposit.asset)}`,
      )
    : null;
}

/** Why the balance cannot take the difference. */
function refuseDifference(found: Balance | null, correction: Correction): Refusal | null {
  const { available, held, paid } = found ?? NO_BALANCE;
  const difference = differenceOf(correction);
  if (available + difference < 0n)
    return refuse(
      "insufficient_funds",
      `${displayAmount(available, correction.asset)} is available, and ${displayAmount(-difference, correction.asset)} is to be taken back. What is held or paid cannot be.`,
    );
  const room = AMOUNT_MAX - available - held - paid;
  return difference > room
    ? refuseField("amount", `a balance holds at most ${AMOUNT_MAX} of an asset; ${room} more fits`)
    : null;
}

/** The writes of a correction; with its posting where it is recorded, and the signature that it used. */
function written(
  before: Correction | null,
  correction: Correction,
  recordedAt: number,
  used: readonly Put[] = [],
): Audited<CorrectionResource> {
  const { id, organisationId, mode, asset, status } = correction;
  const posting: Put = {
    kind: "posting",
    row: {
      ...{ organisationId, mode, asset, legs: correct(differenceOf(correction)), kind: "correction" },
      ...{ causeId: id, payee: null, recordedAt },
    },
  };
  const answer = correctionResource(correction);
  return {
    answer,
    put: [
      { kind: "correction", before, row: correction },
      ...(status === "recorded" ? [posting] : []),
      ...used,
    ],
    entries: [
      {
        action: `correction.${status}`,
        subject: id,
        before: before && correctionResource(before),
        after: answer,
      },
    ],
  };
}

export type DecideInput = {
  readonly correction_id: string;
  readonly decision: "approve" | "withdraw";
  /** The token of a passkey's signature over the approval. */
  readonly passkey_token?: string;
};

/**
 * A second person approves what was proposed, and it is posted; or anybody withdraws it. Refused with `second_person_required`
 * where the person proposed it themselves; an approval above the passkey threshold is signed, else `passkey_required` or
 * `passkey_unavailable`.
 */
export async function decideCorrection(
  ctx: Context,
  caller: PersonCaller,
  { correction_id: id, decision, passkey_token: passkeyToken }: DecideInput,
): Promise<CorrectionResource | Refusal> {
  const refused = refuseAuthority(caller, "admin");
  if (refused) return refused;
  const found = await ctx.store.read((reader) => reader.corrections.get(id));
  if (!found || !reaches(caller, found)) return correctionNotFound(id);
  return administer(ctx, caller, "admin", {
    scope: caller,
    needs: {
      correction: id,
      deposit: { from: "correction" },
      balance: { from: "deposit" },
      railStates: [found],
      passkeyApproval: passkeyToken === undefined ? null : hashSecret(passkeyToken),
      passkeys: caller.userId,
    },
    decide(snapshot, now): Audited<CorrectionResource> {
      const { correction, deposit, balance, railStates, instance, recordedAt } = snapshot;
      if (!correction || !deposit) return { answer: correctionNotFound(id) };
      const closed = refuseDecided(correction);
      if (closed) return { answer: closed };
      const decidedAs = (status: "recorded" | "withdrawn"): Correction => ({
        ...correction,
        ...{ status, decidedBy: caller.userId, decidedAt: now },
      });
      if (decision === "withdraw") return written(correction, decidedAs("withdrawn"), recordedAt);
      const problem =
        refuseFirstPerson(correction, caller) ??
        refuseUnacknowledged(instance, correction.mode) ??
        // What the operator of the machine has proposed, they have answered for. A person may have proposed it before there was a treasury.
        (correction.proposedBy === null ? null : refusePooledCorrection(correction, railStates[0] ?? null)) ??
        refuseDifference(balance, correction);
      if (problem) return { answer: problem };
      const signed = approvalOfCorrection(caller.userId, id);
      const used = useApproval(snapshot, signed, movedBy(correction, deposit), now);
      return isRefusal(used)
        ? { answer: used }
        : written(correction, decidedAs("recorded"), recordedAt, used);
    },
  });
}

/** What is approved or withdrawn is decided for good. */
export const refuseDecided = ({ id, status }: Correction): Refusal | null =>
  status === "proposed" ? null : refuse("illegal_transition", `The correction ${id} is ${status} already.`);

const refuseFirstPerson = ({ proposedBy }: Correction, { userId }: PersonCaller): Refusal | null =>
  proposedBy === userId
    ? refuse("second_person_required", "You proposed this correction; a second person approves it.")
    : null;

const depositNotFound = (id: string): Refusal => refuse("deposit_not_found", `There is no deposit ${id}.`);

export const correctionNotFound = (id: string): Refusal =>
  refuse("correction_not_found", `There is no correction ${id}.`);
