import type { Database } from "bun:sqlite";
import { MODES } from "../../../core/roles.ts";
import { expectSame } from "./rows.ts";

/**
 * One instance, and both scopes of every organisation; and what is kept for each scope: nothing for one that is
 * not there, and as many warrants as were counted.
 */
export function* auditScopes(database: Database): Generator<string> {
  yield* auditInstance(database);
  yield* auditModes(database);
  yield* auditOrphans(database);
  yield* auditCounts(database);
}

/** A ledger is of one instance, whose restore holds back live money. Nothing but the code keeps a second one out. */
function* auditInstance(database: Database): Generator<string> {
  const instances = database.query<{ count: bigint }, []>("SELECT count(*) AS count FROM instances").get();
  yield* expectSame("the ledger: the number of its instances", instances?.count, 1n);
}

/** An organisation gets a scope for each mode when it is made, by a trigger. Without one, nothing can be held in that mode. */
function* auditModes(database: Database): Generator<string> {
  const organisations = database.query<{ id: string; modes: string | null }, []>(
    `SELECT organisations.id, group_concat(mode, ', ' ORDER BY mode) AS modes
     FROM organisations LEFT JOIN scopes ON organisation_id = organisations.id GROUP BY organisations.id`,
  );
  const expected = [...MODES].sort().join(", ");
  for (const { id, modes } of organisations.iterate())
    yield* expectSame(`organisation ${id}: the modes of its scopes`, modes, expected);
}

const IN_A_SCOPE = ["accounts", "idempotency_keys", "warrant_counts"];

/** Rows without a foreign key: the hot path saves the look-up, and a trigger or the code stands in for it. */
function* auditOrphans(database: Database): Generator<string> {
  for (const table of IN_A_SCOPE) {
    const strays = database.query<{ scope: bigint }, []>(
      `SELECT DISTINCT scope FROM ${table} WHERE scope NOT IN (SELECT position FROM scopes)`,
    );
    for (const { scope } of strays.iterate())
      yield `the scope at position ${scope}: has rows in ${table}, but does not exist`;
  }
}

type CountRow = {
  readonly organisation_id: string | null;
  readonly mode: string | null;
  readonly agent: bigint;
  readonly agent_id: string | null;
  readonly state: string;
  readonly kept: bigint;
  readonly found: bigint;
};

/**
 * Compares the stored counts of warrants, by state and agent, with the warrants themselves. Those are counted by two indexes, by
 * scope and by agent, since the table is fifty times as large. The warrants of a scope that no agent has are without an agent.
 */
function* auditCounts(database: Database): Generator<string> {
  const rows = database.query<CountRow, []>(
    `WITH by_agent AS (
       SELECT scopes.position AS scope, agent, state, found
       FROM (SELECT agent, state, count(*) AS found FROM warrants WHERE agent IS NOT NULL GROUP BY agent, state)
         LEFT JOIN agents ON agents.position = agent
         LEFT JOIN scopes ON scopes.organisation_id = agents.organisation_id AND scopes.mode = agents.mode)
     SELECT scopes.organisation_id, scopes.mode, agent, agents.id AS agent_id, state, kept, found FROM (
       SELECT scope, agent, state, sum(kept) AS kept, sum(found) AS found FROM (
         SELECT scope, agent, state, count AS kept, 0 AS found FROM warrant_counts
         UNION ALL SELECT scope, agent, state, 0, found FROM by_agent
         UNION ALL SELECT scope, 0, state, 0, -found FROM by_agent
         UNION ALL SELECT scope, 0, state, 0, count(*) FROM warrants GROUP BY scope, state
       ) GROUP BY 1, 2, 3 HAVING sum(kept) <> sum(found)
     ) LEFT JOIN scopes ON scopes.position = scope LEFT JOIN agents ON agents.position = agent`,
  );
  for (const row of rows.iterate()) {
    const whose = `${row.organisation_id}, ${row.mode}, ${row.agent_id ?? (row.agent === 0n ? "no agent" : `the agent at position ${row.agent}`)}`;
    yield `warrant counts of ${whose}: ${row.kept} are counted as ${row.state}, and there are ${row.found}`;
  }
}
