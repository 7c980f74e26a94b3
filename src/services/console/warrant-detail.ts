import type { Agent } from "../../core/agent.ts";
import type { Check } from "../../core/check.ts";
import { isRefusal, type Refusal } from "../../core/errors.ts";
import type { Escalation } from "../../core/escalation.ts";
import { isAboveThreshold } from "../../core/passkey.ts";
import { BUILT_IN_RULES, type Policy, type PolicyRules } from "../../core/policy.ts";
import {
  ACCESS,
  type Actor,
  type Caller,
  type PersonCaller,
  refuseAccess,
  roleIsAtLeast,
} from "../../core/roles.ts";
import type { TraceEntry } from "../../core/trace.ts";
import { isLegalMove, STATE_OF, type Warrant, warrantNotFound } from "../../core/warrant.ts";
import type { WebhookDelivery, WebhookEndpoint } from "../../core/webhook.ts";
import type { Reader } from "../../store/reader.ts";
import type { Context } from "../context.ts";
import { firstOf } from "../page-of-list.ts";
import { cursorOf, placeOf } from "../read-backs.ts";
import type { Waiting } from "./overview.ts";
import { endpointsOf } from "./webhooks.ts";

/** Everything that a person sees of one warrant, with names in place of ids. */
export type WarrantDetail = {
  readonly warrant: Warrant;
  readonly trace: readonly TraceEntry[];
  /** Newest first. */
  readonly checks: readonly Check[];
  readonly agent: Agent | null;
  /** Null where the rules that are built in decide. */
  readonly policy: Policy | null;
  readonly rules: PolicyRules;
  /** The escalation that waits for a person; null where none does. */
  readonly escalation: Escalation | null;
  /** The name of a key's agent or of a person, by the actor's id. */
  readonly names: ReadonlyMap<string, string>;
  /** Whether a decision on it needs the signature of a passkey. */
  readonly needsPasskey: boolean;
  /** Its events on their way to endpoints, as they were first sent, newest first; null to who sees no deliveries. */
  readonly deliveries: readonly WebhookDelivery[] | null;
  /** The endpoints of these. */
  readonly endpoints: readonly WebhookEndpoint[];
};

/** How many deliveries a page of a warrant shows. */
const DELIVERIES_MAX = 50;

export async function readWarrantDetail(
  ctx: Context,
  caller: Caller,
  id: string,
): Promise<WarrantDetail | Refusal> {
  const refused = refuseAccess(caller, ACCESS.readWarrants);
  if (refused) return refused;
  return ctx.store.read(async (reader) => {
    const warrant = await reader.warrants.get(caller, id);
    return warrant ? detailOf(reader, caller, warrant) : warrantNotFound();
  });
}

async function detailOf(reader: Reader, caller: Caller, warrant: Warrant): Promise<WarrantDetail> {
  const trace = await reader.trace.of(warrant.id);
  const policy =
    warrant.policyId === null ? null : await reader.policies.get(caller.organisationId, warrant.policyId);
  const escalation = await reader.escalations.waitingOf(warrant.id);
  const organisation = await reader.organisations.get(caller.organisationId);
  const people = [escalation?.raisedBy ?? null].map((id) => id && ({ kind: "user", id } as const));
  return {
    warrant,
    trace,
    checks: (await reader.checks.of(warrant.id)).toReversed(),
    agent: warrant.agentId === null ? null : await reader.agents.get(warrant.agentId),
    policy,
    rules: policy?.rules ?? BUILT_IN_RULES,
    escalation,
    names: await namesOf(reader, [
      ...trace.map(({ actor }) => actor),
      ...people.filter((one) => one !== null && one !== ""),
    ]),
    needsPasskey: isAboveThreshold(organisation?.passkeyThreshold ?? null, warrant),
    ...(await deliveriesOf(reader, caller, trace)),
  };
}

async function deliveriesOf(
  reader: Reader,
  caller: Caller,
  trace: readonly TraceEntry[],
): Promise<Pick<WarrantDetail, "deliveries" | "endpoints">> {
  if (refuseAccess(caller, ACCESS.administer)) return { deliveries: null, endpoints: [] };
  const deliveries = await reader.deliveries.ofMoves(caller, trace, DELIVERIES_MAX);
  return { deliveries, endpoints: await endpointsOf(reader, deliveries) };
}

async function namesOf(reader: Reader, actors: readonly Actor[]): Promise<ReadonlyMap<string, string>> {
  const names = new Map<string, string>();
  for (const { kind, id } of actors) {
    if (id === null || names.has(id)) continue;
    if (kind === "user") {
      const user = await reader.users.get(id);
      names.set(id, user?.name || user?.email || id);
    } else {
      const key = await reader.apiKeys.get(id);
      names.set(id, (key && (await reader.agents.get(key.agentId))?.name) ?? id);
    }
  }
  return names;
}

export const PERSONS_DECISIONS = ["release", "partial_release", "refund"] as const;
export type PersonsDecision = (typeof PERSONS_DECISIONS)[number];

/** What this person may decide on the warrant as it is: by its state, and where it is disputed by who raised that. */
export function decisionsOn(
  { warrant, escalation }: Pick<WarrantDetail, "warrant" | "escalation">,
  { role, userId }: Pick<PersonCaller, "role" | "userId">,
): readonly (PersonsDecision | "dispute")[] {
  const isDisputed = warrant.state === "disputed";
  const may = isDisputed
    ? roleIsAtLeast(role, "admin") && escalation?.raisedBy !== userId
    : roleIsAtLeast(role, "operator");
  if (!may) return [];
  const by = isDisputed ? "second" : "operator";
  return [...PERSONS_DECISIONS, "dispute" as const].filter((decision) =>
    isLegalMove(warrant.state, STATE_OF[decision], by),
  );
}

/** An escalation with its warrant's detail. */
export async function readEscalationDetail(ctx: Context, caller: Caller, id: string) {
  const refused = refuseAccess(caller, ACCESS.readConsole);
  if (refused) return refused;
  const escalation = await ctx.store.read((reader) => reader.escalations.get(id));
  const isOwn = escalation?.organisationId === caller.organisationId && escalation.mode === caller.mode;
  if (!escalation || !isOwn) return null;
  const detail = await readWarrantDetail(ctx, caller, escalation.warrantId);
  return isRefusal(detail) ? detail : { ...detail, escalation };
}

/**
 * A page of the inbox: what waits, the longest waiting first, then what was resolved last; each with its warrant. `next` is where the
 * page after it begins; null where it is the last one.
 *
 * @param after `next` of the page before; null for the first page, which is what another cursor gives too
 */
export async function readInbox(ctx: Context, caller: Caller, after: string | null, limit: number) {
  const refused = refuseAccess(caller, ACCESS.readConsole);
  if (refused) return refused;
  return ctx.store.read(async (reader) => {
    const place = after === null ? null : await placeOf(reader, caller, after);
    const found = await reader.escalations.list(caller, limit + 1, isRefusal(place) ? null : place);
    const { rows, more } = firstOf(found, limit, cursorOf);
    const listed: Waiting[] = [];
    for (const escalation of rows) {
      const warrant = await reader.warrants.get(caller, escalation.warrantId);
      if (warrant) listed.push({ escalation, warrant });
    }
    return { listed, next: more.next_cursor };
  });
}
