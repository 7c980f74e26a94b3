import type { Refusal } from "../../core/errors.ts";
import { ACCESS, type Caller, refuseAccess } from "../../core/roles.ts";
import { warrantNotFound } from "../../core/warrant.ts";
import { warrantResource } from "../../resources/warrant.ts";
import type { Context } from "../context.ts";
import type { Answer, Idempotency } from "../idempotency.ts";
import { decideByPerson } from "./decide-by-person.ts";

export type SettleInput = {
  readonly warrantId: string;
  readonly decision: "release" | "partial_release" | "refund";
  readonly releasedBps: number | null;
  readonly ifMatch: number | null;
  readonly passkeyToken?: string | null;
};

/** A signed-in person releases, partially releases or refunds directly. Answers 200 with the warrant. */
export async function settleWarrant(
  ctx: Context,
  caller: Caller,
  { warrantId, ...input }: SettleInput,
  idempotency: Idempotency,
): Promise<Answer | Refusal> {
  const refused = refuseAccess(caller, ACCESS.settleWarrant);
  if (refused) return refused;
  return decideByPerson(
    ctx,
    caller,
    {
      access: ACCESS.settleWarrant,
      needs: { warrant: warrantId },
      refuseMissing: ({ warrant }) => (warrant ? null : warrantNotFound()),
      refuseDecided: () => null,
      resource: warrantResource,
    },
    { ...input, note: null },
    idempotency,
  );
}
