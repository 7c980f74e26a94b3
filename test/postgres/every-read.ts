import type { Database } from "bun:sqlite";
import { CHANNELS } from "../../src/core/notice.ts";
import { STATES } from "../../src/core/warrant.ts";
import type { Scope } from "../../src/store/scope.ts";
import type { SqlReader } from "../../src/store/sql/readers/sql-reader.ts";

/** What is asked of every read, with values from a ledger. Who adds a read says here what to ask. */

type Read = (...asked: never[]) => unknown;
type Asked = {
  readonly [Noun in keyof SqlReader]: {
    readonly [Name in keyof SqlReader[Noun]]: SqlReader[Noun][Name] extends Read
      ? readonly Parameters<SqlReader[Noun][Name]>[]
      : never;
  };
};

const NEVER = Number.MAX_SAFE_INTEGER;
const NONE = "none";
const [FEW, ALL] = [2, 1_000];
const limits: readonly [number][] = [[FEW], [ALL]];

type Tuple = readonly unknown[];
const alone = <One>(ones: readonly One[]): [One][] => ones.map((one) => [one]);
/** Every one of these before every one of those. */
const each = <One, Others extends Tuple>(ones: readonly One[], others: readonly Others[]) =>
  ones.flatMap((one) => others.map((other): [One, ...Others] => [one, ...other]));

/** What a ledger has to ask about. */
function samplesIn(database: Database, reader: SqlReader) {
  const rows = <Row extends unknown[]>(sql: string): Row[] =>
    database
      .query(sql)
      .values()
      .map((row) => row.map((value) => (typeof value === "bigint" ? Number(value) : value)) as Row);
  const column = <Value = string>(sql: string) => rows<[Value]>(sql).map(([value]) => value);
  const ids = (table: string) => [...column(`SELECT id FROM ${table}`), NONE];
  const scopes = rows<[string, Scope["mode"]]>("SELECT organisation_id, mode FROM scopes");
  const inParts = (table: string) => [
    ...[undefined, { after: null, limit: FEW }],
    ...column(`SELECT id FROM ${table} LIMIT 1`).map((after) => ({ after, limit: FEW })),
  ];
  const cursors = (table: string) => [
    {},
    ...ids(table)
      .slice(-3)
      .flatMap((id) => [{ olderThan: id }, { newerThan: id }]),
  ];
  return {
    ...{ reader, rows, column, ids, inParts, cursors },
    scopes: scopes.map(([organisationId, mode]): Scope => ({ organisationId, mode })),
    organisations: ids("organisations"),
    users: ids("users"),
    agents: ids("agents"),
    warrants: ids("warrants"),
    times: [0, ...column<number>("SELECT DISTINCT recorded_at FROM trace LIMIT 3 OFFSET 9"), NEVER],
    assets: column("SELECT DISTINCT asset FROM accounts"),
    wallets: rows<[number, string]>("SELECT DISTINCT chain_id, wallet FROM chain_transactions").map(
      ([chainId, wallet]) => ({ chainId, wallet }),
    ),
  };
}
type Samples = ReturnType<typeof samplesIn>;

function warrantsAsked({ agents, column, cursors, reader, scopes, times, warrants }: Samples) {
  const filters = [{}, ...STATES.map((state) => ({ state })), ...agents.map((agentId) => ({ agentId }))];
  const ofAgents = each(agents, each(["held", "frozen"] as const, each(times, limits)));
  return {
    warrants: {
      get: each(scopes, alone(warrants.slice(-5))),
      find: alone(warrants),
      byDeadline: each(scopes, each(filters, each([0, 1], limits))),
      byCreation: each(scopes, each(filters, each(cursors("warrants"), limits))),
      overdue: each(times, limits),
      overdueCount: alone(times),
      countsByState: [[]],
      someSettled: [[3]],
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
      list: each(organisations, each([null, ...ids("audit_entries").slice(-3)], limits)),
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
      page: each(organisations, each([null, ...ids("verifiers")], limits)),
    },
    schemas: {
      get: each(organisations, alone(ids("schemas"))),
      page: each(organisations, each(["", ...schemas], limits)),
      named: each(organisations, [[schemas], [[NONE, ...schemas]], [[]]]),
    },
  } satisfies Partial<Asked>;
}

function deliveriesAsked({
  column,
  ids,
  inParts,
  organisations,
  reader,
  scopes,
  times,
  users,
  warrants,
}: Samples) {
  const webhooks = ids("webhooks");
  const moves = warrants.map((id) => reader.trace.of(id));
  const queues = scopes.flatMap((scope) => CHANNELS.map((channel) => ({ ...scope, channel })));
  const found = scopes.flatMap((scope) => reader.deliveries.list(scope, FEW)).slice(0, FEW);
  return {
    webhooks: {
      get: alone(webhooks),
      list: each(scopes, alone(inParts("webhooks"))),
      enabled: [[]],
      withWork: alone(times),
    },
    deliveries: {
      get: alone(ids("webhook_deliveries")),
      list: each(scopes, [[FEW], [ALL], ...each([ALL], alone(webhooks))]),
      olderThan: each(scopes, each([null, ...found], limits)),
      ofMoves: each(scopes, each(moves, limits)),
      due: each(webhooks, each(times, limits)),
      cutOff: each(times, limits),
      beyond: each(times, each(times, limits)),
      exhaustedSince: each(webhooks, each(times, limits)),
      waiting: [[]],
      nextAttemptAt: [[]],
    },
    messaging: {
      accountOf: alone(users),
      accountOfChat: alone(column("SELECT chat_id FROM messaging_accounts")),
      codeByHash: alone(column("SELECT code_hash FROM messaging_codes")),
      codeOf: alone(users),
    },
    notices: {
      get: alone(ids("notices")),
      settingsOf: alone(users),
      nextPlanAt: [[]],
      scopesToPlan: alone(times),
      planned: each(scopes, each(times, limits)),
      plannedCount: each(scopes, alone(times)),
      nextAttemptAt: [[]],
      queuesToSend: alone(times),
      due: each(queues, each(times, limits)),
      cutOff: each(times, limits),
      beyond: each(times, each(times, limits)),
      ofUser: each(users, limits),
      pushSubscriptionsOf: alone(users),
    },
    sourceKeys: {
      get: alone(ids("source_keys")),
      list: alone(organisations),
      of: each(organisations, alone([NONE, ...column("SELECT origin FROM source_keys")])),
    },
  } satisfies Partial<Asked>;
}

