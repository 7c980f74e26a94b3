import type { SQL } from "bun";
import type { Context } from "../../src/services/context.ts";
import { type PostgresAddress, parsePostgresAddress } from "../../src/store/postgres/address.ts";
import {
  openPostgresStore,
  type PostgresStore,
  type PostgresStoreOptions,
} from "../../src/store/postgres/store.ts";
import { createTestContext, type TestContext } from "../support/context.ts";
import { SCRIPTED } from "../support/stage.ts";
import { copiesIn, TEMPORARY } from "../support/temporary.ts";
import { until } from "../support/until.ts";

/** One of the processes that use a ledger on PostgreSQL, as far as verbs and its store go. */
export type Instance = {
  readonly ctx: Context & Pick<TestContext, "clock">;
  readonly store: PostgresStore;
  close(): Promise<void>;
};

/** The address of a database of a test's server. */
export function addressOf(url: string): PostgresAddress {
  const address = parsePostgresAddress(url);
  if ("problem" in address) throw new Error(address.problem);
  return address;
}

/** Opens a ledger and makes its tables where they are not there. Checks find what their scripts say (`stage.ts`). */
export async function openInstance(
  url: string,
  overrides: Partial<Context> = {},
  options: Partial<PostgresStoreOptions> = {},
): Promise<Instance> {
  const base = createTestContext({ ...SCRIPTED, ...overrides });
  const store = await openPostgresStore(addressOf(url), {
    version: "0.1.0",
    now: base.now,
    steadyNow: () => base.clock.now,
    newInstanceId: () => base.newId("instance"),
    auditCopies: copiesIn(TEMPORARY),
    ...options,
  });
  return {
    ctx: { ...base, store },
    store,
    async close() {
      await store.close();
      await base.close();
    },
  };
}

/** Locks rows from outside, as a third instance would that stands still. Answers how to let them go. */
export async function lockOutside(sql: SQL, statement: string): Promise<() => Promise<void>> {
  const connection = await sql.reserve();
  await connection`BEGIN`;
  await connection.unsafe(statement).simple();
  return async () => {
    await connection`ROLLBACK`;
    connection.release();
  };
}

export const lockOf = (organisationId: string): string =>
  `SELECT 1 FROM organisations WHERE id = '${organisationId}' FOR UPDATE`;

/** How many statements of the database wait for a lock. */
export async function waitingForLocks(sql: SQL): Promise<number> {
  const rows = await sql`
    SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`;
  return rows.length;
}

/**
 * Starts verbs one after the other, and has all of them decided in one batch: each waits in the queue behind a command that waits for a
 * lock. Answers what became of them.
 *
 * @param each how many commands each of them brings
 * @param onBegin is called when the command before has ended, and their batch has not begun
 */
export async function inOneBatch<Result>(
  { store }: Instance,
  sql: SQL,
  organisationId: string,
  starts: readonly (() => Promise<Result>)[],
  { each = 1, onBegin = () => {} }: { readonly each?: number; readonly onBegin?: () => void } = {},
): Promise<readonly PromiseSettledResult<Result>[]> {
  const letGo = await lockOutside(sql, lockOf(organisationId));
  // Commands of the other mode do not join it, since they need another lock.
  const first = store.execute({
    scope: { organisationId, mode: "sandbox" },
    needs: {},
    decide: () => ({ answer: null }),
  });
  await until("the first command waits for the lock", async () => (await waitingForLocks(sql)) > 0);
  const started: Promise<Result>[] = [];
  for (const start of starts) {
    started.push(start());
    await until("it is in the queue", () => store.figures().waiting === started.length * each);
  }
  await letGo();
  await first;
  onBegin();
  return Promise.allSettled(started);
}
