import type { Escalation } from "../../core/escalation.ts";
import type { Balance } from "../../core/postings.ts";
import { ACCESS, type Caller, refuseAccess } from "../../core/roles.ts";
import type { Warrant } from "../../core/warrant.ts";
import type { Reader } from "../../store/reader.ts";
import type { Context } from "../context.ts";

/** An escalation with the warrant that it is about. */
export type Waiting = { readonly escalation: Escalation; readonly warrant: Warrant };

/** How many of those that wait the overview names. */
const NAMED_MAX = 5;

/** What an organisation has in one mode, and what waits for a person there. */
export async function readOverview(ctx: Context, caller: Caller) {
  const refused = refuseAccess(caller, ACCESS.readConsole);
  if (refused) return refused;
  return ctx.store.read(async (reader) => ({
    balances: (await reader.balances.list(caller)) as readonly {
      readonly asset: string;
      readonly balance: Balance;
    }[],
    owed: await reader.payees.totals(caller),
    waiting: await waitingOf(reader, caller),
  }));
}

async function waitingOf(reader: Reader, caller: Caller): Promise<readonly Waiting[]> {
  const listed = await reader.escalations.list(caller, NAMED_MAX);
  const found: Waiting[] = [];
  for (const escalation of listed) {
    const warrant = await reader.warrants.get(caller, escalation.warrantId);
    if (escalation.status !== "resolved" && warrant) found.push({ escalation, warrant });
  }
  return found;
}
