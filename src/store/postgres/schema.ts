import type { ReservedSQL } from "bun";
import { sha256 } from "../../core/canonical.ts";
import { type Ask, askOn } from "./ledger-rows.ts";
import { postgresMigrations } from "./migrate.ts";
import { embeddedDefinitions } from "./migrations.macro.ts" with { type: "macro" };

/** An object of the schema, its table and the digest of how PostgreSQL says that it is made. */
type Definitions = ReadonlyMap<string, { readonly table: string | null; readonly digest: string }>;

/**
 * How the tables, their columns, CHECKs, foreign keys, indexes and guards in PostgreSQL differ from those of a ledger: each that is
 * missing, too many, made otherwise or switched off. Other tables beside the ledger's do not matter. It reads the catalog alone, which
 * every role may. Where a newer version has changed the tables, it says only which guards are switched off.
 */
export async function schemaDisagreements(connection: ReservedSQL): Promise<readonly string[]> {
  const ask = askOn(connection);
  const found = await readDefinitions(ask);
  const differing = (await isOfNewer(ask, found)) ? await switchedOff(ask) : differencesFrom(found);
  return differing.map((what) => `${what} is not as Holdfast makes it`);
}

const LIST = "__holdfast_migrations";

async function isOfNewer(ask: Ask, found: Definitions): Promise<boolean> {
  if (!found.has(`table ${LIST}`)) return false;
  const known = postgresMigrations().map(({ hash }) => hash);
  return (await ask(`SELECT hash FROM ${LIST}`)).some(([hash]) => !known.includes(`${hash}`));
}

const SWITCHED_OFF = `
  SELECT DISTINCT CASE WHEN tgisinternal THEN concat('foreign keys of table ', relname) ELSE concat('trigger ', tgname, ' of ', relname) END
  FROM pg_trigger JOIN pg_class ON pg_class.oid = tgrelid
  WHERE relnamespace = current_schema()::text::regnamespace AND tgenabled <> 'O' ORDER BY 1`;

const switchedOff = async (ask: Ask): Promise<readonly string[]> =>
  (await ask(SWITCHED_OFF)).map(([what]) => `${what}`);

/**
 * All that decides what a table lets in: each with its kind, its table and its name first. The text of a definition names the schema
 * where that is not in the search path, so it is. PostgreSQL 14 to 18 say all of it in the same words. Only 18 has NOT NULL as
 * constraints too.
 */
const DEFINITIONS = `
  WITH tables AS (
    SELECT oid, relname, relkind, relrowsecurity, relpersistence FROM pg_class
    WHERE relnamespace = current_schema()::text::regnamespace AND relkind IN ('r', 'p', 'v', 'm', 'f')
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
  FROM tables JOIN pg_constraint ON conrelid = tables.oid AND contype <> 'n'
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
  FROM pg_proc JOIN pg_language ON pg_language.oid = prolang WHERE pronamespace = current_schema()::text::regnamespace
  UNION ALL
  SELECT 'sequence', NULL, relname::text, concat_ws(' ', seqtypid::regtype, seqincrement, seqmin, seqmax, seqcycle, seqcache)
  FROM pg_class JOIN pg_sequence ON seqrelid = pg_class.oid WHERE relnamespace = current_schema()::text::regnamespace
  UNION ALL
  SELECT 'setting', NULL, name, setting FROM pg_settings WHERE name = 'session_replication_role'`;

/** The definitions of the schema that comes first in the search path, by what they are of, such as `trigger a of b`. */
export async function readDefinitions(ask: Ask): Promise<Definitions> {
  const rows = (await ask(DEFINITIONS)) as [string, string | null, string, string][];
  return new Map(
    rows.map(([kind, table, name, text]) => [
      table === null || table === name ? `${kind} ${name}` : `${kind} ${name} of ${table}`,
      { table, digest: sha256(JSON.stringify([table, text])) },
    ]),
  );
}

/** What is there and is not expected counts where it is of a table of the ledger. */
function differencesFrom(found: Definitions): readonly string[] {
  const expected = new Map(embeddedDefinitions() as [string, string][]);
  return [
    ...[...expected].filter(([what, digest]) => found.get(what)?.digest !== digest),
    ...[...found].filter(([what, { table }]) => !expected.has(what) && expected.has(`table ${table}`)),
  ].map(([what]) => what);
}
