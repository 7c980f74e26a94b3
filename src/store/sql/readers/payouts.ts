import { and, asc, desc, eq, gt, lt, ne, type SQL } from "drizzle-orm";
import type { Payout } from "../../../core/payout.ts";
import type { Scope } from "../../scope.ts";
import type { Connection, Tables } from "../database.ts";
import { lazily } from "../lazily.ts";
import type { Names } from "../names.ts";
import { correctionOf, payoutOf } from "../payout-rows.ts";
import { withoutDigest } from "../rows.ts";
import { accounts, deposits, scopes } from "../tables/ledger.ts";
import { corrections, payees, payouts } from "../tables/payouts.ts";
import type { SqlReader } from "./sql-reader.ts";

type Placed = { readonly position: number };

/** The accounts of a scope, each with its asset. */
const accountsIn = (tables: Tables, { organisationId, mode }: Scope) =>
  tables
    .select({ account: accounts.position, asset: accounts.asset })
    .from(scopes)
    .innerJoin(accounts, eq(accounts.scope, scopes.position))
    .where(and(eq(scopes.organisationId, organisationId), eq(scopes.mode, mode)))
    .orderBy(asc(accounts.asset))
    .all();

const oldestFirst = (one: Placed, other: Placed): number => one.position - other.position;
const newestFirst = (one: Placed, other: Placed): number => other.position - one.position;

/** The accounts of payees, payouts and corrections. Each is found by its account, so those of several assets are put in order. */
export function createPayoutsReader(
  connection: Connection,
  names: Names,
): Pick<SqlReader, "payees" | "payouts" | "corrections"> {
  return {
    payees: createPayeesReader(connection.tables),
    payouts: createPayoutList(connection, names),
    corrections: createCorrectionList(connection, names),
  };
}

function createPayeesReader(tables: Tables): SqlReader["payees"] {
  const { account, position, payee, payable, submitted, paidOut } = payees;
  const rowsOf = (of: number, limit: number, only?: SQL) =>
    tables
      .select({ position, payee, payable, submitted, paidOut })
      .from(payees)
      .where(and(eq(account, of), only))
      .orderBy(asc(position))
      .limit(limit)
      .all();
  /** @param parts the conditions of parts of the list, each read in the order of its index */
  const listed = (
    scope: Scope,
    assets: (asset: string) => boolean,
    limit: number,
    ...parts: readonly (SQL | undefined)[]
  ) =>
    accountsIn(tables, scope)
      .filter(({ asset }) => assets(asset))
      .flatMap((of) => parts.map((part) => ({ ...of, part })))
      .flatMap(({ account: of, asset, part }) => rowsOf(of, limit, part).map((row) => ({ ...row, asset })))
      .toSorted(oldestFirst)
      .slice(0, limit)
      .map(({ position: at, payee: name, asset, ...balance }) => ({ at, payee: name, asset, balance }));
  const anyAsset = () => true;
  const owed = gt(payable, 0n);
  return {
    list: (scope, after, limit) =>
      listed(
        scope,
        anyAsset,
        limit,
        ...[owed, eq(payable, 0n)].map((part) => and(gt(position, after), part)),
      ),
    owed: (scope, after, limit, only) =>
      listed(
        scope,
        only === undefined ? anyAsset : (asset) => asset === only,
        limit,
        and(gt(position, after), owed),
      ),
    owedTo: (scope, name) =>
      listed(scope, (asset) => asset === name.asset, 1, eq(payee, name.payee)).filter(
        ({ balance }) => balance.payable > 0n,
      ),
    totals: ({ organisationId, mode }) =>
      tables
        .select({ asset: accounts.asset, payable: accounts.payable, submitted: accounts.submitted })
        .from(scopes)
        .innerJoin(accounts, eq(accounts.scope, scopes.position))
        .where(and(eq(scopes.organisationId, organisationId), eq(scopes.mode, mode)))
        .orderBy(asc(accounts.asset))
        .all(),
  };
}

const STATUSES: readonly Payout["status"][] = ["submitted", "paid", "failed"];

/** The position of a row, by which a list goes on after it; 0 where it is not there, so that nothing follows. */
const positionIn = ({ raw }: Connection, table: "corrections" | "payouts") =>
  lazily(() => {
    const statement = raw.prepare<{ position: bigint }, [string]>(
      `SELECT position FROM ${table} WHERE id = ?`,
    );
    return (id: string | null) =>
      id === null ? Number.MAX_SAFE_INTEGER : Number(statement.get(id)?.position ?? 0n);
  });

function createPayoutList(connection: Connection, names: Names): SqlReader["payouts"] {
  const { tables } = connection;
  const positionOf = positionIn(connection, "payouts");
  const rows = () => tables.select(withoutDigest(payouts)).from(payouts);
  return {
    get(id) {
      const row = rows().where(eq(payouts.id, id)).get();
      return row ? payoutOf(row, names) : null;
    },
    list(scope, status, olderThan, limit) {
      const before = positionOf(olderThan);
      return accountsIn(tables, scope)
        .flatMap(({ account }) => (status === null ? STATUSES : [status]).map((one) => ({ account, one })))
        .flatMap(({ account, one }) =>
          rows()
            .where(and(eq(payouts.account, account), eq(payouts.status, one), lt(payouts.position, before)))
            .orderBy(desc(payouts.position))
            .limit(limit)
            .all(),
        )
        .toSorted(newestFirst)
        .slice(0, limit)
        .map((row) => payoutOf(row, names));
    },
  };
}

function createCorrectionList(connection: Connection, names: Names): SqlReader["corrections"] {
  const { tables } = connection;
  const positionOf = positionIn(connection, "corrections");
  const rows = () => tables.select(withoutDigest(corrections)).from(corrections);
  return {
    get(id) {
      const row = rows().where(eq(corrections.id, id)).get();
      return row ? correctionOf(row, names) : null;
    },
    newestOf(depositId) {
      const row = rows()
        .innerJoin(deposits, eq(deposits.position, corrections.deposit))
        .where(and(eq(deposits.id, depositId), ne(corrections.status, "withdrawn")))
        .orderBy(desc(corrections.position))
        .limit(1)
        .get();
      return row ? correctionOf(row, names) : null;
    },
    list(scope, olderThan, limit) {
      const before = positionOf(olderThan);
      return accountsIn(tables, scope)
        .flatMap(({ account }) =>
          rows()
            .where(and(eq(corrections.account, account), lt(corrections.position, before)))
            .orderBy(desc(corrections.position))
            .limit(limit)
            .all(),
        )
        .toSorted(newestFirst)
        .slice(0, limit)
        .map((row) => correctionOf(row, names));
    },
  };
}