function moneyAsked({ assets, column, ids, reader, rows, scopes, times, wallets }: Samples) {
  const accounts = [...column<number>("SELECT position FROM accounts"), NEVER];
  const payees = rows<[string, string]>(
    "SELECT asset, payee FROM payees JOIN accounts ON accounts.position = account",
  ).map(([asset, payee]) => ({ asset, payee }));
  const deposits = ids("deposits");
  const steps = each(accounts, each([0, 30], each([40, NEVER], limits)));
  const lists = <Table extends string>(table: Table) => each([null, ...ids(table).slice(-3)], limits);
  const modes = ["live", "sandbox"] as const;
  return {
    balances: { totals: [[]], list: alone(scopes) },
    payees: {
      list: each(scopes, each([0, 3], limits)),
      owed: each(scopes, each([0, 3], [[FEW], [ALL], ...each([ALL], alone(assets))])),
      owedTo: each(scopes, alone(payees)),
      totals: alone(scopes),
    },
    payouts: {
      get: alone(ids("payouts")),
      list: each(scopes, each([null, "submitted", "paid", "failed"] as const, lists("payouts"))),
    },
    corrections: {
      get: alone(ids("corrections")),
      list: each(scopes, lists("corrections")),
      newestOf: alone(deposits),
    },
    deposits: { get: alone(deposits), list: each(scopes, lists("deposits")) },
    statements: { sums: steps, postings: steps },
    rails: {
      states: [[]],
      state: each(modes, alone(assets)).map(([mode, asset]) => [{ mode, asset }]),
      wait: each(scopes, alone(payees)),
      newestPayout: each(scopes, alone(payees)),
      transactionOf: alone(ids("payouts")),
      toJudge: each(wallets, limits),
      reopened: each(wallets, limits),
      owing: each(modes, alone(assets)),
      sentAfter: each(scopes, each(assets, alone(times))),
      sentBy: each(scopes, each(assets, each(times, [[1n], [45n], [2n ** 62n]]))),
      figures: [[]],
    },
    ...boughtAsked({ ids, scopes, times, reader, column }),
  } satisfies Partial<Asked>;
}

const boughtAsked = ({
  column,
  ids,
  reader,
  scopes,
  times,
}: Pick<Samples, "column" | "ids" | "reader" | "scopes" | "times">) =>
  ({
    purchases: {
      get: alone(ids("purchases")),
      list: each(scopes, each([null, ...ids("purchases").slice(-3)], limits)),
      unfinished: each(["", NONE], limits),
      toCheck: each(times, each(times, limits)),
      withOldContent: each(
        times.map((now) => ({ boughtBefore: now, freeBefore: now, now })),
        limits,
      ),
      waiting: [[]],
    },
    contents: {
      get: alone([...column("SELECT hash FROM contents"), NONE]),
      length: alone([...column("SELECT hash FROM contents"), NONE]),
    },
    capsules: {
      get: alone(ids("capsules")),
      body: alone(ids("capsules").flatMap((id) => reader.capsules.get(id) ?? [])),
      scopesWithOld: each(times, limits),
    },
  }) satisfies Partial<Asked>;

function transfersAsked({ column, ids, reader, rows, scopes }: Samples) {
  const watches = ids("treasury_watches");
  const blocks = [0, ...column<number>("SELECT block FROM chain_transfers WHERE block IS NOT NULL"), NEVER];
  return {
    treasuryWatches: {
      get: alone(reader.treasuryWatches.list()),
      find: alone(watches),
      list: [[]],
    },
    chainTransfers: {
      find: alone(ids("chain_transfers")),
      ofDeposit: alone(ids("deposits")),
      inBlocks: each(watches, each(blocks, each(blocks, limits))),
      ofTransaction: rows<[string, string]>("SELECT watch, hash FROM chain_transfers"),
      sums: each(watches, each(blocks, alone(blocks))),
      countUntil: each(watches, alone(blocks)),
      at: each(watches, each(blocks, [[0], [1], [9]])),
      found: each(watches, each(blocks, limits)),
      unassigned: each(watches, each([null, ...ids("chain_transfers")], limits)),
      uncredited: alone(watches),
      unassignedTally: alone(watches),
      gone: alone(watches),
    },
    depositSenders: {
      get: rows<[Scope["mode"], string]>("SELECT mode, address FROM deposit_senders").map(
        ([mode, address]) => [{ mode, address }],
      ),
      list: each(scopes, each([null, "0x5"], limits)),
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
