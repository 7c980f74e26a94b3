import type { Database } from "bun:sqlite";
import { createLoad } from "../../src/store/sql/load.ts";
import { createNames } from "../../src/store/sql/names.ts";
import { createPositions } from "../../src/store/sql/positions.ts";
import type { Connection } from "../../src/store/sqlite/open.ts";
import type { IndexName, IndexTable, LoadedKind } from "../../src/store/view.ts";

/** What is asked of every look-up and every index, as statements that give the keys and questions. Who adds one says here what to ask. */

const SCOPED = "organisation_id || ' ' || mode || ' ' ||";
const PAYEES = `SELECT ${SCOPED} asset || ' ' || payee FROM payees
  JOIN accounts ON accounts.position = account JOIN scopes ON scopes.position = scope`;
const SCOPES = "SELECT organisation_id, mode";
const PEOPLE = "SELECT organisations.id, users.id FROM organisations JOIN users";

/** The keys of rows. */
const KEYS: Readonly<Record<LoadedKind, string>> = {
  agent: "SELECT id FROM agents",
  apiKey: "SELECT id FROM api_keys",
  authSession: "SELECT token_hash FROM auth_sessions",
  balance: `SELECT ${SCOPED} asset FROM accounts JOIN scopes ON scopes.position = scope`,
  capsule: "SELECT id FROM capsules",
  chainTransaction: "SELECT chain_id || ' ' || wallet || ' ' || nonce FROM chain_transactions",
  chainTransfer: "SELECT watch || ' ' || hash || ' ' || ordinal FROM chain_transfers",
  correction: "SELECT id FROM corrections",
  cosignature: "SELECT size || ' ' || witness FROM cosignatures",
  delivery: "SELECT id FROM webhook_deliveries",
  deposit: "SELECT id FROM deposits",
  depositSender: "SELECT mode || ' ' || address FROM deposit_senders",
  escalation: "SELECT id FROM escalations",
  idempotencyKey: `SELECT ${SCOPED} key FROM idempotency_keys JOIN scopes ON scopes.position = scope`,
  instance: "SELECT ''",
  messagingAccount: "SELECT user_id FROM messaging_accounts",
  messagingCode: "SELECT user_id FROM messaging_codes",
  notice: "SELECT id FROM notices",
  noticeSettings: "SELECT user_id FROM notice_settings",
  organisation: "SELECT id FROM organisations",
  passkey: "SELECT id FROM passkeys",
  passkeyApproval: "SELECT token_hash FROM passkey_approvals",
  passwordReset: "SELECT token_hash FROM password_resets",
  payeeBalance: PAYEES,
  payout: "SELECT id FROM payouts",
  payoutTransaction: "SELECT chain_id || ' ' || wallet || ' ' || nonce FROM payout_transactions",
  payoutWait: PAYEES,
  plannedNotice: "SELECT id FROM planned_notices",
  policy: "SELECT id FROM policies",
  purchase: "SELECT id FROM purchases",
  pushSubscription: "SELECT id FROM push_subscriptions",
  railState: "SELECT mode || ' ' || asset FROM rail_states",
  schema: "SELECT id FROM schemas",
  sourceKey: "SELECT id FROM source_keys",
  spendSession: "SELECT id FROM spend_sessions",
  traceStep: "SELECT warrants.id || ' ' || sequence FROM trace JOIN warrants ON warrants.position = warrant",
  treasuryWatch: "SELECT chain_id || ' ' || token || ' ' || address FROM treasury_watches",
  user: "SELECT id FROM users",
  verifier: "SELECT id FROM verifiers",
  warrant: "SELECT id FROM warrants",
  webhook: "SELECT id FROM webhooks",
  witnessedLog: "SELECT origin FROM witnessed_logs",
};

