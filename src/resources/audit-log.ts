import { ADMINISTRATOR_KINDS, AUDIT_ACTIONS, type AuditEntry } from "../core/audit-entry.ts";
import { anyObject, boolean, form, is, object, oneOf, orNull, text, time, type Wire } from "../core/form.ts";
import { isoTime } from "../core/time.ts";
import { listForm } from "./list.ts";

/** An audit entry: who changed what, and how it was before and after. */

const readBackForm = () => orNull(anyObject<object>("As read back; null where there was, or is, nothing."));

const auditEntryForm = form("AuditLogEntry", () =>
  object({
    id: text,
    object: is("audit_log_entry"),
    actor: object({ kind: oneOf(ADMINISTRATOR_KINDS), id: orNull(text) }),
    action: oneOf(AUDIT_ACTIONS),
    subject: text,
    before: readBackForm(),
    after: readBackForm(),
    recorded_at: time,
  }),
);

const auditEntryResource = (entry: AuditEntry): Wire<typeof auditEntryForm> => ({
  id: entry.id,
  object: "audit_log_entry",
  actor: entry.actor,
  action: entry.action,
  subject: entry.subject,
  before: entry.before,
  after: entry.after,
  recorded_at: isoTime(entry.recordedAt),
});

export const auditLogForm = form("AuditLog", () =>
  listForm(auditEntryForm(), { has_more: boolean, next_cursor: orNull(text) }),
);

export type AuditLog = Wire<typeof auditLogForm>;

/** A page of the audit log. Where more follows, the id of its last entry is the cursor. */
export const auditLogResource = (entries: readonly AuditEntry[], hasMore: boolean): AuditLog => ({
  object: "list",
  data: entries.map(auditEntryResource),
  has_more: hasMore,
  next_cursor: hasMore ? (entries.at(-1)?.id ?? null) : null,
});
