import { and, asc, count, desc, eq, lt, sql } from "drizzle-orm";
import { WITNESSES_MAX } from "../../../core/witness.ts";
import type { Tables } from "../database.ts";
import { lazily } from "../lazily.ts";
import { fieldsOf } from "../rows.ts";
import { cosignatures, witnessedLogs } from "../tables/witnesses.ts";
import type { SqlReader } from "./sql-reader.ts";

/** How many signatures are read to find a checkpoint that all witnesses signed. They cover the hours in which one was away. */
const LOOKED_AT = 1_000;

export function createWitnessesReader(tables: Tables): Pick<SqlReader, "witnessedLogs" | "cosignatures"> {
  const { size, witness } = cosignatures;
  const log = fieldsOf(witnessedLogs);
  const cosignature = fieldsOf(cosignatures);
  const signers = sql<number>`count(*) FILTER (WHERE ${witness} IN (SELECT value FROM json_each(${sql.placeholder("names")})))`;
  const end = sql`(SELECT ${size} FROM ${cosignatures} WHERE ${size} >= ${sql.placeholder("from")} ORDER BY ${size} LIMIT 1 OFFSET ${sql.raw(`${LOOKED_AT}`)})`;
  const sizes = () =>
    tables
      .select({ size })
      .from(cosignatures)
      .where(
        sql`${size} >= ${sql.placeholder("from")} AND ${size} <= coalesce(${end}, ${sql.raw(`${Number.MAX_SAFE_INTEGER}`)})`,
      )
      .groupBy(size)
      .limit(1)
      .$dynamic();
  // It stops at the first size that it finds, which is mostly the first one that it looks at.
  const signedByAll = lazily(() => {
    const statement = sizes()
      .having(sql`${signers} = ${sql.placeholder("all")}`)
      .orderBy(asc(size))
      .prepare();
    return (asked: Record<string, unknown>) => statement.get(asked);
  });
  const signedByMost = lazily(() => {
    const statement = sizes().orderBy(desc(signers), asc(size)).prepare();
    return (asked: Record<string, unknown>) => statement.get(asked);
  });
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
      bestSize(from, names) {
        const asked = { from, names: JSON.stringify(names) };
        return (signedByAll({ ...asked, all: names.length }) ?? signedByMost(asked))?.size ?? null;
      },
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
