import { Database } from "bun:sqlite";
import { expect } from "bun:test";
import { join } from "node:path";
import type { KeyCaller } from "../../src/core/roles.ts";
import { forgetContents } from "../../src/services/x402/content.ts";
import { payForUrl } from "../../src/services/x402/pay.ts";
import type { Needs } from "../../src/store/needs.ts";
import { migrate } from "../../src/store/sqlite/migrate.ts";
import { createTestContext, type TestContext } from "../support/context.ts";
import { givesAway, openMarket, SELLER_URL } from "../support/market.ts";
import { onlyEmbedded } from "../support/only-embedded.ts";
import { createCaller, createStage, idempotencyOf, must } from "../support/stage.ts";
import { watchStatements } from "../support/watched-statements.ts";

const { afterAll, beforeAll, test } = onlyEmbedded(import.meta.path);

/** Each index of the tables serves a read. Without it, that read would go through a whole table. */

let ran: string[] = [];
let watching: { end(): void };
let ctx: TestContext;
let database: Database;
let live: { readonly organisationId: string; readonly mode: "live" };
let agentId: string;
let caller: KeyCaller;
beforeAll(async () => {
  // This comes before the store is opened, since the store prepares its frequent statements then.
  watching = watchStatements((sql) => ran.push(sql));
  const market = openMarket();
  market.first = givesAway("for nothing");
  ctx = createTestContext({ x402: market.x402 });
  const stage = await createStage(ctx);
  live = { organisationId: stage.organisationId, mode: "live" };
  caller = await createCaller(stage);
  agentId = caller.agentId;
  database = new Database(join(ctx.folder, "holdfast.db"), { readonly: true });
});
afterAll(async () => {
  watching.end();
  database?.close();
  await ctx?.close();
});

const needs = (asked: Needs): Promise<unknown> =>
  ctx.store.execute({ scope: live, needs: asked, decide: () => ({ answer: true }) });
const forgets = () => ctx.store.forget({ idempotencyKeysBefore: 0, endedBefore: 0, deliveriesBefore: 0 }, 10);
/** Passes on what a seller gives for nothing, and gives it up an hour later. */
async function givesUpContent(): Promise<void> {
  const order = {
    url: SELLER_URL,
    max_amount: "1",
    spec: { clauses: [{ kind: "http.status", equals: 200 }] },
  } as const;
  must(await payForUrl(ctx, caller, order, idempotencyOf()));
  ctx.clock.now += 3_600_000;
  expect(await forgetContents(ctx, 0)).toBe(1);
}