/** What indexes are asked. */
const QUESTIONS: Readonly<Record<IndexName, string>> = {
  newestSession: "SELECT id FROM agents",
  heldUntil:
    "SELECT id, session_totals.held_at FROM session_totals JOIN spend_sessions ON spend_sessions.position = session",
  heldSince:
    "SELECT id, session_totals.held_at - 3, session_totals.held_at, '0', '1' FROM session_totals JOIN spend_sessions ON spend_sessions.position = session",
  escalationOrWarrant: "SELECT id FROM escalations UNION SELECT warrant_id FROM escalations",
  depositReferenced: `${SCOPES}, asset, reference FROM deposits
    JOIN accounts ON accounts.position = account JOIN scopes ON scopes.position = scope`,
  correctionOf: "SELECT id FROM deposits",
  newestPayout: `${SCOPES}, asset, payee FROM payees
    JOIN accounts ON accounts.position = account JOIN scopes ON scopes.position = scope`,
  transactionOfPayout: "SELECT id FROM payouts",
  sentSince: `${SCOPES}, asset, 0 FROM accounts JOIN scopes ON scopes.position = scope`,
  unresolvedEscalation: "SELECT warrant_id FROM escalations",
  purchaseOfWarrant: "SELECT id FROM warrants",
  enabledWebhooks: `${SCOPES} FROM scopes`,
  newestPolicy: "SELECT id, NULL FROM organisations UNION SELECT organisation_id, id FROM agents",
  newestPolicyNamed: "SELECT organisation_id, agent_id, name FROM policies",
  schemaNamed: "SELECT organisation_id, name FROM schemas",
  countingPasskey: "SELECT id FROM organisations",
  keyHeldBy: "SELECT holder FROM idempotency_keys WHERE holder IS NOT NULL",
  contentBytes: `${SCOPES}, 'bought' FROM scopes UNION ${SCOPES}, 'free' FROM scopes`,
  oldestFree: `${SCOPES} FROM scopes`,
  sourceKeysOf: "SELECT id FROM organisations",
  oldestCapsules: `${SCOPES} FROM scopes`,
  newestCapsule: `${SCOPES} FROM scopes`,
  newestTransaction: "SELECT chain_id, wallet FROM chain_transactions",
  openAuthorizations: "SELECT payer, chain_id, contract, answered_at FROM purchases WHERE payer IS NOT NULL",
  anyOrganisation: "SELECT 1 WHERE 0",
  userByEmail: "SELECT email FROM users",
  otherOwner: PEOPLE,
  secondPerson: PEOPLE,
  passkeysOf: "SELECT id FROM users",
  sessionsOf: "SELECT id FROM users",
  peopleOf: `SELECT id, '["viewer","admin","owner"]', 2 FROM organisations UNION SELECT id, '[]', 2 FROM organisations`,
  newestNotice: "SELECT organisation_id, subject FROM notices",
  accountOfChat: "SELECT chat_id FROM messaging_accounts",
  unusedResetsOf: "SELECT id FROM users",
  pushSubscriptionsOf: "SELECT id FROM users",
  pushSubscriptionAt: "SELECT endpoint FROM push_subscriptions",
};

/** Asks every look-up for its rows and for one that is not there, and every index. */
export function askEveryLookUp(connection: Connection, database: Database): void {
  const names = createNames(connection.raw);
  const load = createLoad(connection, createPositions(connection.raw), names);
  const valuesOf = (sql: string) =>
    database
      .query(sql)
      .values()
      .map((row) => row.map((value) => (typeof value === "bigint" ? Number(value) : value)));
  const rows = new Map(
    Object.entries(KEYS).map(([kind, sql]) => [
      kind as LoadedKind,
      new Set(valuesOf(sql).map(([key]) => key as string)),
    ]),
  );
  const indexes = new Map(
    Object.entries(QUESTIONS).map(([name, sql]) => {
      const questions = name === "anyOrganisation" ? [[]] : valuesOf(sql);
      return [
        name as IndexName,
        new Map(questions.map((of) => [JSON.stringify(of), of as IndexTable[IndexName]["of"]])),
      ];
    }),
  );
  const nowhere = { loadRow() {}, loadIndex() {} } as never;
  load({ rows, indexes }, nowhere);
}
