/**
 * What a write looks at in the tables: by foreign keys, by guards, and in a unique index, where another statement may free a value. It
 * has to be written before. An insert that may become an update looks at both. Organisations and people are inserted before all else.
 */
export const LOOKS_AT: Readonly<
  Record<string, { readonly insert?: readonly string[]; readonly update?: readonly string[] }>
> = {
  accounts: { insert: ["scopes"], update: ["postings"] },
  agents: { insert: ["organisations"] },
  api_keys: { insert: ["agents", "organisations"] },
  audit_entries: { insert: ["organisations"] },
  auth_sessions: { insert: ["users"] },
  capsules: { insert: ["capsules", "organisations"] },
  chain_transfers: {
    insert: ["chain_transfers", "deposits", "treasury_watches"],
    update: ["accounts", "deposits", "scopes", "treasury_watches"],
  },
  checks: { insert: ["warrants"] },
  corrections: { insert: ["corrections", "deposits"] },
  deposit_senders: { insert: ["deposit_senders", "organisations"] },
  deposits: { insert: ["accounts"] },
  escalations: { insert: ["organisations", "warrants"] },
  idempotency_keys: { insert: ["idempotency_keys", "scopes"] },
  log_anchors: { insert: ["payout_transactions"] },
  log_checkpoints: { insert: ["log_checkpoints", "solvency_statements", "trace"] },
  messaging_accounts: { insert: ["messaging_accounts", "organisations", "users"] },
  messaging_codes: { insert: ["messaging_codes", "organisations", "users"] },
  notice_settings: { insert: ["organisations", "users"] },
  notices: { insert: ["organisations", "users"] },
  passkey_approvals: { insert: ["users"] },
  passkeys: { insert: ["organisations", "passkeys", "users"] },
  password_resets: { insert: ["users"] },
  payees: { insert: ["accounts"], update: ["payouts"] },
  payout_transactions: { insert: ["chain_transactions", "log_anchors", "payouts"] },
  payout_waits: { insert: ["payees"] },
  payouts: {
    insert: ["accounts", "payees", "scopes"],
    update: ["chain_transactions", "payout_transactions"],
  },
  planned_notices: { insert: ["organisations", "planned_notices"] },
  policies: { insert: ["agents", "organisations"] },
  postings: {
    insert: [
      ...["accounts", "corrections", "deposits", "payout_transactions"],
      ...["payouts", "purchases", "scopes", "warrants"],
    ],
  },
  purchases: { insert: ["organisations", "purchases"], update: ["scopes", "warrants"] },
  push_subscriptions: { insert: ["organisations", "push_subscriptions", "users"] },
  schemas: { insert: ["organisations"] },
  solvency_statements: { insert: ["solvency_statements"], update: ["solvency_statements", "trace"] },
  source_keys: { insert: ["organisations"] },
  spend_sessions: { insert: ["agents"] },
  trace: { update: ["solvency_statements", "trace"] },
  users: { insert: ["organisations"] },
  verifiers: { insert: ["organisations"] },
  warrants: { insert: ["accounts"] },
  webhook_deliveries: { insert: ["organisations", "webhooks"] },
  webhooks: { insert: ["organisations"] },
};
