import type { ReservedSQL } from "bun";
import { sqlStateOf } from "./client.ts";
import { type Ask, askOn } from "./ledger-rows.ts";
import { makeTables } from "./migrate.ts";

/** An object of the schema, and how PostgreSQL says that it is made. */
type Definitions = ReadonlyMap<string, string>;

/** The schema that is made to compare with. It is never committed. */
const COMPARED = "holdfast_compared";

/** Whoever only serves may make no schema, and a replica makes none. */
const MAY_NOT_MAKE: readonly unknown[] = ["42501", "25006"];

/**
 * How the tables, their columns, CHECKs, indexes and guards in PostgreSQL differ from those of a ledger: each that is missing, too
 * many, made otherwise or switched off. What is expected is made in an empty schema, in a transaction that is undone. Other tables
 * beside the ledger's do not matter. It is compared only where the tables had the changes that this version knows, and only for a
 * role that may make a schema: else nothing can be said, and there are no differences.
 *
 * @param connection in a transaction
 */
export async function schemaDisagreements(connection: ReservedSQL): Promise<readonly string[]> {
  const ask = askOn(connection);
  const [[schema] = []] = (await ask("SELECT current_schema()::text")) as string[][];
  if (schema === undefined || schema === null) return [];
  const expected = await expectedDefinitions(connection, ask);
  if (expected === null) return [];
  const found = await definitionsIn(ask, schema);
  return differencesOf(found, expected);
}

/** What was made before, by the server's version, which has its own words for it, and the role: to make it takes a tenth of a second. */
const made = new Map<unknown, Definitions>();

async function expectedDefinitions(connection: ReservedSQL, ask: Ask): Promise<Definitions | null> {
  const [[key] = []] = await ask("SELECT concat_ws(' ', version(), current_user)");
  const known = made.get(key);
  if (known) return known;
  await ask("SAVEPOINT compared");
  try {
    await ask(`CREATE SCHEMA ${COMPARED}`);
    await ask(`SET LOCAL search_path TO ${COMPARED}`);
    await makeTables(connection);
    const definitions = await definitionsIn(ask, COMPARED);
    made.set(key, definitions);
    return definitions;
  } catch (error) {
    if (MAY_NOT_MAKE.includes(sqlStateOf(error))) return null;
    throw error;
  } finally {
    await ask("ROLLBACK TO SAVEPOINT compared");
  }
}

/**
 * All that decides what a table lets in: each with its kind, its table and its name first. The text of a definition names the schema
 * where that is not in the search path, so it is.
 */
const DEFINITIONS = `
  WITH tables AS (
    SELECT oid, relname, relkind, relrowsecurity, relpersistence FROM pg_class
    WHERE relnamespace = $1::text::regnamespace AND relkind IN ('r', 'p', 'v', 'm', 'f')
  )
  SELECT 'table', relname::text, relname::text, concat_ws(' ', relkind, relpersistence, relrowsecurity) FROM tables
  UNION ALL
  SELECT 'column', relname::text, attname::text, concat_ws(' ', format_type(atttypid, atttypmod), collname, attnotnull, attgenerated,
    attidentity, pg_get_expr(adbin, adrelid))
  FROM tables JOIN pg_attribute ON attrelid = tables.oid AND attnum > 0 AND NOT attisdropped
  LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum
  LEFT JOIN pg_collation ON pg_collation.oid = attcollation
  UNION ALL
  SELECT 'constraint', relname::text, conname::text, concat_ws(' ', pg_get_constraintdef(pg_constraint.oid, true), convalidated)
  FROM tables JOIN pg_constraint ON conrelid = tables.oid
  UNION ALL
  SELECT 'index', relname::text, indexrelid::regclass::text, concat_ws(' ', pg_get_indexdef(indexrelid, 0, true), indisvalid, indisready)
  FROM tables JOIN pg_index ON indrelid = tables.oid
  UNION ALL
  SELECT 'trigger', relname::text, tgname::text, concat_ws(' ', pg_get_triggerdef(pg_trigger.oid, true), tgenabled)
  FROM tables JOIN pg_trigger ON tgrelid = tables.oid AND NOT tgisinternal
  UNION ALL
  SELECT 'foreign keys of table', relname::text, relname::text, string_agg(DISTINCT tgenabled::text, '')
  FROM tables JOIN pg_trigger ON tgrelid = tables.oid AND tgisinternal GROUP BY relname
  UNION ALL
  SELECT 'rule', relname::text, rulename::text, pg_get_ruledef(pg_rewrite.oid, true)
  FROM tables JOIN pg_rewrite ON ev_class = tables.oid
  UNION ALL
  SELECT 'policy', relname::text, polname::text, '' FROM tables JOIN pg_policy ON polrelid = tables.oid
  UNION ALL
  SELECT 'function', NULL, proname::text, concat_ws(' ', pg_get_function_identity_arguments(pg_proc.oid), lanname, prosrc, provolatile,
    prosecdef, (SELECT string_agg(split_part(setting, '=', 1), ' ') FROM unnest(proconfig) AS setting))
  FROM pg_proc JOIN pg_language ON pg_language.oid = prolang WHERE pronamespace = $1::text::regnamespace
  UNION ALL
  SELECT 'sequence', NULL, relname::text, concat_ws(' ', seqtypid::regtype, seqincrement, seqmin, seqmax, seqcycle, seqcache)
  FROM pg_class JOIN pg_sequence ON seqrelid = pg_class.oid WHERE relnamespace = $1::text::regnamespace`;

/** The definitions by what they are of, such as `trigger a of b`. */
async function definitionsIn(ask: Ask, schema: string): Promise<Definitions> {
  const rows = (await ask(DEFINITIONS, [schema])) as [string, string | null, string, string][];
  return new Map(
    rows.map(([kind, table, name, text]) => [
      table === null || table === name ? `${kind} ${name}` : `${kind} ${name} of ${table}`,
      JSON.stringify([table, text]),
    ]),
  );
}

/** What is there and is not expected counts where it is of a table of the ledger. */
function differencesOf(found: Definitions, expected: Definitions): readonly string[] {
  const isOfLedger = (text: string) => expected.has(`table ${(JSON.parse(text) as [string | null])[0]}`);
  return [
    ...[...expected].filter(([what, text]) => found.get(what) !== text),
    ...[...found].filter(([what, text]) => !expected.has(what) && isOfLedger(text)),
  ].map(([what]) => `${what} is not as Holdfast makes it`);
}
