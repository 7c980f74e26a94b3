import type { Administrator, AuditAction } from "../../core/audit-entry.ts";
import type { Row } from "../../store/store.ts";
import type { Context } from "../context.ts";
import type { Authority } from "./authority.ts";

/** Makes the audit log's entry of an act: before and after in read-back shapes, so that no secret is in it. */
export type RecordAct = (
  organisationId: string,
  subject: string,
  before: object | null,
  after: object | null,
) => Row;

/**
 * Every administrative act is written to the audit log in its own commit. Called before the command, since ids and the
 * time are inputs of its decision; one command records one act.
 */
export function recordingAct(ctx: Context, authority: Authority, action: AuditAction): RecordAct {
  const id = ctx.newId("auditEntry");
  const recordedAt = ctx.now();
  const actor = administratorOf(authority);
  return (organisationId, subject, before, after) => ({
    kind: "auditEntry",
    row: { id, organisationId, actor, action, subject, before, after, recordedAt },
  });
}

function administratorOf(authority: Authority): Administrator {
  if (authority.kind === "key") throw new Error("an API key administers nothing");
  return authority.kind === "machine"
    ? { kind: "machine", id: null }
    : { kind: "user", id: authority.userId };
}
