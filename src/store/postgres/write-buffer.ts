import type { SqlValue } from "../sql/database.ts";
import type { Statement } from "./client.ts";
import { toPostgres } from "./dialect.ts";
import { arrayOf } from "./values.ts";
import { LOOKS_AT } from "./write-order.ts";
import { type WritePlan, writePlanOf } from "./write-plan.ts";

/** The positions that a batch was given are used up. It begins again with more. */
export class PositionsUsedUp extends Error {}

/**
 * What a batch writes, in an order in which it may be written. Rows that go through one statement are sent together, in one statement of
 * several rows, except that two writes to one row stay in their order, and that what a guard looks at is written before.
 */
export type WriteBuffer = {
  /** Adds a write, and answers the position that an inserted row gets. */
  add(text: string, values: readonly SqlValue[]): number;
  /** The statements for what was added, in their order. They are taken: the buffer is empty then. */
  take(): readonly Statement[];
  /** Forgets what was added since the last `take`, and its positions. */
  reset(): void;
};

/** Rows that go through one statement together; or what was written by hand, one by one. */
type RowGroup = { readonly plan: WritePlan; readonly rows: unknown[][] };
type ByHand = { readonly byHand: readonly Statement[]; readonly givenUp: Content | null };
type Group = RowGroup | ByHand;
type Content = { readonly table: string; readonly hash: unknown };

/** A session is written by every warrant that it pays for. Only the last of these rows is sent. */
const LAST_ROW_ONLY: ReadonlySet<string> = new Set(["spend_sessions"]);

/**
 * Contents are kept while anything of any organisation refers to them. Who deletes one locks it first, and looks again then; who relies on one
 * that is there locks it until the commit.
 */
const SHARED_CONTENT: ReadonlySet<string> = new Set(["contents", "capsule_parts"]);
const DELETES_CONTENT = /^DELETE FROM (contents|capsule_parts) WHERE hash = \?1/;

const plans = new Map<string, WritePlan | null>();

function planOf(text: string): WritePlan | null {
  let plan = plans.get(text);
  if (plan === undefined) {
    plan = writePlanOf(text);
    plans.set(text, plan);
  }
  return plan;
}

/** @param positions free ones, in their order */
export function createWriteBuffer(positions: readonly number[]): WriteBuffer {
  let used = 0;
  let taken = 0;
  let groups = createGroups();
  return {
    add(text, values) {
      const plan = planOf(text);
      if (plan === null) {
        groups.addByHand(byHand(text, values));
        return 0;
      }
      const place = plan.kind === "insert" ? positions[used++] : 0;
      if (place === undefined) throw new PositionsUsedUp();
      groups.add(
        plan,
        plan.lists.map(({ source }) => encoded(source === "place" ? place : values[source])),
      );
      return place;
    },
    take() {
      const all = groups.all();
      const writes = all.flatMap((group) => ("byHand" in group ? group.byHand : writesOf(group)));
      groups = createGroups();
      taken = used;
      return [...lockedAtOnce(all), ...writes];
    },
    reset() {
      groups = createGroups();
      used = taken;
    },
  };
}

const encoded = (value: unknown): unknown =>
  typeof value === "number" || typeof value === "boolean" ? BigInt(value) : value;

function byHand(text: string, values: readonly SqlValue[]): ByHand {
  const statement = toPostgres(text).bind(values);
  const [, table] = DELETES_CONTENT.exec(text) ?? [];
  if (table === undefined) return { byHand: [statement], givenUp: null };
  const [hash] = values;
  const lock = { text: `SELECT 1 FROM ${table} WHERE hash = $1::text FOR UPDATE`, params: [hash] };
  return { byHand: [lock, statement], givenUp: { table, hash } };
}

/**
 * Locks the contents that a batch relies on and also gives up, such as one that new answers have as well as old ones. Two batches that
 * shared the lock of one, and then wanted it alone, would wait for each other.
 */
function lockedAtOnce(groups: readonly Group[]): readonly Statement[] {
  const givenUp = groups.flatMap((group) => ("byHand" in group && group.givenUp ? [group.givenUp] : []));
  if (givenUp.length === 0) return [];
  return [...SHARED_CONTENT].flatMap((table) => {
    const relied = new Set(
      groups.flatMap((group) => ("rows" in group && group.plan.table === table ? hashesIn(group) : [])),
    );
    const hashes = new Set(givenUp.filter((one) => one.table === table).map(({ hash }) => hash));
    const both = [...hashes.intersection(relied)].sort();
    const text = `SELECT 1 FROM ${table} WHERE hash = ANY($1::text[]) ORDER BY hash FOR UPDATE`;
    return both.length === 0 ? [] : [{ text, params: [arrayOf("text", both)] }];
  });
}

const hashesIn = ({ plan, rows }: RowGroup): readonly unknown[] =>
  rows.map((row) => row[plan.given.get("hash") as number]);

function writesOf(group: RowGroup): readonly Statement[] {
  const { plan, rows } = group;
  const { kind, table, text, lists, keeps } = plan;
  const params = lists.map(({ type }, at) =>
    arrayOf(
      type,
      rows.map((row) => row[at]),
    ),
  );
  if (kind === "update") return [counted(text, params, rows.length)];
  if (!keeps || !SHARED_CONTENT.has(table)) return [{ text, params }];
  const hashes = [...new Set(hashesIn(group))];
  const found = `SELECT DISTINCT hash FROM (SELECT hash FROM ${table} WHERE hash = ANY($1::text[]) FOR KEY SHARE) AS there`;
  return [{ text, params }, counted(found, [arrayOf("text", hashes)], hashes.length)];
}

