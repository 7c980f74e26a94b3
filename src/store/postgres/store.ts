import type { DatabaseFigures } from "../../core/database.ts";
import type { Store } from "../store.ts";
import type { PostgresAddress } from "./address.ts";

export type PostgresStoreOptions = {
  readonly version: string;
  readonly now: () => number;
  readonly steadyNow: () => number;
  readonly newInstanceId: () => string;
  readonly migrationWatch?: object;
  readonly onCommitted?: (commands: number, durationMs: number) => void;
};

export interface PostgresStore extends Store {
  readonly newestIdTime: number;
  figures(): DatabaseFigures;
}

export async function openPostgresStore(
  _address: PostgresAddress,
  _options: PostgresStoreOptions,
): Promise<PostgresStore> {
  throw new Error("this build has no engine for PostgreSQL");
}
