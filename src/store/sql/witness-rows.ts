import { and, eq, sql } from "drizzle-orm";
import type { Tables } from "./database.ts";
import { finding, keyed } from "./find-by-key.ts";
import { lazily } from "./lazily.ts";
import { excludedOf, fieldsOf, placeholdersOf } from "./rows.ts";
import { cosignatures, witnessedLogs } from "./tables/witnesses.ts";

/** How the rows of witnesses are written and found. */

const { placeholder } = sql;

/** What this instance witnesses, and what witnesses sign for it. */
export function witnessRows(tables: Tables) {
  return {
    witnessedLog: () =>
      tables
        .insert(witnessedLogs)
        .values(placeholdersOf(witnessedLogs))
        .onConflictDoUpdate({
          target: witnessedLogs.origin,
          set: excludedOf(witnessedLogs, "note", "cosignedAt"),
        }),
    cosignature: () =>
      tables
        .insert(cosignatures)
        .values(placeholdersOf(cosignatures))
        .onConflictDoUpdate({
          target: [cosignatures.size, cosignatures.witness],
          set: excludedOf(cosignatures, "line"),
        }),
  };
}

export function witnessLookUps(tables: Tables) {
  const { size, witness } = cosignatures;
  return {
    witnessedLog: finding(() =>
      tables.select(fieldsOf(witnessedLogs)).from(witnessedLogs).where(keyed(witnessedLogs.origin)).prepare(),
    ),
    cosignature: lazily(() => {
      const statement = tables
        .select(fieldsOf(cosignatures))
        .from(cosignatures)
        .where(and(eq(size, placeholder("size")), eq(witness, placeholder("witness"))))
        .prepare();
      return (rowKey: string) => {
        const [sizeText, name = ""] = rowKey.split(" ");
        return statement.get({ size: Number(sizeText), witness: name }) ?? null;
      };
    }),
  };
}