/**
 * A statement that fails where it does not write, or find, so many rows: by a division by zero, since the COMMIT that is sent with it
 * must then undo everything.
 */
function counted(text: string, params: readonly unknown[], rows: number): Statement {
  const counts = text.startsWith("UPDATE") ? `${text} RETURNING 1` : text;
  const wanted = `$${params.length + 1}::int8`;
  return {
    text: `WITH counted AS (${counts}) SELECT 1 / CASE WHEN count(*) = ${wanted} THEN 1 ELSE 0 END FROM counted`,
    params: [...params, BigInt(rows)],
  };
}

/** What is known of the rows of a table that were written in this batch. */
type Written = {
  /** The columns by which its statements find rows, as one text each. */
  readonly keys: Map<string, readonly string[]>;
  /** The last group that wrote a row, by a key and its values. */
  readonly rows: Map<string, number>;
  /** The last group with a row whose values for a key nobody knows. */
  readonly unknown: Map<string, number>;
  last: number;
  /** The last group of each statement. */
  readonly lastOf: Map<WritePlan, number>;
};

function createGroups() {
  const groups: Group[] = [];
  const newest = new Map<WritePlan, number>();
  const tables = new Map<string, Written>();
  /** Nothing that comes later goes into a group before this one. */
  let first = 0;

  function writtenTo(plan: WritePlan): Written {
    let written = tables.get(plan.table);
    if (written === undefined) {
      written = { keys: new Map(), rows: new Map(), unknown: new Map(), last: -1, lastOf: new Map() };
      tables.set(plan.table, written);
    }
    if (plan.key && !written.keys.has(plan.key.join())) {
      written.keys.set(plan.key.join(), plan.key);
      written.unknown.set(plan.key.join(), written.last);
    }
    return written;
  }

  /** The last group that wrote what this statement looks at: its own rows come after that. */
  function lookedAt(plan: WritePlan): number {
    const { insert = [], update = [] } = LOOKS_AT[plan.table] ?? {};
    const isUpsert = plan.kind === "insert" && plan.key !== null;
    const looked = isUpsert ? [...insert, ...update] : { insert, update, delete: [] }[plan.kind];
    return Math.max(-1, ...looked.map((table) => lastIn(table, plan)));
  }

  function lastIn(table: string, plan: WritePlan): number {
    const written = tables.get(table);
    if (written === undefined) return -1;
    if (table !== plan.table) return written.last;
    // The rows of one statement are written in their order.
    return Math.max(-1, ...[...written.lastOf].map(([other, at]) => (other === plan ? -1 : at)));
  }

  return {
    all: () => groups,
    addByHand(written: ByHand): void {
      groups.push(written);
      first = groups.length;
    },
    add(plan: WritePlan, row: unknown[]): void {
      const written = writtenTo(plan);
      const known: string[] = [];
      let before = Math.max(first - 1, lookedAt(plan));
      for (const [key, columns] of written.keys) {
        const values = valuesOf(plan, columns, row);
        if (values === null) continue;
        known.push(`${key} ${values}`);
        before = Math.max(before, written.unknown.get(key) ?? -1, written.rows.get(`${key} ${values}`) ?? -1);
      }
      let at = newest.get(plan);
      const group = at === undefined ? undefined : groups[at];
      if (at !== undefined && at === before && isMerged(plan, group)) {
        replaceRow(group, plan, row);
      } else if (at !== undefined && at > before && group !== undefined && "rows" in group) {
        group.rows.push(row);
      } else {
        at = groups.push({ plan, rows: [row] }) - 1;
        newest.set(plan, at);
      }
      written.last = Math.max(written.last, at);
      written.lastOf.set(plan, at);
      for (const key of known) written.rows.set(key, at);
      for (const [key, columns] of written.keys)
        if (valuesOf(plan, columns, row) === null) written.unknown.set(key, at);
    },
  };
}

const isMerged = (plan: WritePlan, group: Group | undefined): group is RowGroup =>
  LAST_ROW_ONLY.has(plan.table) && plan.key !== null && group !== undefined && "rows" in group;

function replaceRow(group: RowGroup, plan: WritePlan, row: unknown[]): void {
  const of = (one: unknown[]) => valuesOf(plan, plan.key ?? [], one);
  const at = group.rows.findIndex((one) => of(one) === of(row));
  const known = group.rows[at];
  if (known === undefined) {
    group.rows.push(row);
    return;
  }
  // The first has the place to which others of the batch refer.
  const place = plan.lists.findIndex(({ source }) => source === "place");
  group.rows[at] = row.with(place, known[place]);
}

/** The values of columns in a row, as one text; null where the plan does not give them. */
function valuesOf(
  { given, lists }: WritePlan,
  columns: readonly string[],
  row: readonly unknown[],
): string | null {
  const values: unknown[] = [];
  for (const column of columns) {
    const source = given.get(column);
    if (source === undefined) return null;
    values.push(row[lists.findIndex((list) => list.source === source)]);
  }
  return values.map((value) => (value instanceof Uint8Array ? value.toHex() : String(value))).join("\0");
}
