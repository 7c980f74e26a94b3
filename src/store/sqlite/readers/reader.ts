import { createNames } from "../names.ts";
import type { Connection } from "../open.ts";
import { createCapsulesReader, createSourceKeysReader } from "./capsules.ts";
import { createChainReader } from "./chain.ts";
import { createDirectoryReader } from "./directory.ts";
import { createLogReader } from "./log.ts";
import { createPeopleReader } from "./people.ts";
import { createPurchasesReader } from "./purchases.ts";
import type { SqliteReader } from "./sqlite-reader.ts";
import {
  createChecksReader,
  createEscalationsReader,
  createTraceReader,
  createWarrantsReader,
} from "./warrants.ts";
import { createDeliveriesReader, createWebhooksReader } from "./webhooks.ts";
import { createWitnessesReader } from "./witnesses.ts";

export const createSqliteReader = (connection: Connection): SqliteReader => {
  const { tables, raw } = connection;
  const names = createNames(raw);
  return {
    warrants: createWarrantsReader(connection, names),
    trace: createTraceReader(connection, names),
    checks: createChecksReader(tables),
    log: createLogReader(raw),
    escalations: createEscalationsReader(tables),
    ...createDirectoryReader(connection),
    webhooks: createWebhooksReader(connection),
    deliveries: createDeliveriesReader(connection),
    ...createPurchasesReader(connection),
    capsules: createCapsulesReader(connection),
    sourceKeys: createSourceKeysReader(connection),
    ...createPeopleReader(tables),
    ...createWitnessesReader(tables),
    ...createChainReader(connection),
  };
};
