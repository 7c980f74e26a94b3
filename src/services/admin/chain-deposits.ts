import type { Deposit } from "../../core/deposit.ts";
import { isRefusal, type Refusal, refuse } from "../../core/errors.ts";
import { MODES, type Mode } from "../../core/roles.ts";
import { type TransferResource, transferResource } from "../../resources/chain-transfer.ts";
import { depositResource } from "../../resources/deposit.ts";
import type { Reader } from "../../store/reader.ts";
import type { Scope } from "../../store/scope.ts";
import type { Audited } from "../audited.ts";
import { creditNeeds, creditOf } from "../chain/credit.ts";
import type { Context } from "../context.ts";
import { refuseInteger, refuseUnlisted } from "../fields.ts";
import { refuseUnacknowledged } from "../instance.ts";
import { firstOf } from "../page-of-list.ts";
import { administer, MACHINE } from "./authority.ts";

/** What came in to treasuries and is nobody's deposit yet. Only the machine's operator sees it, and says whose it is. */

type TransferList = {
  readonly object: "list";
  readonly data: readonly TransferResource[];
  readonly has_more: boolean;
  readonly next_cursor: string | null;
};

/** The transfers of a mode that wait for a person, those of a treasury newest first. `limit` is 1 to 100; without it, 25. */
export async function listUnassigned(
  ctx: Context,
  input: { readonly mode: Mode; readonly limit?: number; readonly starting_after?: string },
): Promise<TransferList | Refusal> {
  const { mode, limit = 25, starting_after: after = null } = input;
  const refused = refuseUnlisted("mode", mode, MODES) ?? refuseInteger("limit", limit, 1, 100);
  if (refused) return refused;
  return ctx.store.read(async (reader) => {
    const found: TransferResource[] = [];
    // A list goes on in the treasury of its cursor.
    let cursor = after === null ? null : await reader.chainTransfers.find(after);
    for (const watch of await reader.treasuryWatches.list()) {
      if (watch.mode !== mode || (cursor && cursor.watchId !== watch.id)) continue;
      const rows = await reader.chainTransfers.unassigned(
        watch.id,
        cursor?.id ?? null,
        limit + 1 - found.length,
      );
      cursor = null;
      found.push(...rows.map((row) => transferResource(watch, row)));
      if (found.length > limit) break;
    }
    const { rows, more } = firstOf(found, limit, ({ id }) => id);
    return { object: "list", data: rows, ...more };
  });
}

type AssignedDeposit = ReturnType<typeof depositResource>;

/** Says whose an unassigned transfer is: it becomes a deposit, once. Assigned again to the same, the answer is that deposit. */
export async function assignTransfer(
  ctx: Context,
  {
    transfer_id: id,
    organisation_id: organisationId,
  }: { readonly transfer_id: string; readonly organisation_id: string },
): Promise<AssignedDeposit | Refusal> {
  const found = await ctx.store.read(async (reader) => {
    const transfer = await reader.chainTransfers.find(id);
    const watch = transfer && (await reader.treasuryWatches.find(transfer.watchId));
    const deposit = transfer?.depositId ? await reader.deposits.get(transfer.depositId) : null;
    return transfer && watch && { transfer, watch, deposit };
  });
  if (!found) return refuse("transfer_not_found", `There is no transfer ${id} to a treasury.`);
  const { transfer, watch, deposit } = found;
  if (deposit?.organisationId === organisationId) return depositResource(deposit);
  const scope: Scope = { organisationId, mode: watch.mode };
  const depositId = ctx.newId("deposit");
  return administer(ctx, MACHINE, "admin", {
    scope,
    needs: creditNeeds(watch, transfer),
    decide(snapshot): Audited<AssignedDeposit> {
      const standsStill = refuseUnacknowledged(snapshot.instance, watch.mode);
      if (standsStill) return { answer: standsStill };
      const { chainTransfer, depositReferenced: known } = snapshot;
      // Another command has assigned it to the same since it was read.
      if (known !== null && known.id === chainTransfer?.depositId) return { answer: depositResource(known) };
      const credit = creditOf(snapshot, scope, depositId);
      if (isRefusal(credit)) return { answer: credit };
      const answer = depositResource(credit.deposit);
      const before = transferResource(watch, transfer);
      return {
        answer,
        put: credit.put,
        entries: [{ action: "deposit.assigned", subject: id, before, after: answer }],
      };
    },
  });
}

/** The transfer that brought a deposit; null where no chain did. */
export async function transferOfDeposit(reader: Reader, { id }: Deposit): Promise<TransferResource | null> {
  const transfer = await reader.chainTransfers.ofDeposit(id);
  const watch = transfer && (await reader.treasuryWatches.find(transfer.watchId));
  return transfer && watch && transferResource(watch, transfer);
}
