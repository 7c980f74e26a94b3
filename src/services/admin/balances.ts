import type { Deposit } from "../../core/deposit.ts";
import { isRefusal, type Refusal, refuseField } from "../../core/errors.ts";
import { AMOUNT_MAX, parseAmount } from "../../core/money.ts";
import { deposit as depositLegs, NO_BALANCE } from "../../core/postings.ts";
import { MODES, type Mode } from "../../core/roles.ts";
import type { Context } from "../context.ts";
import { balanceResource, depositResource } from "../resources.ts";
import { recordingAct } from "./acts.ts";
import {
  type Authority,
  administer,
  readableScope,
  refuseAuthority,
  refuseOrganisation,
} from "./authority.ts";
import { refuseAsset, refuseText, refuseUnlisted } from "./fields.ts";

export type DepositInput = {
  readonly organisation_id: string;
  readonly mode: Mode;
  readonly amount: string;
  /** Without it, `USDC`. */
  readonly asset?: string;
  /** How the money came in, in the operator's words. */
  readonly reference?: string;
};

/** Records money that came in: a deposit, and its posting on the books of the mode. */
export async function fundBalance(
  ctx: Context,
  authority: Authority,
  input: DepositInput,
): Promise<ReturnType<typeof depositResource> | Refusal> {
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
  const deposit: Deposit = {
    id: ctx.newId("deposit"),
    organisationId: input.organisation_id,
    mode: input.mode,
    asset,
    amount,
    reference,
    createdAt: ctx.now(),
  };
  const record = recordingAct(ctx, authority, "balance.funded");
  return administer(ctx, authority, "admin", {
    scope: deposit,
    needs: { organisation: true, balanceOf: asset },
    decide: (snapshot) => {
      const unknown = refuseOrganisation(authority, snapshot.organisation);
      if (unknown) return { answer: unknown };
      const { available, held, paid } = snapshot.balance ?? NO_BALANCE;
      const room = AMOUNT_MAX - available - held - paid;
      if (amount > room) {
        return {
          answer: refuseField(
            "amount",
            `the books hold at most ${AMOUNT_MAX} of an asset; ${room} more fits`,
          ),
        };
      }
      const answer = depositResource(deposit);
      return {
        answer,
        change: {
          rows: [{ kind: "deposit", row: deposit }, record(deposit.organisationId, deposit.id, null, answer)],
          posting: {
            legs: depositLegs(amount),
            asset,
            warrantId: null,
            depositId: deposit.id,
            payee: null,
            recordedAt: deposit.createdAt,
          },
        },
      };
    },
  });
}

/** What an organisation has in one mode, asset by asset. */
export async function showBalances(
  ctx: Context,
  authority: Authority,
  input: { readonly organisation_id: string; readonly mode: Mode },
): Promise<ReturnType<typeof balanceResource> | Refusal> {
  const scope = readableScope(ctx, authority, "viewer", input);
  return isRefusal(scope) ? scope : balanceResource(scope.mode, ctx.store.reader.balances.list(scope));
}
