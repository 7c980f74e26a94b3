import type { Mode } from "../../../core/roles.ts";
import type { Owed } from "../../../core/solvency/owed.ts";
import type { KeptStatement } from "../../../core/solvency/statement.ts";
import type { SqlDatabase } from "../database.ts";
import { lazily } from "../lazily.ts";
import type { SqlReader } from "./sql-reader.ts";

type Positioned = { readonly position: bigint };
type AccountRow = Positioned &
  Owed & { readonly organisation: string; readonly mode: Mode; readonly asset: string };
type PayeeRow = Positioned &
  Pick<Owed, "payable" | "submitted"> & { readonly account: bigint; readonly payee: string };
type PostingRow = Positioned & Owed & { readonly account: bigint; readonly payee: bigint | null };
type StatementRow = {
  readonly number: bigint;
  readonly note: string;
  readonly seed: Uint8Array;
  readonly hash: Uint8Array;
};

const ACCOUNTS = `
  SELECT accounts.position, organisation_id AS organisation, mode, asset, available, held, payable, submitted
  FROM (SELECT * FROM accounts WHERE position > ? ORDER BY position LIMIT ?) AS accounts
    JOIN scopes ON scopes.position = scope
  ORDER BY accounts.position`;

const PAYEES =
  "SELECT position, account, payee, payable, submitted FROM payees WHERE position > ? ORDER BY position LIMIT ?";

/** A settlement has the payee of its warrant, and the moves of a payout have that of the payout. */
const POSTINGS = `
  SELECT position, account, available, held, payable, submitted,
    CASE WHEN payable = 0 AND submitted = 0 THEN NULL
      WHEN kind = 'settlement' THEN (
        SELECT payees.position FROM warrants
          JOIN payees ON payees.account = moved.account AND payees.payee = warrants.payee
        WHERE warrants.position = cause)
      ELSE (SELECT payee FROM payouts WHERE position = cause) END AS payee
  FROM (SELECT * FROM postings WHERE position > ? ORDER BY position LIMIT ?) AS moved
  ORDER BY position`;

const STATEMENTS =
  "SELECT number, note, seed, entry_hash AS hash FROM solvency_statements WHERE number < ? ORDER BY number DESC LIMIT ?";

const PLACE = `SELECT leaf_index AS leaf,
  (SELECT number FROM log_checkpoints WHERE size > leaf_index ORDER BY size LIMIT 1) AS checkpoint
  FROM solvency_statements WHERE number = ?`;

const owedOf = ({ available, held, payable, submitted }: Owed): Owed => ({
  available,
  held,
  payable,
  submitted,
});

const statementOf = ({ number, note, seed, hash }: StatementRow): KeptStatement => ({
  ...{ number: Number(number), note, seed: seed.toHex(), entryHash: hash.toHex() },
});

export function createSolvencyReader(raw: SqlDatabase): SqlReader["solvency"] {
  const rowsOf = <Row>(sql: string) =>
    lazily(() => {
      const statement = raw.prepare<Row, [number, number]>(sql);
      return (after: number, limit: number) => statement.all(after, limit);
    });
  const accounts = rowsOf<AccountRow>(ACCOUNTS);
  const payees = rowsOf<PayeeRow>(PAYEES);
  const postings = rowsOf<PostingRow>(POSTINGS);
  const statements = rowsOf<StatementRow>(STATEMENTS);
  const newest = lazily(() => {
    const statement = raw.prepare<{ position: bigint | null }, []>(
      "SELECT max(position) AS position FROM postings",
    );
    return () => Number(statement.get()?.position ?? 0n);
  });
  const place = lazily(() => {
    const statement = raw.prepare<{ leaf: bigint | null; checkpoint: bigint | null }, [number]>(PLACE);
    return (number: number) => statement.get(number);
  });
  return {
    accounts: (...step) =>
      accounts(...step).map(({ position, organisation, mode, asset, ...owed }) => ({
        ...{ position: Number(position), organisationId: organisation, mode, asset, owed: owedOf(owed) },
      })),
    payees: (...step) =>
      payees(...step).map(({ position, account, ...row }) => ({
        ...row,
        ...{ position: Number(position), account: Number(account) },
      })),
    postings: (...step) =>
      postings(...step).map(({ position, account, payee, ...owed }) => ({
        ...{ position: Number(position), account: Number(account), owed: owedOf(owed) },
        payee: payee === null ? null : Number(payee),
      })),
    newestPosting: newest,
    statement(number) {
      const [row] = statements(number === null ? Number.MAX_SAFE_INTEGER : number + 1, 1);
      return row && (number === null || Number(row.number) === number) ? statementOf(row) : null;
    },
    statements: (...page) => statements(...page).map(statementOf),
    placeOf(number) {
      const { leaf = null, checkpoint = null } = place(number) ?? {};
      return {
        leafIndex: leaf === null ? null : Number(leaf),
        checkpoint: checkpoint === null ? null : Number(checkpoint),
      };
    },
  };
}
