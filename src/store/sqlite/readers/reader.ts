import type { Tables } from "../open.ts";
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

export const createSqliteReader = (tables: Tables): SqliteReader => ({
  warrants: createWarrantsReader(tables),
  trace: createTraceReader(tables),
  checks: createChecksReader(tables),
  escalations: createEscalationsReader(tables),
  ...createDirectoryReader(tables),
  webhooks: createWebhooksReader(tables),
  deliveries: createDeliveriesReader(tables),
  ...createPurchasesReader(tables),
  ...createPeopleReader(tables),
});
