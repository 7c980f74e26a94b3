import type { Context } from "../../src/services/context.ts";
import { type PostgresAddress, parsePostgresAddress } from "../../src/store/postgres/address.ts";
import { openPostgresStore, type PostgresStore } from "../../src/store/postgres/store.ts";
import { createTestContext, type TestContext } from "../support/context.ts";
import { SCRIPTED } from "../support/stage.ts";

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
export async function openInstance(url: string, overrides: Partial<Context> = {}): Promise<Instance> {
  const base = createTestContext({ ...SCRIPTED, ...overrides });
  const store = await openPostgresStore(addressOf(url), {
    version: "0.1.0",
    now: base.now,
    steadyNow: () => base.clock.now,
    newInstanceId: () => base.newId("instance"),
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
