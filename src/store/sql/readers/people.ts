import { and, asc, desc, eq, gt, isNull, lt, max, sql } from "drizzle-orm";
import type { Tables } from "../database.ts";
import { finding, keyed } from "../find-by-key.ts";
import { auditEntryOf } from "../rows.ts";
import { auditEntries, authSessions, passkeys, passwordResets, users } from "../tables/directory.ts";
import { partOf } from "./reading.ts";
import type { SqlReader } from "./sql-reader.ts";

type PeopleReader = Pick<
  SqlReader,
  "users" | "passkeys" | "passwordResets" | "auditEntries" | "authSessions"
>;

/** Of those that end at one time, the latest first. */
const ROW = sql`${authSessions}.rowid`;

function createSignInsReader(tables: Tables): SqlReader["authSessions"] {
  return {
    byHash: finding(() => tables.select().from(authSessions).where(keyed(authSessions.tokenHash)).prepare()),
    of: (userId, now, limit) =>
      tables
        .select()
        .from(authSessions)
        .where(and(eq(authSessions.userId, userId), gt(authSessions.expiresAt, now)))
        .orderBy(desc(authSessions.expiresAt), desc(ROW))
        .limit(limit)
        .all(),
    hasBeenFrom: (userId, network) =>
      tables
        .select({ userId: authSessions.userId })
        .from(authSessions)
        .where(and(eq(authSessions.userId, userId), eq(authSessions.network, network)))
        .limit(1)
        .get() !== undefined,
    lastSignInOf: (userId) =>
      tables
        .select({ at: max(authSessions.createdAt) })
        .from(authSessions)
        .where(eq(authSessions.userId, userId))
        .get()?.at ?? null,
  };
}

export function createPeopleReader(tables: Tables): PeopleReader {
  const user = finding(() => tables.select().from(users).where(keyed(users.id)).prepare());
  return {
    users: {
      get: user,
      byEmail: (email) =>
        tables
          .select()
          .from(users)
          .where(and(eq(users.email, email), isNull(users.removedAt)))
          .get() ?? null,
      list(organisationId, part) {
        const { bounds, limit } = partOf(users.id, part);
        return tables
          .select()
          .from(users)
          .where(and(eq(users.organisationId, organisationId), isNull(users.removedAt), bounds))
          .orderBy(asc(users.id))
          .limit(limit)
          .all();
      },
    },
    passkeys: {
      get: (id) => tables.select().from(passkeys).where(eq(passkeys.id, id)).get() ?? null,
      of: (userId) =>
        tables
          .select()
          .from(passkeys)
          .where(eq(passkeys.userId, userId))
          .orderBy(asc(passkeys.createdAt), asc(passkeys.id))
          .all(),
    },
    passwordResets: {
      byHash: (hash) =>
        tables.select().from(passwordResets).where(eq(passwordResets.tokenHash, hash)).get() ?? null,
    },
    auditEntries: {
      list: (organisationId, olderThan, limit) =>
        tables
          .select()
          .from(auditEntries)
          .where(
            and(
              eq(auditEntries.organisationId, organisationId),
              olderThan === null ? undefined : lt(auditEntries.id, olderThan),
            ),
          )
          .orderBy(desc(auditEntries.id))
          .limit(limit)
          .all()
          .map(auditEntryOf),
    },
    authSessions: createSignInsReader(tables),
  };
}
