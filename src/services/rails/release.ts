import type { PayeeName } from "../../core/payout.ts";
import type { PayoutWait } from "../../core/rail.ts";
import type { Put } from "../../store/change.ts";
import type { Scope } from "../../store/scope.ts";

/**
 * Releases what is owed to a payee at this moment: the server sends it with its next run, whatever the limits are and though the
 * last payout failed. What is released later, of other warrants, is not released by this.
 */
export function releasePut(
  { organisationId, mode }: Scope,
  { asset, payee }: PayeeName,
  owed: bigint,
  before: PayoutWait | null,
  since: number,
): Put {
  const row: PayoutWait = {
    ...{ organisationId, mode, asset, payee, code: "released", detail: null, until: null },
    ...{ released: owed, since },
  };
  return { kind: "payoutWait", before, row };
}
