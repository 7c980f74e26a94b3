import type { Agent } from "../../core/agent.ts";
import type { Organisation } from "../../core/organisation.ts";
import type { Write } from "../change.ts";
import { changesKept } from "../row-cache.ts";
import type { RowKind, Rows } from "../rows.ts";
import type { Scope } from "../scope.ts";

/**
 * To whom a row belongs that is written: to an organisation in a mode, to a whole organisation, or to the instance. `content` belongs to
 * everybody (`write-buffer.ts`). A row that does not name whom it belongs to belongs to where its agent, its warrant or its user does.
 */
type NamedBy<Row> =
  | "instance"
  | "everybody"
  | (Row extends Scope
      ? "scope"
      : Row extends { readonly agentId: string }
        ? "agent"
        : Row extends { readonly warrantId: string }
          ? "warrant"
          : never)
  | (Row extends Pick<Scope, "organisationId"> | Organisation
      ? "organisation"
      : Row extends { readonly userId: string }
        ? "user"
        : never);

const OWNERS: { readonly [Kind in RowKind]: NamedBy<Rows[Kind]> } = {
  agent: "scope",
  apiKey: "scope",
  auditEntry: "organisation",
  authSession: "user",
  capsule: "scope",
  capsulePart: "everybody",
  chainTransaction: "instance",
  chainTransfer: "instance",
  check: "warrant",
  content: "everybody",
  correction: "scope",
  cosignature: "instance",
  delivery: "scope",
  deposit: "scope",
  depositSender: "instance",
  escalation: "scope",
  idempotencyKey: "scope",
  instance: "instance",
  logAnchor: "instance",
  messagingAccount: "organisation",
  messagingCode: "organisation",
  notice: "organisation",
  noticeSettings: "organisation",
  organisation: "organisation",
  passkey: "organisation",
  passkeyApproval: "user",
  passwordReset: "user",
  payout: "scope",
  payoutTransaction: "scope",
  payoutWait: "scope",
  plannedNotice: "organisation",
  policy: "organisation",
  posting: "scope",
  purchase: "scope",
  pushSubscription: "organisation",
  railState: "instance",
  schema: "organisation",
  sourceKey: "organisation",
  spendSession: "agent",
  trace: "warrant",
  treasuryWatch: "instance",
  user: "organisation",
  verifier: "organisation",
  warrant: "scope",
  webhook: "scope",
  witnessedLog: "instance",
};

/** The agent of an id, as far as the batch has read it. */
export type AgentOf = (id: string) => Agent | null | undefined;

/** Whose a row is: that of an organisation in a mode, of a whole organisation where that is known, of the instance, or of no one of them. */
type Owner =
  | ({ readonly kind: "scope" } & Scope)
  | { readonly kind: "organisation"; readonly organisationId: string }
  | { readonly kind: "organisation" | "instance" | "unknown" };

/**
 * Whose the row is that is written, as far as that is known.
 *
 * @throws where it is not known, and other batches keep what is changed
 */
export function ownerOf(write: Write, agentOf: AgentOf): Owner {
  const { kind, row } = write.kind === "put" ? write.put : write.deletion;
  const named = OWNERS[kind];
  if (named === "instance") return { kind: named };
  if (named === "everybody") return { kind: "unknown" };
  if (kind === "organisation") return { kind, organisationId: row.id };
  if (named === "organisation") return { kind: named, organisationId: (row as Scope).organisationId };
  if (named === "scope") return scopeOf(row as Scope);
  const agent = named === "agent" ? agentOf((row as { readonly agentId: string }).agentId) : null;
  if (agent) return scopeOf(agent);
  if (changesKept(write))
    throw new Error(`a ${kind} is written whose ${named} was not read: others would keep what was before it`);
  return { kind: named === "user" ? "organisation" : "unknown" };
}

const scopeOf = ({ organisationId, mode }: Scope): Owner => ({ kind: "scope", organisationId, mode });
