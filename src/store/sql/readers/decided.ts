import type { DecidedCheck } from "../../../core/back-test.ts";
import type { ReasonCode } from "../../../core/clauses/reason-codes.ts";
import type { Outcome } from "../../../core/policy.ts";
import type { State } from "../../../core/warrant.ts";
import type { Scope } from "../../scope.ts";
import type { Connection } from "../database.ts";
import { lazily } from "../lazily.ts";
import type { SqlReader } from "./sql-reader.ts";

/** The checks of the newest warrants, as a back-test needs them: few columns, found by the indexes that lists of warrants use. */

/** The states of warrants that have a check. People may have settled one without. */
const WITH_CHECKS = ["released", "partially_released", "refunded", "escalated", "disputed"] as const;

type Row = {
  readonly position: bigint;
  readonly warrantId: string;
  readonly payee: string;
  readonly amount: bigint;
  readonly asset: string;
  readonly state: State;
  readonly releasedBps: bigint | null;
  readonly checkId: string | null;
  readonly score: bigint;
  readonly clauses: bigint;
  readonly reasonCodes: string;
  readonly outcome: Outcome;
  readonly evaluatedAt: bigint;
  /** Only `exact` pays on a chain. */
  readonly chainId: bigint | null;
};

/** Each index begins with the state, so that a page is merged from one list of positions for each state. */
function pageSql(column: "scope" | "agent"): string {
  const ofState = (state: State) =>
    `SELECT position FROM warrants WHERE ${column} = ?1 AND state = '${state}' AND position < ?2`;
  return `
  SELECT w.position AS position, w.id AS "warrantId", w.payee AS payee, w.amount AS amount, a.asset AS asset, w.state AS state,
    w.released_bps AS "releasedBps", c.id AS "checkId", c.score AS score, json_array_length(c.details) AS clauses,
    c.reason_codes AS "reasonCodes", c.outcome AS outcome, c.evaluated_at AS "evaluatedAt",
    p.chain_id AS "chainId"
  FROM (${WITH_CHECKS.map(ofState).join(" UNION ALL ")} ORDER BY position DESC LIMIT ?3) newest
  CROSS JOIN warrants w ON w.position = newest.position
  CROSS JOIN accounts a ON a.position = w.account
  LEFT JOIN checks c ON c.warrant = w.position
  LEFT JOIN purchases p ON p.warrant_id = w.id
  ORDER BY w.position DESC, c.position DESC`;
}

export function createDecidedReader({ raw }: Connection): SqlReader["checks"]["decided"] {
  const scopeOf = lazily(() => {
    const statement = raw.prepare<{ position: bigint }, [string, string]>(
      "SELECT position FROM scopes WHERE organisation_id = ? AND mode = ?",
    );
    return ({ organisationId, mode }: Scope) => statement.get(organisationId, mode)?.position;
  });
  const agentOf = lazily(() => {
    const statement = raw.prepare<{ position: bigint }, [string, string, string]>(
      "SELECT position FROM agents WHERE id = ? AND organisation_id = ? AND mode = ?",
    );
    return (id: string, { organisationId, mode }: Scope) => statement.get(id, organisationId, mode)?.position;
  });
  const pages = {
    scope: lazily(() => pageOf("scope")),
    agent: lazily(() => pageOf("agent")),
  };

  function pageOf(column: "scope" | "agent") {
    const statement = raw.prepare<Row, [bigint, number, number]>(pageSql(column));
    return (whose: bigint, before: number, limit: number) => statement.all(whose, before, limit);
  }

  return (scope, agentId, before, limit) => {
    const whose = agentId === null ? scopeOf(scope) : agentOf(agentId, scope);
    if (whose === undefined) return { checks: [], last: null };
    const rows = pages[agentId === null ? "scope" : "agent"](whose, before ?? Number.MAX_SAFE_INTEGER, limit);
    const positions = new Set(rows.map(({ position }) => position));
    const last = rows.at(-1);
    return {
      checks: rows.flatMap((row) => (row.checkId === null ? [] : [checkOf(row, row.checkId)])),
      last: last && positions.size === limit ? Number(last.position) : null,
    };
  };
}

const checkOf = (row: Row, checkId: string): DecidedCheck => ({
  ...{ checkId, warrantId: row.warrantId, payee: row.payee, amount: row.amount, asset: row.asset },
  state: row.state,
  releasedBps: row.releasedBps === null ? null : Number(row.releasedBps),
  score: Number(row.score),
  clauses: Number(row.clauses),
  reasonCodes: JSON.parse(row.reasonCodes) as readonly ReasonCode[],
  outcome: row.outcome,
  evaluatedAt: Number(row.evaluatedAt),
  isExactPayment: row.chainId !== null,
});
