import type { Database } from "bun:sqlite";
import { hashJson } from "../../../core/canonical.ts";
import { shareOf } from "../../../core/money.ts";
import { isSettled, type State, WARRANT_ENCODINGS } from "../../../core/warrant.ts";
import { policies, schemas } from "../tables/directory.ts";
import { idempotencyKeys } from "../tables/ledger.ts";
import { expectSame, foldGroups, guarded, rowsOf } from "./rows.ts";

/** What warrants refer to: policies, schemas, spend sessions and idempotency keys. */
export function* auditDirectory(database: Database): Generator<string> {
  yield* auditHashes(database);
  yield* auditSessions(database);
  yield* auditKeys(database);
  yield* auditApiKeys(database);
}

/** The rules of a policy and a named schema are what their hashes say. */
function* auditHashes(database: Database): Generator<string> {
  for (const { raw, read } of rowsOf(database, policies)) {
    const what = `policy ${raw.id}`;
    yield* guarded(what, function* () {
      const policy = read();
      yield* expectSame(`${what}: rules_hash`, policy.rulesHash, hashJson(policy.rules));
    });
  }
  for (const { raw, read } of rowsOf(database, schemas)) {
    const what = `schema ${raw.id}`;
    yield* guarded(what, function* () {
      const schema = read();
      yield* expectSame(`${what}: schema_hash`, schema.schemaHash, hashJson(schema.schema));
    });
  }
}

type SessionRow = {
  readonly session_id: string;
  readonly spent: bigint | null;
  readonly count: bigint | null;
  readonly amount: bigint;
  readonly state: State;
  readonly released_bps: bigint | null;
};

/** `amount_spent` is what is held or paid under a session, `warrant_count` how many warrants were opened under it. */
function auditSessions(database: Database): Generator<string> {
  const rows = database
    .query<SessionRow, []>(
      `SELECT id AS session_id, amount_spent AS spent, warrant_count AS count, 0 AS amount, '' AS state,
         NULL AS released_bps FROM spend_sessions
       UNION ALL
       SELECT spend_sessions.id, NULL, NULL, amount, state, released_bps FROM warrants
         JOIN spend_sessions ON spend_sessions.position = session
       ORDER BY 1`,
    )
    .iterate();
  return foldGroups(
    rows,
    (row) => row.session_id,
    (row) => ({ id: row.session_id, session: null as SessionRow | null, spent: 0n, count: 0n }),
    (sum, row) => {
      if (row.spent !== null) {
        sum.session = row;
        return;
      }
      sum.count += 1n;
      sum.spent += isSettled(row.state) ? shareOf(row.amount, Number(row.released_bps ?? 0n)) : row.amount;
    },
    function* ({ id, session, spent, count }) {
      yield* expectSame(`session ${id}: amount_spent against its warrants`, session?.spent, spent);
      yield* expectSame(`session ${id}: warrant_count against its warrants`, session?.count, count);
    },
  );
}

/** A key is in flight only while its warrant's check, or its purchase, runs; what is recorded is an answer that can be replayed. */
function* auditKeys(database: Database): Generator<string> {
  const stuck = database.query<{ key: string; holder: string | null }, []>(
    `SELECT key, holder FROM idempotency_keys LEFT JOIN scopes ON scopes.position = idempotency_keys.scope
     WHERE status IS NULL AND NOT EXISTS (
       SELECT 1 FROM warrants WHERE id = holder AND state = 'verifying' AND warrants.scope = scopes.position)
       AND NOT EXISTS (
       SELECT 1 FROM purchases WHERE id = holder AND phase <> 'ended'
         AND purchases.organisation_id = scopes.organisation_id AND purchases.mode = scopes.mode)`,
  );
  for (const { key, holder } of stuck.iterate()) {
    yield `idempotency key ${JSON.stringify(key)}: is in flight, and ${holder} is neither a warrant being verified nor a purchase under way`;
  }
  const lost = database.query<{ key: string; version: bigint }, []>(
    `SELECT key, idempotency_keys.version FROM idempotency_keys WHERE warrant IS NOT NULL AND NOT EXISTS (
       SELECT 1 FROM warrants WHERE position = warrant AND warrants.scope = idempotency_keys.scope
         AND idempotency_keys.version BETWEEN 1 AND warrants.version)`,
  );
  for (const { key, version } of lost.iterate()) {
    yield `idempotency key ${JSON.stringify(key)}: its answer is version ${version} of a warrant that is not there`;
  }
  for (const { raw, read } of rowsOf(database, idempotencyKeys, "WHERE status IS NOT NULL")) {
    const what = `idempotency key ${JSON.stringify(raw.key)}`;
    yield* guarded(what, function* () {
      const { status, body, version, encoding } = read();
      if (status === null || status < 200 || status > 299)
        yield `${what}: its status ${status} is no success`;
      if (body !== null) JSON.parse(body);
      else if (!WARRANT_ENCODINGS.some((known) => known === encoding))
        yield `${what}: its answer is written by encoding ${encoding}, which is unknown`;
      else yield* expectSame(`${what}: its status is ${status}: created`, status === 201, version === 1);
    });
  }
}

/** A key is in its agent's mode: a sandbox agent's key can never move real money. */
function* auditApiKeys(database: Database): Generator<string> {
  const strays = database.query<{ id: string; agent_id: string }, []>(
    `SELECT id, agent_id FROM api_keys WHERE NOT EXISTS (
       SELECT 1 FROM agents WHERE agents.id = agent_id
         AND agents.organisation_id = api_keys.organisation_id AND agents.mode = api_keys.mode)`,
  );
  for (const { id, agent_id: agentId } of strays.iterate()) {
    yield `API key ${id}: is not of the organisation and mode of its agent ${agentId}`;
  }
}
