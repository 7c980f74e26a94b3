import { type Column, getTableColumns, getTableName, is, Table } from "drizzle-orm";
import * as capsules from "../sql/tables/capsules.ts";
import * as chain from "../sql/tables/chain.ts";
import * as chainTransfers from "../sql/tables/chain-transfers.ts";
import * as directory from "../sql/tables/directory.ts";
import * as ledger from "../sql/tables/ledger.ts";
import * as log from "../sql/tables/log.ts";
import * as messaging from "../sql/tables/messaging.ts";
import * as notices from "../sql/tables/notices.ts";
import * as payouts from "../sql/tables/payouts.ts";
import * as purchases from "../sql/tables/purchases.ts";
import * as webhooks from "../sql/tables/webhooks.ts";
import * as witnesses from "../sql/tables/witnesses.ts";
import type { ColumnType } from "./values.ts";

const TYPE_OF: Readonly<Record<string, ColumnType>> = { integer: "int8", text: "text", blob: "bytea" };

const MODULES: readonly Readonly<Record<string, unknown>>[] = [
  ...[capsules, chain, chainTransfers, directory, ledger, log, messaging],
  ...[notices, payouts, purchases, webhooks, witnesses],
];

const typesOf = (table: Table): ReadonlyMap<string, ColumnType> =>
  new Map(
    Object.values<Column>(getTableColumns(table)).map((column) => [
      column.name,
      TYPE_OF[column.getSQLType()] as ColumnType,
    ]),
  );

/** The types of the columns of every table, by their names. */
export const COLUMNS: ReadonlyMap<string, ReadonlyMap<string, ColumnType>> = new Map(
  MODULES.flatMap((module) => Object.values(module))
    .filter((value) => is(value, Table))
    .map((table) => [getTableName(table), typesOf(table)]),
);

/** The column with the place of a row in the order of commits. */
export const placeOf = (table: string): "position" | "rowid" =>
  COLUMNS.get(table)?.has("position") ? "position" : "rowid";
