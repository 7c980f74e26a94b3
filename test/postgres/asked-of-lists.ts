import { CHANNELS } from "../../src/core/notice.ts";
import type { Scope } from "../../src/store/scope.ts";
import { ALL, type Asked, alone, each, FEW, limits, NEVER, NONE, type Samples } from "./samples.ts";

/** What is asked of the reads about deliveries and about money. */

export function deliveriesAsked({
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

export function moneyAsked({ assets, column, ids, reader, rows, scopes, some, times, wallets }: Samples) {
  const accounts = [...column<number>("SELECT position FROM accounts"), NEVER];
  const payees = rows<[string, string]>(
    "SELECT asset, payee FROM payees JOIN accounts ON accounts.position = account",
  ).map(([asset, payee]) => ({ asset, payee }));
  const deposits = ids("deposits");
  const steps = each(accounts, each([0, 30], each([40, NEVER], limits)));
  const lists = <Table extends string>(table: Table) => each([null, ...some(table)], limits);
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
    statements: { since: each(accounts, alone(times)), sums: steps, postings: steps },
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
    ...boughtAsked({ ids, scopes, some, times, reader, column }),
  } satisfies Partial<Asked>;
}

const boughtAsked = ({
  column,
  ids,
  reader,
  scopes,
  some,
  times,
}: Pick<Samples, "column" | "ids" | "reader" | "scopes" | "some" | "times">) =>
  ({
    purchases: {
      get: alone(ids("purchases")),
      list: each(scopes, each([null, ...some("purchases")], limits)),
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

export function transfersAsked({ column, ids, reader, rows, scopes }: Samples) {
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
      unassignedCount: alone(watches),
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
