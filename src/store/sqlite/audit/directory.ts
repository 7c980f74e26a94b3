import type { Database } from "bun:sqlite";
import { hashJson } from "../../../core/canonical.ts";
import { WARRANT_ENCODINGS } from "../../../core/warrant.ts";
import { policies, schemas } from "../../sql/tables/directory.ts";
import { expectSame, guarded, rowsOf } from "./rows.ts";
import { BY_POSITION, type Did, inSlice, type Slice, slicesOf } from "./slices.ts";

/** Checks what warrants refer to: policies, schemas, idempotency keys and API keys. */
export function* auditDirectory(database: Database, did: Did): Generator<string> {
  yield* auditHashes(database);
  yield* auditInFlight(database);
  yield* auditKeys(database, did);
  yield* auditApiKeys(database);
}

/** Checks the hashes of policies and named schemas. */
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

/**
 * Checks that an idempotency key is in flight only while the check of its warrant, or its purchase, runs; and
 * that a warrant is being verified only while a key is in flight for it, so that the request can be repeated.
 * For the warrant of a purchase that is the purchase's key.
 */
function* auditInFlight(database: Database): Generator<string> {
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
  const keyless = database.query<{ id: string }, []>(
    `SELECT id FROM warrants WHERE state = 'verifying' AND NOT EXISTS (
       SELECT 1 FROM idempotency_keys AS key
       WHERE key.holder = warrants.id AND key.status IS NULL AND key.scope = warrants.scope)
       AND NOT EXISTS (SELECT 1 FROM purchases WHERE warrant_id = warrants.id)`,
  );
  for (const { id } of keyless.iterate())
    yield `warrant ${id}: is being verified, and no idempotency key is in flight for it`;
}

const KEYS_AT_ONCE = 10_000;

/** Checks that every recorded answer can be replayed. */
function* auditKeys(database: Database, did: Did): Generator<string> {
  for (const slice of slicesOf(database, "idempotency_keys", BY_POSITION, KEYS_AT_ONCE, did))
    yield* auditAnswers(database, slice);
}

type AnswerRow = {
  readonly key: string;
  readonly status: bigint;
  readonly body: string | null;
  readonly version: bigint | null;
  readonly encoding: bigint | null;
  /** The present version of its warrant. */
  readonly newest: bigint | null;
  /** The content that fills its body and is not stored; null where nothing is missing. */
  readonly missing: string | null;
};

/**
 * Checks that each recorded answer is a success, and that its body is stored, with the content that was
 * bought, or can be written again from a version of its warrant.
 */
function* auditAnswers(database: Database, { after, last }: Slice<bigint>): Generator<string> {
  const rows = database.query<AnswerRow, [bigint, bigint]>(
    `SELECT key, status, body, idempotency_keys.version, encoding, warrants.version AS newest,
       CASE WHEN NOT EXISTS (SELECT 1 FROM contents WHERE hash = content_hash) THEN content_hash END AS missing
     FROM idempotency_keys
     LEFT JOIN warrants ON warrants.position = warrant AND warrants.scope = idempotency_keys.scope
     WHERE ${inSlice("idempotency_keys.position")} AND status IS NOT NULL`,
  );
  // One statement reads one moment; what it read is compared after it.
  for (const row of rows.all(after, last)) {
    const what = `idempotency key ${JSON.stringify(row.key)}`;
    yield* guarded(what, () => auditAnswer(row, what));
  }
}

function* auditAnswer(
  { status, body, version, encoding, newest, missing }: AnswerRow,
  what: string,
): Generator<string> {
  if (status < 200n || status > 299n) yield `${what}: its status ${status} is no success`;
  if (body !== null) {
    const { warrant_id: bought } = JSON.parse(body);
    if (missing !== null && bought) yield `${what}: the content ${missing} of its answer is not stored`;
    return;
  }
  if (version === null || version < 1n || newest === null || version > newest)
    yield `${what}: its answer is version ${version} of a warrant that does not exist`;
  if (!WARRANT_ENCODINGS.some((known) => BigInt(known) === encoding))
    yield `${what}: its answer is written by encoding ${encoding}, which is unknown`;
  else yield* expectSame(`${what}: its status is ${status}: created`, status === 201n, version === 1n);
}

/**
 * Checks that each API key is in its agent's mode, so that a sandbox agent's key can never move real money.
 */
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
