import type { Database } from "bun:sqlite";
import { STATES } from "../../src/core/warrant.ts";
import type { SqlReader } from "../../src/store/sql/readers/sql-reader.ts";
import { deliveriesAsked, moneyAsked, transfersAsked } from "./asked-of-lists.ts";
import {
  ALL,
  type Asked,
  alone,
  each,
  FEW,
  LAST,
  limits,
  NEVER,
  NONE,
  type Samples,
  samplesIn,
} from "./samples.ts";

function warrantsAsked({ agents, column, cursors, reader, scopes, times, warrants, some }: Samples) {
  const filters = [{}, ...STATES.map((state) => ({ state })), ...agents.map((agentId) => ({ agentId }))];
  const ofAgents = each(agents, each(["held", "frozen"] as const, each(times, limits)));
  return {
    warrants: {
      get: each(scopes, alone(some("warrants"))),
      find: alone(warrants),
      byDeadline: each(scopes, each(filters, each([0, 1], limits))),
      byCreation: each(scopes, each(filters, each(cursors("warrants"), limits))),
      overdue: each(times, limits),
      overdueCount: alone(times),
      countsByState: [[]],
      someSettled: [[3], [Number.MAX_SAFE_INTEGER]],
      verifying: each(["", NONE], limits),
      ofAgent: ofAgents,
      sumsOfAgent: ofAgents,
    },
    trace: { of: alone(warrants), entry: each(warrants, [[1], [2]]) },
    checks: {
      of: alone(warrants),
      find: alone([...column("SELECT id FROM checks"), NONE]),
      decided: each(scopes, each([null, ...agents], each([null, 9], limits))),
    },
    escalations: {
      get: alone([...column("SELECT id FROM escalations"), NONE]),
      list: each(scopes, [[FEW], [ALL]]),
      waitingOf: alone(warrants),
      waiting: each(times, each([null, ...reader.escalations.waiting(NEVER, null, FEW)], limits)),
      oldestWaitingAt: [[]],
    },
  } satisfies Partial<Asked>;
}

function logAsked({ column, reader, scopes, times, warrants, wallets }: Samples) {
  const size = reader.log.size();
  return {
    log: {
      size: [[]],
      root: [[size]],
      inclusionProof: [[1, size]],
      consistencyProof: [[2, size]],
      tile: [[0, 0, 2]],
      entryHashes: each([0, 3], limits),
      newestCheckpoint: [[]],
      checkpointOf: [[0], [size], [NEVER]],
      checkpointsAfter: each([0, 1], limits),
      placesOf: alone(warrants),
    },
    witnessedLogs: { get: [["log.example"], [NONE]], list: [[]] },
    cosignatures: {
      of: [[size], ...alone(reader.cosignatures.after(0, "", FEW).map((one) => one.size))],
      bestSize: each([0, NEVER], [[["witness.example"]], [["witness.example", NONE]], [[NONE]], [[]]]),
      count: [[]],
      after: each([0, NEVER], each(["", "witness.example"], limits)),
      below: each(["witness.example", NONE], each([0, NEVER], limits)),
    },
    chainTransactions: {
      open: each(wallets, limits),
      newest: alone(wallets),
      lastConfirmed: alone(wallets),
      after: each([null, ...reader.chainTransactions.after(null, FEW)], limits),
    },
    logAnchors: {
      firstConfirmed: [[0], [NEVER]],
      sizeOn: alone([0, ...wallets.map(({ chainId }) => chainId)]),
      confirmedSize: [[]],
    },
    solvency: {
      accounts: each([0, 3], limits),
      payees: each([0, 3], limits),
      postings: each([0, 3], limits),
      newestPosting: [[]],
      statement: [[null], [1], [NEVER - 1]],
      statements: each([2, NEVER], limits),
      placeOf: [[1], [NEVER]],
    },
    instance: { get: [[]] },
    history: {
      postingsSince: alone(times),
      checksSince: alone(times),
      accounts: alone(scopes),
      movements: each(column<number>("SELECT position FROM accounts"), each([0, 30], limits)),
      failures: each([0, 3], limits),
    },
  } satisfies Partial<Asked>;
}

function peopleAsked({
  agents,
  column,
  ids,
  inParts,
  organisations,
  reader,
  scopes,
  times,
  users,
  cursors,
  some,
}: Samples) {
  const schemas = column("SELECT name FROM schemas");
  const policies = reader.organisations.list().flatMap(({ id }) => reader.policies.list(id));
  return {
    agents: {
      get: alone(agents),
      list: each(scopes, alone(inParts("agents"))),
      page: each(scopes, each(cursors("agents"), limits)),
      withStatusToFollow: each(times, limits),
      liveSession: each(agents, alone(times)),
      session: alone(ids("spend_sessions")),
      sessions: each(agents, each(cursors("spend_sessions"), limits)),
      heldUntil: each(ids("spend_sessions"), alone(times)),
      countsByState: alone(scopes.flatMap((scope) => reader.agents.list(scope))),
      ownPolicy: alone(agents),
    },
    organisations: { get: alone(organisations), list: [[]], any: [[]] },
    users: {
      get: alone(users),
      byEmail: alone([...column("SELECT email FROM users"), NONE]),
      list: each(organisations, alone(inParts("users"))),
    },
    passkeys: { get: alone(ids("passkeys")), of: alone(users) },
    passwordResets: { byHash: alone(column("SELECT token_hash FROM password_resets")) },
    apiKeys: {
      byHash: alone(column("SELECT secret_hash FROM api_keys")),
      get: alone(ids("api_keys")),
      list: each(scopes, alone(inParts("api_keys"))),
      ofAgent: each(agents, each(cursors("api_keys"), limits)),
    },
    auditEntries: {
      list: each(organisations, each([null, ...some("audit_entries")], limits)),
    },
    authSessions: {
      byHash: alone(column("SELECT token_hash FROM auth_sessions")),
      of: each(users, each(times, limits)),
      hasBeenFrom: each(
        users,
        alone([NONE, ...column("SELECT network FROM auth_sessions WHERE network IS NOT NULL")]),
      ),
      lastSignInOf: alone(users),
    },
    policies: {
      list: each(organisations, alone(inParts("policies"))),
      ofOrganisation: alone(organisations),
      get: each(organisations, alone(ids("policies"))),
      newest: each(organisations, each([null, ...policies], limits)),
      versions: each(policies, each([1, NEVER], limits)),
    },
    verifiers: {
      list: each(organisations, alone(inParts("verifiers"))),
      get: each(organisations, alone(ids("verifiers"))),
      page: each(organisations, each([null, LAST, ...ids("verifiers")], limits)),
    },
    schemas: {
      get: each(organisations, alone(ids("schemas"))),
      page: each(organisations, each(["", ...schemas], limits)),
      named: each(organisations, [[schemas], [[NONE, ...schemas]], [[]]]),
    },
  } satisfies Partial<Asked>;
}

/** Asks every read of a ledger. */
export function askEveryRead(reader: SqlReader, database: Database): void {
  const samples = samplesIn(database, reader);
  const asked: Asked = {
    ...warrantsAsked(samples),
    ...logAsked(samples),
    ...peopleAsked(samples),
    ...deliveriesAsked(samples),
    ...moneyAsked(samples),
    ...transfersAsked(samples),
  };
  for (const [noun, reads] of Object.entries(asked)) {
    const found = reader[noun as keyof SqlReader] as unknown as Record<string, (...of: unknown[]) => unknown>;
    for (const [name, questions] of Object.entries(reads as Record<string, readonly unknown[][]>))
      for (const question of questions) found[name]!(...question);
  }
}