/** What the trigger of an account adds up at each write, which the plan of the write does not show. */
function sumsPostings(): void {
  const trigger = database
    .query<{ sql: string }, []>("SELECT sql FROM sqlite_schema WHERE name = 'accounts_follow_their_postings'")
    .get();
  const sum = /SELECT sum\([^;]*?OLD\.`posted`/.exec(trigger?.sql ?? "")?.[0] ?? "";
  ran.push(sum.replace(/OLD\.`\w+`/g, "1"));
}

/** What the trigger of a payee adds up. */
function sumsPayouts(): void {
  const trigger = database
    .query<{ sql: string }, []>("SELECT sql FROM sqlite_schema WHERE name = 'payees_follow_their_payouts'")
    .get();
  const sum = /SELECT coalesce\(sum[^;]*?'submitted'/.exec(trigger?.sql ?? "")?.[0] ?? "";
  ran.push(sum.replace(/OLD\.`\w+`/g, "1"));
}

const wallet = { payer: "0x1", chainId: 1, contract: "0x2", since: 0 };
const byAgent = () => ({ agentId });

/** Each index beside the read that it is there for. */
const READS: Readonly<Record<string, () => unknown>> = {
  agents_by_organisation: () => ctx.reader.agents.list(live),
  api_keys_by_agent: () => ctx.reader.apiKeys.ofAgent(agentId, {}, 10),
  api_keys_by_organisation: () => ctx.reader.apiKeys.list(live),
  audit_entries_by_organisation: () => ctx.reader.auditEntries.list("org", "act", 10),
  auth_sessions_by_end: forgets,
  auth_sessions_by_user: () => needs({ userSessions: "usr" }),
  capsules_by_creation: () => ctx.reader.capsules.scopesWithOld(1, 10),
  capsules_by_stored_hash: givesUpContent,
  capsules_of_scope: () => needs({ oldestCapsules: 1 }),
  chain_transactions_open: () => ctx.reader.chainTransactions.open({ chainId: 1, wallet: "0x1" }, 1),
  chain_transfers_by_block: () => ctx.reader.chainTransfers.inBlocks("twa", 0, 1, 10),
  chain_transfers_to_assign: () => ctx.reader.chainTransfers.unassigned("twa", null, 10),
  checks_of_warrant: () => ctx.reader.checks.of("wrt"),
  corrections_by_account: () => ctx.reader.corrections.list(live, null, 10),
  corrections_of_deposit: async () => {
    const [deposit] = ctx.reader.deposits.list(live, null, 1);
    await needs({ deposit: deposit?.id ?? "", depositCorrection: { from: "deposit" } });
  },
  deposit_senders_of_organisation: () => ctx.reader.depositSenders.list(live, null, 10),
  deposits_by_account: () => ctx.reader.deposits.list(live, null, 10),
  escalations_by_status: () => ctx.reader.escalations.list(live, 10),
  escalations_by_warrant: () => needs({ escalationOrWarrant: "wrt" }),
  escalations_waiting: () => ctx.reader.escalations.waiting(0, null, 10),
  idempotency_keys_by_creation: forgets,
  idempotency_keys_with_content: forgets,
  log_anchors_by_size: () => ctx.reader.logAnchors.firstConfirmed(0),
  messaging_codes_by_end: forgets,
  notices_by_creation: forgets,
  notices_by_subject: () => needs({ newestNotice: "trouble disk" }),
  notices_by_user: () => ctx.reader.notices.ofUser("usr", 10),
  notices_claimed: () => ctx.reader.notices.cutOff(0, 10),
  notices_due: () => ctx.reader.notices.due({ ...live, channel: "messaging" }, 0, 10),
  notices_next: () => ctx.reader.notices.nextAttemptAt(),
  passkeys_by_user: () => ctx.reader.passkeys.of("usr"),
  passkeys_of_organisation: () => needs({ hasPasskey: true }),
  password_resets_by_user: () => needs({ unusedPasswordResets: "usr" }),
  payees_owed: () => ctx.reader.payees.owed(live, 0, 10),
  payees_owed_nothing: () => ctx.reader.payees.list(live, 0, 10),
  payout_transactions_in_limits: () => ctx.reader.rails.sentAfter(live, "USDC", 0),
  payout_transactions_to_judge: () => ctx.reader.rails.toJudge({ chainId: 1, wallet: "0x1" }, 1),
  payouts_by_status: () => ctx.reader.payouts.list(live, "paid", null, 10),
  payouts_of_payee: sumsPayouts,
  planned_notices_due: () => ctx.reader.notices.planned(live, 0, 10),
  planned_notices_next: () => ctx.reader.notices.nextPlanAt(),
  policies_by_agent: () => ctx.reader.policies.ofOrganisation("org"),
  policies_by_name: () => ctx.reader.policies.newest("org", null, 10),
  postings_by_account: sumsPostings,
  purchases_by_organisation: () => ctx.reader.purchases.list(live, "pur", 10),
  purchases_open_of_wallet: () => needs({ openAuthorizations: wallet }),
  purchases_paid_of_wallet: () => needs({ openAuthorizations: wallet }),
  purchases_that_chains_confirm: () => ctx.reader.purchases.waiting(),
  purchases_that_keep_content: givesUpContent,
  purchases_to_check: () => ctx.reader.purchases.toCheck(0, 1, 10),
  purchases_unfinished: () => ctx.reader.purchases.unfinished("", 10),
  purchases_with_bought_content: () => forgetContents(ctx, 0),
  purchases_with_free_content: () => forgetContents(ctx, 0),
  purchases_with_free_content_of_scope: () => needs({ oldestFree: true }),
  push_subscriptions_by_user: () => ctx.reader.notices.pushSubscriptionsOf("usr"),
  solvency_statements_without_leaf: () => ctx.store.extendLog(1),
  source_keys_by_origin: () => ctx.reader.sourceKeys.of("org", "https://a.example"),
  spend_sessions_by_agent: () => ctx.reader.agents.liveSession("agt", 0),
  trace_without_leaf: () => ctx.store.extendLog(1),
  users_by_organisation: () => ctx.reader.users.list("org"),
  verifiers_by_organisation: () => ctx.reader.verifiers.list("org"),
  warrants_by_deadline: () => ctx.reader.warrants.byDeadline(live, {}, 0, 10),
  warrants_by_state: () => ctx.reader.warrants.byCreation(live, {}, {}, 10),
  warrants_frozen_in_grace: () => ctx.reader.warrants.ofAgent(agentId, "frozen", 0, 10),
  warrants_of_agent_by_deadline: () => ctx.reader.warrants.byDeadline(live, byAgent(), 0, 10),
  warrants_of_agent_by_state: () => ctx.reader.warrants.byCreation(live, byAgent(), {}, 10),
  warrants_opened_by_agent: () => ctx.reader.warrants.ofAgent(agentId, "held", 0, 10),
  warrants_overdue: () => ctx.reader.warrants.overdue(0, 10),
  warrants_verifying: () => ctx.reader.warrants.verifying("", 10),
  webhook_deliveries_by_creation: forgets,
  webhook_deliveries_by_organisation: () => ctx.reader.deliveries.list(live, 10),
  webhook_deliveries_claimed: () => ctx.reader.deliveries.cutOff(0, 10),
  webhook_deliveries_due: () => ctx.reader.deliveries.due("whk", 0, 10),
  webhook_deliveries_first: () => ctx.reader.deliveries.due("whk", 0, 10),
  webhook_deliveries_next: () => ctx.reader.deliveries.nextAttemptAt(),
  webhooks_by_organisation: () => ctx.reader.webhooks.list(live),
};

const indexesIn = (sql: string): readonly string[] =>
  database
    .query<{ detail: string }, []>(`EXPLAIN QUERY PLAN ${sql}`)
    .all()
    .flatMap(({ detail }) => / INDEX (\S+)/.exec(detail)?.[1] ?? []);

for (const [index, read] of Object.entries(READS)) {
  test(`${index} serves its read`, async () => {
    ran = [];
    await read();
    const statements = ran.filter((sql) => /^\s*(select|delete)\b/i.test(sql));
    expect(statements.flatMap(indexesIn)).toContain(index);
  });
}

test("no index is without a read, or unique", () => {
  const tables = new Database(":memory:");
  migrate(tables);
  const indexes = tables
    .query<{ name: string }, []>(
      `SELECT listed.name FROM sqlite_schema, pragma_index_list(sqlite_schema.name) AS listed
       WHERE type = 'table' AND "unique" = 0 ORDER BY listed.name`,
    )
    .all();
  tables.close();
  expect(indexes.map(({ name }) => name)).toEqual(Object.keys(READS));
});
