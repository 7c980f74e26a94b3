import type { Reader } from "../../reader.ts";
import type { Tables } from "../open.ts";
import { createDirectoryReader } from "./directory.ts";
import { createPeopleReader } from "./people.ts";
import { createPurchasesReader } from "./purchases.ts";
import {
  createChecksReader,
  createEscalationsReader,
  createTraceReader,
  createWarrantsReader,
} from "./warrants.ts";
import { createDeliveriesReader, createWebhooksReader } from "./webhooks.ts";

/** The reads of the seam as SQLite answers them: at once. */
type AtOnce<Reads> = Reads extends (...asked: infer Asked) => Promise<infer Answer>
  ? (...asked: Asked) => Answer
  : { readonly [Name in keyof Reads]: AtOnce<Reads[Name]> };
export type SqliteReader = AtOnce<Reader>;

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
