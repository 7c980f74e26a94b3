import { nounOf } from "../../core/audit-entry.ts";
import { ACCESS, MODES, type Role } from "../../core/roles.ts";
import type { Put, Write } from "../../store/change.ts";
import type { RowKind, Rows } from "../../store/rows.ts";
import type { Scope } from "../../store/scope.ts";

/** What the pages of the console hear of a row that was written: a topic, and the ids of what changed. */

/** What a part of a page may listen to, besides the ids that come with it, and the role that may hear it: the one that may see it. */
const ROLE_OF = {
  agents: ACCESS.readConsole.role,
  audit: ACCESS.administer.role,
  deliveries: ACCESS.administer.role,
  escalations: ACCESS.readConsole.role,
  keys: ACCESS.administer.role,
  money: ACCESS.readConsole.role,
  notices: ACCESS.keepOwnSignIn.role,
  organisation: ACCESS.readConsole.role,
  people: ACCESS.administer.role,
  policies: ACCESS.readConsole.role,
  purchases: ACCESS.readConsole.role,
  schemas: ACCESS.readConsole.role,
  sessions: ACCESS.readConsole.role,
  verifiers: ACCESS.readConsole.role,
  warrants: ACCESS.readConsole.role,
  webhooks: ACCESS.administer.role,
} as const satisfies Readonly<Record<string, Role>>;
type Topic = keyof typeof ROLE_OF;

export type Heard = {
  readonly scope: Scope;
  /** Null where anything may have changed there. */
  readonly names: readonly string[] | null;
  readonly role: Role;
};

type Belonging = {
  readonly [Kind in RowKind]: Rows[Kind] extends { readonly organisationId: string } ? Kind : never;
}[RowKind];
type Kinds = Belonging | "organisation";
type Hearing<Kind extends Kinds> = {
  readonly topic: Topic;
  readonly ids: (row: Rows[Kind]) => readonly string[];
};

/** What changes an agent's budget, besides the agent itself. */
export const warrantsOf = (agentId: string): string => `warrants-of-${agentId}`;

const own = ({ id }: { readonly id: string }) => [id];
const none = () => [];

/** Each kind of row that belongs to an organisation: what is heard of it, or null where no page shows it. */
const HEARD: { readonly [Kind in Kinds]: Hearing<Kind> | null } = {
  agent: { topic: "agents", ids: own },
  apiKey: { topic: "keys", ids: own },
  // What was done to people and sessions is heard by its entry: their own rows do not say to whom they belong.
  auditEntry: { topic: "audit", ids: none },
  capsule: null,
  correction: { topic: "money", ids: own },
  deposit: { topic: "money", ids: own },
  // No page shows it.
  depositSender: null,
  payout: { topic: "money", ids: own },
  payoutTransaction: { topic: "money", ids: none },
  payoutWait: { topic: "money", ids: none },
  posting: { topic: "money", ids: none },
  delivery: { topic: "deliveries", ids: ({ id, webhookId }) => [id, webhookId] },
  escalation: { topic: "escalations", ids: ({ id, warrantId }) => [id, warrantId] },
  idempotencyKey: null,
  messagingAccount: { topic: "notices", ids: none },
  messagingCode: null,
  notice: { topic: "notices", ids: none },
  noticeSettings: null,
  organisation: { topic: "organisation", ids: none },
  passkey: { topic: "people", ids: none },
  plannedNotice: null,
  policy: { topic: "policies", ids: own },
  purchase: { topic: "purchases", ids: own },
  pushSubscription: { topic: "notices", ids: none },
  schema: { topic: "schemas", ids: own },
  sourceKey: null,
  user: { topic: "people", ids: own },
  verifier: { topic: "verifiers", ids: own },
  warrant: {
    topic: "warrants",
    ids: ({ id, agentId }) => (agentId === null ? [id] : [id, warrantsOf(agentId)]),
  },
  webhook: { topic: "webhooks", ids: own },
};

/** What is heard of a write: in the row's mode, or in both where it belongs to the organisation. */
export function heardOf(write: Write): readonly Heard[] {
  const { kind, row } = write.kind === "put" ? write.put : write.deletion;
  const hearing = kind in HEARD ? (HEARD[kind as Kinds] as Hearing<Kinds> | null) : null;
  if (hearing === null) return [];
  const { topic, ids } = hearing;
  const besides = kind === "auditEntry" ? TOPIC_OF_NOUN[nounOf(row.action)] : undefined;
  return scopesOf(row as Rows[Kinds]).flatMap((scope) => {
    const heard = { scope, names: [topic, ...ids(row as never)], role: ROLE_OF[topic] };
    return besides === undefined ? heard : [heard, { scope, names: [besides], role: ROLE_OF[besides] }];
  });
}

/** What else is heard of an audit entry. */
const TOPIC_OF_NOUN: Readonly<Record<string, Topic>> = {
  passkey: "people",
  passkeys: "people",
  spend_session: "sessions",
  user: "people",
};

function scopesOf(row: Rows[Kinds]): readonly Scope[] {
  const organisationId = "organisationId" in row ? row.organisationId : row.id;
  const modes = "mode" in row ? [row.mode] : MODES;
  return modes.map((mode) => ({ organisationId, mode }));
}

/** Whether a write may end or change somebody's sign-in. */
export const isOfPeople = (write: Write): boolean => write.kind === "put" && PEOPLE.includes(write.put.kind);
const PEOPLE: readonly Put["kind"][] = ["authSession", "user", "organisation"];
