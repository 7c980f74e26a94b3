import { countedAmount } from "../../core/correction.ts";
import type { Deposit } from "../../core/deposit.ts";
import { isRefusal, type Refusal, refuse, refuseField } from "../../core/errors.ts";
import { AMOUNT_MAX, parseAmount } from "../../core/money.ts";
import { deposit as depositLegs, NO_BALANCE } from "../../core/postings.ts";
import { MODES, type Mode } from "../../core/roles.ts";
import { balanceResource } from "../../resources/balance.ts";
import type { TransferResource } from "../../resources/chain-transfer.ts";
import { depositResource } from "../../resources/deposit.ts";
import type { Reader } from "../../store/reader.ts";
import type { Posting } from "../../store/rows.ts";
import type { Audited } from "../audited.ts";
import type { Context } from "../context.ts";
import { refuseAsset, refuseInteger, refuseText, refuseUnlisted } from "../fields.ts";
import { refuseUnacknowledged } from "../instance.ts";
import { firstOf, ofScope, refuseCursor } from "../page-of-list.ts";
import { type Authority, administer, readableScope, refuseAuthority } from "./authority.ts";
import { transferOfDeposit } from "./chain-deposits.ts";
import { refusePooledDeposit } from "./pooled-money.ts";

export type DepositInput = {
  readonly organisation_id: string;
  readonly mode: Mode;
  readonly amount: string;
  /** Without it, `USDC`. */
  readonly asset?: string;
  /** How the money came in, in the operator's words, such as the bank's own number of it. It names one deposit of an asset. */
  readonly reference?: string;
};

type DepositResource = ReturnType<typeof depositResource>;

/**
 * Records money that came in: a deposit, and its posting to the balance of the mode. With a reference that was recorded already
 * the answer is that deposit, and nothing is posted; where its amount was another, `deposit_reference_used`. No live money
 * in a copy whose restore is not acknowledged: the original may have recorded it after the backup. Of an asset that a wallet on a
 * chain holds only the operator of the machine records live money.
 */
export async function fundBalance(
  ctx: Context,
  authority: Authority,
  input: DepositInput,
): Promise<DepositResource | Refusal> {
  const { asset = "USDC", reference = null } = input;
  const refused =
    refuseAuthority(authority, "admin") ??
    refuseUnlisted("mode", input.mode, MODES) ??
    refuseAsset("asset", asset) ??
    (reference === null ? null : refuseText("reference", reference));
  if (refused) return refused;
  const amount = parseAmount(input.amount);
  if (amount === null) return refuseField("amount", `must be a string of digits, at most ${AMOUNT_MAX}`);
  if (amount === 0n) return refuseField("amount", "must be greater than zero");
  const id = ctx.newId("deposit");
  const scope = { organisationId: input.organisation_id, mode: input.mode };
  return administer(ctx, authority, "admin", {
    scope,
    needs: {
      balance: asset,
      depositReferenced: reference === null ? null : { asset, reference },
      railStates: authority.kind === "machine" ? [] : [{ mode: input.mode, asset }],
    },
    decide: (
      { balance, depositReferenced, railStates: [railState = null], instance, recordedAt },
      now,
    ): Audited<DepositResource> => {
      if (depositReferenced) return { answer: sameDeposit(depositReferenced, amount) };
      const refusal =
        refuseUnacknowledged(instance, scope.mode) ?? refusePooledDeposit(scope.mode, asset, railState);
      if (refusal) return { answer: refusal };
      const { available, held, paid } = balance ?? NO_BALANCE;
      const room = AMOUNT_MAX - available - held - paid;
      if (amount > room) {
        return {
          answer: refuseField(
            "amount",
            `a balance holds at most ${AMOUNT_MAX} of an asset; ${room} more fits`,
          ),
        };
      }
      const deposit: Deposit = { ...scope, id, asset, amount, reference, createdAt: now };
      const posting: Posting = {
        ...scope,
        asset,
        legs: depositLegs(amount),
        kind: "deposit",
        causeId: id,
        payee: null,
        recordedAt,
      };
      const answer = depositResource(deposit);
      return {
        answer,
        put: [
          { kind: "deposit", row: deposit },
          { kind: "posting", row: posting },
        ],
        entries: [{ action: "balance.funded", subject: id, before: null, after: answer }],
      };
    },
  });
}

const sameDeposit = (recorded: Deposit, amount: bigint): DepositResource | Refusal =>
  recorded.amount === amount
    ? depositResource(recorded)
    : refuse(
        "deposit_reference_used",
        `reference: the deposit ${recorded.id} of ${recorded.amount} ${recorded.asset} has it; give this one another.`,
      );

type ListedDeposit = DepositResource & {
  /** What it counts for, as it was corrected. */
  readonly counts_for: string;
  /** The transfer on a chain that brought it. Its `block` is null where a reorganisation has taken it out. */
  readonly transfer: TransferResource | null;
};
type DepositList = {
  readonly object: "list";
  readonly data: readonly ListedDeposit[];
  readonly has_more: boolean;
  readonly next_cursor: string | null;
};

/** What came in, newest first. `limit` is 1 to 100, and 25 where it is missing. */
export async function listDeposits(
  ctx: Context,
  authority: Authority,
  input: {
    readonly organisation_id: string;
    readonly mode: Mode;
    readonly limit?: number;
    readonly starting_after?: string;
  },
): Promise<DepositList | Refusal> {
  const { limit = 25, starting_after: after = null } = input;
  const refused = refuseInteger("limit", limit, 1, 100);
  if (refused) return refused;
  return ctx.store.read(async (reader) => {
    const scope = await readableScope(reader, authority, "viewer", input);
    if (isRefusal(scope)) return scope;
    if (after !== null && ofScope(scope, await reader.deposits.get(after)) === null) return refuseCursor();
    const found = await reader.deposits.list(scope, after, limit + 1);
    const { rows, more } = firstOf(found, limit, ({ id }) => id);
    const data = await Promise.all(
      rows.map(async (deposit) => {
        const counted = await countedIn(reader, deposit);
        const transfer = await transferOfDeposit(reader, deposit);
        return { ...depositResource(deposit), counts_for: counted.toString(), transfer };
      }),
    );
    return { object: "list", data, ...more };
  });
}

/** What a deposit counts for, as it was corrected. */
export const countedIn = async (reader: Reader, deposit: Deposit): Promise<bigint> =>
  countedAmount(deposit, await reader.corrections.newestOf(deposit.id));

/** What an organisation has in one mode, asset by asset. */
export async function showBalances(
  ctx: Context,
  authority: Authority,
  input: { readonly organisation_id: string; readonly mode: Mode },
): Promise<ReturnType<typeof balanceResource> | Refusal> {
  return ctx.store.read(async (reader) => {
    const scope = await readableScope(reader, authority, "viewer", input);
    return isRefusal(scope) ? scope : balanceResource(scope.mode, await reader.balances.list(scope));
  });
}
