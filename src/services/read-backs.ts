import { isRefusal, type Refusal } from "../core/errors.ts";
import { ESCALATION_STATUSES, type Escalation } from "../core/escalation.ts";
import { ACCESS, type Caller, refuseAccess } from "../core/roles.ts";
import { escalationResource } from "../resources/escalation.ts";
import { listResource } from "../resources/list.ts";
import { policyResource } from "../resources/policy.ts";
import { verifierListResource } from "../resources/verifier.ts";
import type { EscalationPlace, Reader } from "../store/reader.ts";
import type { Context } from "./context.ts";
import { firstOf, type PageOfList, pageOfList, refuseCursor, refuseWithoutLimit } from "./page-of-list.ts";

/** Lists that only the console shows, to a signed-in person of any role. */

const ESCALATIONS_MAX = 1_000;

/** The organisation's saved verifiers, and every kind of clause with its description. */
export async function readVerifiers(ctx: Context, caller: Caller, asked: PageOfList) {
  const refused = refuseAccess(caller, ACCESS.readConsole);
  if (refused) return refused;
  const { organisationId } = caller;
  const page = await ctx.store.read(({ verifiers }) =>
    pageOfList(
      asked,
      (part) => verifiers.list(organisationId, part),
      (id) => verifiers.get(organisationId, id),
    ),
  );
  return isRefusal(page) ? page : { ...verifierListResource(page.rows), ...page.more };
}

/** Every policy version, newest first within each name. */
export async function readPolicies(ctx: Context, caller: Caller, asked: PageOfList) {
  const refused = refuseAccess(caller, ACCESS.readConsole);
  if (refused) return refused;
  const { organisationId } = caller;
  const page = await ctx.store.read(({ policies }) =>
    pageOfList(
      asked,
      (part) => policies.list(organisationId, part),
      (id) => policies.get(organisationId, id),
    ),
  );
  return isRefusal(page) ? page : { ...listResource(page.rows.map(policyResource)), ...page.more };
}

/**
 * Escalations: first those that wait for a person, the longest waiting at the top. Without a limit the first 1,000. A page goes on
 * where the one before ended, though what it has shown may be resolved by now.
 */
export async function readEscalations(ctx: Context, caller: Caller, asked: PageOfList) {
  const refused = refuseAccess(caller, ACCESS.readConsole);
  if (refused) return refused;
  return ctx.store.read(async (reader) => {
    const { limit, starting_after: cursor } = asked;
    if (limit === undefined) {
      if (cursor !== undefined) return refuseWithoutLimit();
      return listResource((await reader.escalations.list(caller, ESCALATIONS_MAX)).map(escalationResource));
    }
    const after = cursor === undefined ? null : await placeOf(reader, caller, cursor);
    if (isRefusal(after)) return after;
    const found = await reader.escalations.list(caller, limit + 1, after);
    const { rows, more } = firstOf(found, limit, cursorOf);
    return { ...listResource(rows.map(escalationResource)), ...more };
  });
}

/** Where a page of escalations ends. The status is in the cursor, since it says in which part of the list the escalation was shown. */
export const cursorOf = ({ status, id }: Escalation): string => `${status}.${id}`;

export async function placeOf(
  reader: Reader,
  caller: Caller,
  cursor: string,
): Promise<EscalationPlace | Refusal> {
  const [name, id = ""] = cursor.split(".");
  const status = ESCALATION_STATUSES.find((known) => known === name);
  const shown = await reader.escalations.get(id);
  const isTheirs = shown?.organisationId === caller.organisationId && shown.mode === caller.mode;
  return status && isTheirs ? { status, id } : refuseCursor();
}
