import { and, asc, eq, isNull, type SQL } from "drizzle-orm";
import type { Capsule } from "../../../core/capsule.ts";
import type { Scope } from "../../scope.ts";
import type { Connection, SqlDatabase } from "../database.ts";
import { lazily } from "../lazily.ts";
import { fieldsOf } from "../rows.ts";
import { capsules } from "../tables/capsules.ts";
import { sourceKeys } from "../tables/directory.ts";
import type { SqlReader } from "./sql-reader.ts";

export function createSourceKeysReader({ tables }: Connection): SqlReader["sourceKeys"] {
  const { id, organisationId, origin, removedAt } = sourceKeys;
  const where = (...conditions: SQL[]) =>
    tables
      .select(fieldsOf(sourceKeys))
      .from(sourceKeys)
      .where(and(isNull(removedAt), ...conditions))
      .orderBy(asc(id))
      .all();
  return {
    get: (keyId) => where(eq(id, keyId))[0] ?? null,
    list: (of) => where(eq(organisationId, of)),
    of: (of, from) => where(eq(organisationId, of), eq(origin, from)),
  };
}

export function createCapsulesReader({ tables, raw }: Connection): SqlReader["capsules"] {
  const scopesWithOld = lazily(() => {
    const statement = raw.prepare<{ organisation_id: string; mode: Scope["mode"] }, [number, number]>(
      `SELECT DISTINCT organisation_id, mode FROM (
         SELECT organisation_id, mode FROM capsules WHERE created_at < ? ORDER BY created_at LIMIT 1000
       ) AS oldest ORDER BY organisation_id, mode LIMIT ?`,
    );
    return ([createdBefore, limit]: [number, number]) => statement.all(createdBefore, limit);
  });
  return {
    get: (checkId) =>
      tables.select(fieldsOf(capsules)).from(capsules).where(eq(capsules.id, checkId)).get() ?? null,
    body: (capsule) => storedBody(raw, capsule),
    scopesWithOld: (createdBefore, limit) =>
      scopesWithOld([createdBefore, limit]).map(({ organisation_id: organisationId, mode }) => ({
        organisationId,
        mode,
      })),
  };
}

/** The stored body of a capsule; null where it has none, or a part of it is missing. */
export function storedBody(
  raw: SqlDatabase,
  { storedHash, parts }: Pick<Capsule, "storedHash" | "parts">,
): { readonly bytes: Uint8Array; readonly isCompressed: boolean } | null {
  if (storedHash === null) return null;
  if (parts === 0) {
    const content = raw
      .query<{ bytes: Uint8Array }, [string]>("SELECT bytes FROM contents WHERE hash = ?")
      .get(storedHash);
    return content && { bytes: content.bytes, isCompressed: false };
  }
  const found = raw
    .query<{ bytes: Uint8Array }, [string, number]>(
      "SELECT bytes FROM capsule_parts WHERE hash = ? AND part < ? ORDER BY part",
    )
    .all(storedHash, parts);
  return found.length === parts
    ? { bytes: Buffer.concat(found.map(({ bytes }) => bytes)), isCompressed: true }
    : null;
}
