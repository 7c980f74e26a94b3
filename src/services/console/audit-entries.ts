import { type AuditEntry, nounOf } from "../../core/audit-entry.ts";
import { isId } from "../../core/ids.ts";
import { ACCESS, type PersonCaller, refuseAccess } from "../../core/roles.ts";
import type { Reader } from "../../store/reader.ts";
import type { Context } from "../context.ts";

/** A page of the audit log for people: filtered, and with names in place of ids. */

export type EntriesAsked = {
  /** The noun that an action begins with, such as `agent`; null for all. */
  readonly noun: string | null;
  /** Who made the change: a person's id, `machine`, or `stranger`; null for all. */
  readonly who: string | null;
  /** The id of what was changed; empty for all. */
  readonly subject: string;
  /** The page begins with the entry before this one. */
  readonly olderThan: string | null;
};

const PAGE_SIZE = 25;
/** Entries are looked at this many at a time, and no more than the second number for a page: no index has who, what and which. */
const STEP = 250;
const LOOKED_AT_MAX = 2_000;

const fits = ({ noun, who, subject }: EntriesAsked, entry: AuditEntry): boolean =>
  (noun === null || nounOf(entry.action) === noun) &&
  (who === null || entry.actor.id === who || entry.actor.kind === who) &&
  (subject === "" || entry.subject === subject);

export async function listAuditEntries(ctx: Context, caller: PersonCaller, asked: EntriesAsked) {
  const refused = refuseAccess(caller, ACCESS.administer);
  if (refused) return refused;
  return ctx.store.read(async (reader) => {
    const page = await pageOf(reader, caller.organisationId, asked);
    return { ...page, names: await namesIn(reader, caller.organisationId, page.entries) };
  });
}

/** `continuesAt` is the entry after which older ones may follow; null where there are none. */
async function pageOf(reader: Reader, organisationId: string, asked: EntriesAsked) {
  const entries: AuditEntry[] = [];
  let last = asked.olderThan;
  for (let lookedAt = 0; lookedAt < LOOKED_AT_MAX; lookedAt += STEP) {
    const rows = await reader.auditEntries.list(organisationId, last, STEP);
    for (const row of rows) {
      if (fits(asked, row)) {
        if (entries.length === PAGE_SIZE) return { entries, continuesAt: last };
        entries.push(row);
      }
      last = row.id;
    }
    if (rows.length < STEP) return { entries, continuesAt: null };
  }
  return { entries, continuesAt: last };
}

/** The names of the people whom the entries name, removed ones too. */
async function namesIn(
  { users }: Reader,
  organisationId: string,
  entries: readonly AuditEntry[],
): Promise<ReadonlyMap<string, string>> {
  const ids = entries.flatMap(({ actor, subject }) => [actor.id, subject]);
  const names = new Map<string, string>();
  for (const id of new Set(ids)) {
    if (id === null || !isId("user", id)) continue;
    const user = await users.get(id);
    if (user?.organisationId === organisationId) names.set(id, user.name);
  }
  return names;
}
