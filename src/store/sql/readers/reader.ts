import type { Connection } from "../database.ts";
import { createNames } from "../names.ts";
import { createCapsulesReader, createSourceKeysReader } from "./capsules.ts";
import { createChainReader } from "./chain.ts";
import { createChainTransfersReader } from "./chain-transfers.ts";
import { createDecidedReader } from "./decided.ts";
import { createDepositsReader } from "./deposits.ts";
import { createDirectoryReader } from "./directory.ts";
import { createEscalationsReader } from "./escalations.ts";
import { createHistoryReader } from "./history.ts";
import { createLogReader } from "./log.ts";
import { createMessagingReader } from "./messaging.ts";
import { createNoticesReader } from "./notices.ts";
import { createPayoutsReader } from "./payouts.ts";
import { createPeopleReader } from "./people.ts";
import { createPurchasesReader } from "./purchases.ts";
import { createRailsReader } from "./rails.ts";
import { createSolvencyReader } from "./solvency.ts";
import type { SqlReader } from "./sql-reader.ts";
import { createStatementsReader } from "./statements.ts";
import { createChecksReader, createTraceReader, createWarrantsReader } from "./warrants.ts";
import { createDeliveriesReader, createWebhooksReader } from "./webhooks.ts";
import { createWitnessesReader } from "./witnesses.ts";

export const createSqlReader = (connection: Connection): SqlReader => {
  const { tables, raw } = connection;
  const names = createNames(raw);
  return {
    warrants: createWarrantsReader(connection, names),
    trace: createTraceReader(connection, names),
    checks: { ...createChecksReader(tables), decided: createDecidedReader(connection) },
    log: createLogReader(raw),
    escalations: createEscalationsReader(tables),
    ...createDirectoryReader(connection),
    webhooks: createWebhooksReader(connection),
    deliveries: createDeliveriesReader(connection),
    ...createPurchasesReader(connection),
    capsules: createCapsulesReader(connection),
    sourceKeys: createSourceKeysReader(connection),
    ...createPeopleReader(tables),
    notices: createNoticesReader(connection),
    messaging: createMessagingReader(tables),
    deposits: createDepositsReader(connection, names),
    ...createPayoutsReader(connection, names),
    rails: createRailsReader(connection, names),
    statements: createStatementsReader(connection),
    history: createHistoryReader(connection),
    solvency: createSolvencyReader(raw),
    ...createWitnessesReader(tables),
    ...createChainReader(connection),
    ...createChainTransfersReader(connection),
  };
};
