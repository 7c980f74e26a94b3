import type { AuditEntry } from "../../core/audit-entry.ts";
import { type Refusal, refuseField } from "../../core/errors.ts";
import { type AuditLog, auditLogResource } from "../../resources/audit-log.ts";
import type { Context } from "../context.ts";
import { refuseInteger } from "../fields.ts";
import type { PageOfList } from "../page-of-list.ts";
import { type Authority, refuseAuthority, refuseOrganisation } from "./authority.ts";

const AUDIT_LOG_PAGE_MAX = 100;
const PAGE_DEFAULT = 25;

export type AuditLogPage = PageOfList;

/**
 * What changed in an organisation, in both modes, and who changed it; newest first. A cursor that is not the
 * id of an entry is refused with `validation_failed`.
 */
export async function showAuditLog(
  ctx: Context,
  authority: Authority,
  input: AuditLogPage & { readonly organisation_id: string },
): Promise<AuditLog | Refusal> {
  const { organisation_id: organisationId, limit = PAGE_DEFAULT, starting_after: after } = input;
  return ctx.store.read(async ({ auditEntries, organisations }) => {
    const refused =
      refuseAuthority(authority, "admin") ??
      refuseInteger("limit", limit, 1, AUDIT_LOG_PAGE_MAX) ??
      refuseOrganisation(authority, await organisations.get(organisationId));
    if (refused) return refused;
    if (after === undefined) {
      return pageOf(await auditEntries.list(organisationId, null, limit + 1), limit);
    }
    // A `~` sorts after every id, so the list begins with the cursor's own entry. That shows that the entry
    // exists.
    const [cursor, ...rows] = await auditEntries.list(organisationId, `${after}~`, limit + 2);
    return cursor?.id === after
      ? pageOf(rows, limit)
      : refuseField("starting_after", "there is no such entry to continue from");
  });
}

/** One row more than the page shows whether another page follows. */
const pageOf = (entries: readonly AuditEntry[], limit: number): AuditLog =>
  auditLogResource(entries.slice(0, limit), entries.length > limit);
