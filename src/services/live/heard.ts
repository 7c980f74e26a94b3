import { ACCESS, type Role } from "../../core/roles.ts";
import type { Put, Write } from "../../store/change.ts";
import type { RowKind, Rows } from "../../store/rows.ts";
import type { Scope } from "../../store/scope.ts";

/** What the pages of the console hear of a row that was written: a topic, and the ids of what changed. */

/** What a part of a page may listen to, besides single ids. */
type Topic = "agents" | "deliveries" | "escalations" | "money" | "purchases" | "warrants" | "webhooks";

export type Heard = {
  readonly scope: Scope;
  readonly names: readonly string[];
  /** The role that may hear it: the one that may see it. */
  readonly role: Role;
};

type Scoped = { readonly [Kind in RowKind]: Rows[Kind] extends Scope ? Kind : never }[RowKind];
type Hearing<Kind extends Scoped> = {
  readonly topic: Topic;
  readonly ids: (row: Rows[Kind]) => readonly string[];
  readonly role: Role;
};

const { readConsole, administer } = ACCESS;
const own = ({ id }: { readonly id: string }) => [id];

/** Each kind of row that belongs to one mode: what is heard of it, or null where no page shows it. */
const HEARD: { readonly [Kind in Scoped]: Hearing<Kind> | null } = {
  agent: { topic: "agents", ids: own, role: readConsole.role },
  apiKey: null,
  capsule: null,
  deposit: { topic: "money", ids: own, role: readConsole.role },
  posting: { topic: "money", ids: () => [], role: readConsole.role },
  delivery: { topic: "deliveries", ids: ({ id, webhookId }) => [id, webhookId], role: administer.role },
  escalation: { topic: "escalations", ids: ({ id, warrantId }) => [id, warrantId], role: readConsole.role },
  idempotencyKey: null,
  notice: null,
  plannedNotice: null,
  purchase: { topic: "purchases", ids: own, role: readConsole.role },
  warrant: { topic: "warrants", ids: own, role: readConsole.role },
  webhook: { topic: "webhooks", ids: own, role: administer.role },
};

export function heardOf(write: Write): Heard | null {
  const { kind, row } = write.kind === "put" ? write.put : write.deletion;
  const hearing = kind in HEARD ? (HEARD[kind as Scoped] as Hearing<Scoped> | null) : null;
  if (hearing === null) return null;
  const { organisationId, mode } = row as Rows[Scoped];
  return {
    scope: { organisationId, mode },
    names: [hearing.topic, ...hearing.ids(row as never)],
    role: hearing.role,
  };
}

/** Whether a write may end or change somebody's sign-in. */
export const isOfPeople = (write: Write): boolean => write.kind === "put" && PEOPLE.includes(write.put.kind);
const PEOPLE: readonly Put["kind"][] = ["authSession", "user", "organisation"];
