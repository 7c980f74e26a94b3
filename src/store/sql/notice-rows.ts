import { CHANNELS } from "../../core/notice.ts";
import type { SqlDatabase, Tables } from "./database.ts";
import { finding, keyed } from "./find-by-key.ts";
import { excludedOf, placeholdersOf } from "./rows.ts";
import { noticeSettings, notices, plannedNotices, pushSubscriptions } from "./tables/notices.ts";

/** How the rows of notices are written and found. */

export function noticeRows(tables: Tables) {
  return {
    plannedNotice: () =>
      tables
        .insert(plannedNotices)
        .values(placeholdersOf(plannedNotices))
        .onConflictDoUpdate({
          target: plannedNotices.id,
          set: excludedOf(plannedNotices, "made", "dueAt", "createdAt"),
        }),
    notice: () =>
      tables
        .insert(notices)
        .values(placeholdersOf(notices))
        .onConflictDoUpdate({
          target: notices.id,
          set: excludedOf(
            notices,
            "encryptedLink",
            "status",
            "attempts",
            "answer",
            "durationMs",
            "claimedUntil",
            "nextAttemptAt",
          ),
        }),
    noticeSettings: () =>
      tables
        .insert(noticeSettings)
        .values(placeholdersOf(noticeSettings))
        .onConflictDoUpdate({
          target: noticeSettings.userId,
          set: excludedOf(noticeSettings, ...CHANNELS, "sandbox", "fromMinute", "untilMinute", "timeZone"),
        }),
    pushSubscription: () =>
      tables
        .insert(pushSubscriptions)
        .values(placeholdersOf(pushSubscriptions))
        .onConflictDoUpdate({
          target: pushSubscriptions.id,
          set: excludedOf(pushSubscriptions, "deliveredAt"),
        }),
  };
}

export function noticeLookUps(tables: Tables) {
  return {
    plannedNotice: finding(() =>
      tables.select().from(plannedNotices).where(keyed(plannedNotices.id)).prepare(),
    ),
    notice: finding(() => tables.select().from(notices).where(keyed(notices.id)).prepare()),
    noticeSettings: finding(() =>
      tables.select().from(noticeSettings).where(keyed(noticeSettings.userId)).prepare(),
    ),
    pushSubscription: finding(() =>
      tables.select().from(pushSubscriptions).where(keyed(pushSubscriptions.id)).prepare(),
    ),
  };
}

/** The people of an organisation who hear of things, at most this many: those with the higher roles come first. */
export const PEOPLE_SQL = `SELECT id AS key FROM users
  WHERE organisation_id = ? AND role IN (SELECT value FROM json_each(?)) AND removed_at IS NULL
  ORDER BY role = 'owner' DESC, role = 'admin' DESC, id LIMIT ?`;

/** When the newest notice of a subject was made. */
export const newestNoticeIn = (raw: SqlDatabase) => {
  const statement = raw.prepare<{ at: bigint | null }, [string, string]>(
    "SELECT max(created_at) AS at FROM notices WHERE organisation_id = ? AND subject = ?",
  );
  return (of: readonly [organisationId: string, subject: string]): number | null => {
    const at = statement.get(...of)?.at;
    return at == null ? null : Number(at);
  };
};
