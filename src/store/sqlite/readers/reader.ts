import type { Connection } from "../open.ts";
import { createDirectoryReader } from "./directory.ts";
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

export const createSqliteReader = (connection: Connection): SqliteReader => {
  const { tables } = connection;
  return {
    warrants: createWarrantsReader(connection),
    trace: createTraceReader(connection),
    checks: createChecksReader(tables),
    escalations: createEscalationsReader(tables),
    ...createDirectoryReader(tables),
    webhooks: createWebhooksReader(tables),
    deliveries: createDeliveriesReader(tables),
    ...createPurchasesReader(tables),
    ...createPeopleReader(tables),
  };
};
