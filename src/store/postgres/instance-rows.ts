import type { SQL } from "bun";
import { type Refusal, refuseField } from "../../core/errors.ts";
import type { SharedSettings } from "../instances.ts";

/** The statements on the rows of instances and leases. All times are the database's. */

/** The row that is locked while one joins, so that of two whose settings differ the second is refused. */
const JOINING = "joining";

const ahead = (ms: number): string => `${ms} milliseconds`;

/** No end is so many times as far ahead as one that was just written: where one is, the database's clock has been set back. */
const FAR = 5;

/**
 * Inserts the row of a new instance and deletes those of dead ones. Answers the ids of all that are alive, the new one last.
 *
 * @param sql a transaction
 */
export async function insertInstance(
  sql: SQL,
  {
    id,
    settings,
    aheadMs,
  }: { readonly id: string; readonly settings: SharedSettings; readonly aheadMs: number },
): Promise<readonly string[] | Refusal> {
  await sql`INSERT INTO leases (name, instance, token, until) VALUES (${JOINING}, '', 0, '-infinity') ON CONFLICT (name) DO NOTHING`;
  await sql`SELECT name FROM leases WHERE name = ${JOINING} FOR UPDATE`;
  await sql`DELETE FROM instances_running WHERE seen_until < clock_timestamp()`;
  const others: Other[] = await sql`SELECT id, settings FROM instances_running ORDER BY id`;
  const refused = others.map((other) => refuseOther(settings, other)).find((one) => one !== null);
  if (refused) return refused;
  await sql`
    INSERT INTO instances_running (id, started_at, seen_until, settings)
    VALUES (${id}, clock_timestamp(), clock_timestamp() + ${ahead(aheadMs)}::interval, ${JSON.stringify(settings)})`;
  return [...others.map((other) => other.id), id];
}

type Other = { readonly id: string; readonly settings: string };

function refuseOther(mine: SharedSettings, { id, settings }: Other): Refusal | null {
  const theirs: SharedSettings = JSON.parse(settings);
  // A setting that only one of the two knows is of another version.
  const name = Object.keys(mine).find((one) => one in theirs && theirs[one] !== mine[one]);
  return name === undefined
    ? null
    : refuseField(
        name,
        `differs from that of ${id}, which serves the same ledger now: all its instances must have the same`,
      );
}

type Renewed = {
  /** The tokens of the leases that it has, by name. */
  readonly tokens: ReadonlyMap<string, number>;
  /** The ids of all instances that are alive. */
  readonly live: readonly string[];
};

/**
 * Moves the ends of an instance and of its leases on, takes the leases that nobody has, and deletes the rows of dead instances, in
 * one round trip. Answers null where the instance itself is dead.
 *
 * Where the database's clock was set back, as by a failover to a server whose clock is behind, an instance that has died would be
 * believed until that clock has caught up. So ends that are too far ahead are brought near: who is alive moves its own on before that.
 */
export async function renewInstance(
  sql: SQL,
  {
    id,
    names,
    aheadMs,
  }: { readonly id: string; readonly names: readonly string[]; readonly aheadMs: number },
): Promise<Renewed | null> {
  const near = ahead(aheadMs);
  const far = ahead(FAR * aheadMs);
  const [, , renewed, taken, , live] = await Promise.all([
    sql`
      UPDATE instances_running SET seen_until = clock_timestamp() + ${near}::interval
      WHERE seen_until > clock_timestamp() + ${far}::interval`.execute(),
    sql`
      UPDATE leases SET until = clock_timestamp() + ${near}::interval
      WHERE until > clock_timestamp() + ${far}::interval`.execute(),
    sql`
      UPDATE instances_running SET seen_until = clock_timestamp() + ${near}::interval
      WHERE id = ${id} AND seen_until > clock_timestamp() RETURNING id`.execute(),
    // In one order, so that two instances never wait for each other.
    sql`
      INSERT INTO leases AS l (name, instance, token, until)
      SELECT name, ${id}::text, 1, clock_timestamp() + ${near}::interval
      FROM unnest(${sql.array([...names].sort(), "TEXT")}::text[]) AS name
      WHERE EXISTS (SELECT 1 FROM instances_running WHERE id = ${id}::text AND seen_until > clock_timestamp())
      ON CONFLICT (name) DO UPDATE SET
        instance = excluded.instance,
        until = excluded.until,
        token = CASE WHEN l.instance = excluded.instance AND l.until >= clock_timestamp() THEN l.token ELSE l.token + 1 END
      WHERE l.until < clock_timestamp() OR l.instance = excluded.instance
      RETURNING name, token`.execute() as Promise<{ name: string; token: bigint | string }[]>,
    sql`DELETE FROM instances_running WHERE seen_until < clock_timestamp()`.execute(),
    sql`SELECT id FROM instances_running WHERE seen_until > clock_timestamp()`.execute() as Promise<
      { id: string }[]
    >,
  ]);
  if (renewed.length === 0) return null;
  return {
    tokens: new Map(taken.map(({ name, token }) => [name, Number(token)])),
    live: live.map((one) => one.id),
  };
}

/** Ends an instance and its leases now. */
export const deleteInstance = (sql: SQL, id: string): Promise<unknown> =>
  Promise.all([
    sql`UPDATE leases SET until = clock_timestamp() WHERE instance = ${id}`.execute(),
    sql`DELETE FROM instances_running WHERE id = ${id}`.execute(),
  ]);
