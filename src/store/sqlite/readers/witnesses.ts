import { and, asc, count, desc, eq, gte, lt, min, sql } from "drizzle-orm";
import { WITNESSES_MAX } from "../../../core/witness.ts";
import type { Tables } from "../open.ts";
import { fieldsOf } from "../rows.ts";
import { cosignatures, witnessedLogs } from "../tables/witnesses.ts";
import type { SqliteReader } from "./sqlite-reader.ts";

export function createWitnessesReader(tables: Tables): Pick<SqliteReader, "witnessedLogs" | "cosignatures"> {
  const { size, witness } = cosignatures;
  const log = fieldsOf(witnessedLogs);
  const cosignature = fieldsOf(cosignatures);
  return {
    witnessedLogs: {
      get: (origin) =>
        tables.select(log).from(witnessedLogs).where(eq(witnessedLogs.origin, origin)).get() ?? null,
      list: () => tables.select(log).from(witnessedLogs).orderBy(asc(witnessedLogs.origin)).all(),
    },
    cosignatures: {
      of: (of) =>
        tables
          .select(cosignature)
          .from(cosignatures)
          .where(eq(size, of))
          .orderBy(asc(witness))
          .limit(WITNESSES_MAX)
          .all(),
      firstSize: (from) =>
        tables
          .select({ first: min(size) })
          .from(cosignatures)
          .where(gte(size, from))
          .get()?.first ?? null,
      count: () => tables.select({ all: count() }).from(cosignatures).get()?.all ?? 0,
      after: (after, name, limit) =>
        tables
          .select()
          .from(cosignatures)
          .where(sql`(${size}, ${witness}) > (${after}, ${name})`)
          .orderBy(asc(size), asc(witness))
          .limit(limit)
          .all(),
      below: (name, below, limit) =>
        tables
          .select(cosignature)
          .from(cosignatures)
          .where(and(eq(witness, name), lt(size, below)))
          .orderBy(desc(size))
          .limit(limit)
          .all(),
    },
  };
}
