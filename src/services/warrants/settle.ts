import type { Refusal } from "../../core/errors.ts";
import { ACCESS, type Caller, refuseAccess } from "../../core/roles.ts";
import type { Context } from "../context.ts";
import type { Answer, Intent } from "../intent.ts";
import { warrantResource } from "../resources.ts";
import { decideByPerson } from "./decide-by-person.ts";
import { warrantNotFound } from "./transition.ts";

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
  intent: Intent,
): Promise<Answer | Refusal> {
  const refused = refuseAccess(caller, ACCESS.settleWarrant);
  if (refused) return refused;
  return decideByPerson(
    ctx,
    caller,
    {
      access: ACCESS.settleWarrant,
      needs: { warrantId },
      refuseMissing: (snapshot) => (snapshot.warrant ? null : warrantNotFound()),
      refuseDecided: () => null,
      resource: warrantResource,
    },
    { ...input, note: null },
    intent,
  );
}
