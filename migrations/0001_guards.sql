-- What a CHECK cannot say: triggers that keep the balances, and that keep history as it was written.
-- Those of the rows that every open inserts come after the insert and end its transaction: so SQLite needs no journal to undo the
-- insert by itself, which took a sixth of the time that an open spends in the tables.

-- An organisation has its scopes from the beginning, and they stay.
CREATE TRIGGER `scopes_of_an_organisation` AFTER INSERT ON `organisations`
BEGIN
  INSERT INTO `scopes` (`organisation_id`, `mode`) VALUES (NEW.`id`, 'live'), (NEW.`id`, 'sandbox');
END;
--> statement-breakpoint
CREATE TRIGGER `scopes_are_not_changed` BEFORE UPDATE ON `scopes`
BEGIN SELECT RAISE(ABORT, 'scopes are kept'); END;
--> statement-breakpoint
CREATE TRIGGER `scopes_are_not_deleted` BEFORE DELETE ON `scopes`
BEGIN SELECT RAISE(ABORT, 'scopes are kept'); END;
--> statement-breakpoint
-- A posting is the only way to change a balance: each write of an account adds up what was posted to it since the last one.
CREATE TRIGGER `accounts_begin_empty` BEFORE INSERT ON `accounts`
WHEN NEW.`available` <> 0 OR NEW.`held` <> 0 OR NEW.`paid` <> 0 OR NEW.`funding` <> 0 OR NEW.`posted` <> 0
  OR NOT EXISTS (SELECT 1 FROM `scopes` WHERE `position` = NEW.`scope`)
BEGIN SELECT RAISE(ABORT, 'an account begins empty, in a scope'); END;
--> statement-breakpoint
CREATE TRIGGER `accounts_follow_their_postings` BEFORE UPDATE ON `accounts`
WHEN NOT EXISTS (
  SELECT 1 FROM (
    SELECT sum(`available`) AS `available`, sum(`held`) AS `held`, sum(`paid`) AS `paid`, sum(`funding`) AS `funding`,
      max(`position`) AS `posted`
    FROM `postings` WHERE `account` = OLD.`position` AND `position` > OLD.`posted`
  ) AS `since`
  WHERE NEW.`available` = OLD.`available` + `since`.`available` AND NEW.`held` = OLD.`held` + `since`.`held`
    AND NEW.`paid` = OLD.`paid` + `since`.`paid` AND NEW.`funding` = OLD.`funding` + `since`.`funding`
    AND NEW.`posted` = `since`.`posted`
)
BEGIN SELECT RAISE(ABORT, 'a balance is the sum of its postings'); END;
--> statement-breakpoint
CREATE TRIGGER `accounts_keep_their_asset` BEFORE UPDATE OF `position`, `scope`, `asset` ON `accounts`
BEGIN SELECT RAISE(ABORT, 'an account stays that of its scope and asset'); END;
--> statement-breakpoint
CREATE TRIGGER `accounts_are_not_deleted` BEFORE DELETE ON `accounts`
BEGIN SELECT RAISE(ABORT, 'accounts are kept'); END;
--> statement-breakpoint
-- The kinds of postings, and the rails of a mode. A version that knows more of them replaces these triggers.
CREATE TRIGGER `postings_of_a_known_kind` AFTER INSERT ON `postings`
WHEN NOT (NEW.`kind` = 'hold' OR NEW.`kind` = 'settlement' OR NEW.`kind` = 'deposit')
BEGIN SELECT RAISE(ROLLBACK, 'a posting is a deposit, a hold or a settlement'); END;
--> statement-breakpoint
CREATE TRIGGER `postings_on_a_rail_of_their_mode` AFTER INSERT ON `postings`
WHEN NEW.`rail` IS NOT (
  SELECT `mode` || '_book' FROM `scopes`
  WHERE `position` = (SELECT `scope` FROM `accounts` WHERE `position` = NEW.`account`)
)
BEGIN SELECT RAISE(ROLLBACK, 'a posting moves an account of the mode of its rail'); END;
--> statement-breakpoint
CREATE TRIGGER `postings_hold_an_amount` AFTER INSERT ON `postings`
WHEN NEW.`kind` = 'hold' AND (
  SELECT `account` = NEW.`account` AND `settled_at` IS NULL AND NEW.`held` = `amount` AND NEW.`paid` = 0 AND NEW.`funding` = 0
  FROM `warrants` WHERE `position` = NEW.`cause`
) IS NOT 1
BEGIN SELECT RAISE(ROLLBACK, 'a hold is the amount of a warrant of the same account'); END;
--> statement-breakpoint
-- floor(amount × bps / 10000) in two parts, since the product of the whole overflows.
CREATE TRIGGER `postings_settle_a_warrant` AFTER INSERT ON `postings`
WHEN NEW.`kind` = 'settlement' AND (
  SELECT `account` = NEW.`account` AND `settled_at` IS NOT NULL AND NEW.`held` = -`amount` AND NEW.`funding` = 0
    AND NEW.`paid` = `amount` / 10000 * coalesce(`released_bps`, 0)
      + `amount` % 10000 * coalesce(`released_bps`, 0) / 10000
  FROM `warrants` WHERE `position` = NEW.`cause`
) IS NOT 1
BEGIN SELECT RAISE(ROLLBACK, 'a settlement is what its warrant says, of the same account'); END;
--> statement-breakpoint
CREATE TRIGGER `postings_of_a_known_deposit` AFTER INSERT ON `postings`
WHEN NEW.`kind` = 'deposit' AND (
  SELECT `account` = NEW.`account` AND `amount` = NEW.`available` AND NEW.`held` = 0 AND NEW.`paid` = 0
  FROM `deposits` WHERE `position` = NEW.`cause`
) IS NOT 1
BEGIN SELECT RAISE(ROLLBACK, 'a posting brings the amount of a deposit of the same account'); END;
--> statement-breakpoint
CREATE TRIGGER `postings_are_not_changed` BEFORE UPDATE ON `postings`
BEGIN SELECT RAISE(ABORT, 'postings are append-only'); END;
--> statement-breakpoint
CREATE TRIGGER `postings_are_not_deleted` BEFORE DELETE ON `postings`
BEGIN SELECT RAISE(ABORT, 'postings are append-only'); END;
--> statement-breakpoint
CREATE TRIGGER `trace_is_not_changed` BEFORE UPDATE ON `trace`
BEGIN SELECT RAISE(ABORT, 'the trace is append-only'); END;
--> statement-breakpoint
CREATE TRIGGER `trace_is_not_deleted` BEFORE DELETE ON `trace`
BEGIN SELECT RAISE(ABORT, 'the trace is append-only'); END;
--> statement-breakpoint
CREATE TRIGGER `warrants_settle_once` BEFORE UPDATE ON `warrants` WHEN OLD.`settled_at` IS NOT NULL
BEGIN SELECT RAISE(ABORT, 'a settled warrant is final'); END;
--> statement-breakpoint
CREATE TRIGGER `warrants_of_their_account` AFTER INSERT ON `warrants`
WHEN NEW.`scope` IS NOT (SELECT `scope` FROM `accounts` WHERE `position` = NEW.`account`)
BEGIN SELECT RAISE(ROLLBACK, 'a warrant is held from an account of its scope'); END;
--> statement-breakpoint
CREATE TRIGGER `warrants_keep_their_terms` BEFORE UPDATE OF `position`, `id`, `scope`, `account`, `amount`, `payee`,
  `spec`, `spec_hash`, `agent`, `session`, `verifier`, `policy`, `rules_hash`, `deadline`, `opened_at` ON `warrants`
BEGIN SELECT RAISE(ABORT, 'the terms of a warrant are fixed at open'); END;
--> statement-breakpoint
CREATE TRIGGER `warrants_are_not_deleted` BEFORE DELETE ON `warrants`
BEGIN SELECT RAISE(ABORT, 'warrants are kept'); END;
--> statement-breakpoint
CREATE TRIGGER `policies_are_not_changed` BEFORE UPDATE ON `policies`
BEGIN SELECT RAISE(ABORT, 'a policy version is never edited'); END;
--> statement-breakpoint
CREATE TRIGGER `schemas_are_not_changed` BEFORE UPDATE ON `schemas`
BEGIN SELECT RAISE(ABORT, 'a named schema is immutable'); END;
--> statement-breakpoint
CREATE TRIGGER `policies_are_not_deleted` BEFORE DELETE ON `policies`
BEGIN SELECT RAISE(ABORT, 'policies are kept'); END;
--> statement-breakpoint
CREATE TRIGGER `schemas_are_not_deleted` BEFORE DELETE ON `schemas`
BEGIN SELECT RAISE(ABORT, 'named schemas are kept'); END;
--> statement-breakpoint
CREATE TRIGGER `deposits_are_not_changed` BEFORE UPDATE ON `deposits`
BEGIN SELECT RAISE(ABORT, 'deposits are append-only'); END;
--> statement-breakpoint
CREATE TRIGGER `deposits_are_not_deleted` BEFORE DELETE ON `deposits`
BEGIN SELECT RAISE(ABORT, 'deposits are append-only'); END;
--> statement-breakpoint
CREATE TRIGGER `checks_are_not_changed` BEFORE UPDATE ON `checks`
BEGIN SELECT RAISE(ABORT, 'checks are append-only'); END;
--> statement-breakpoint
CREATE TRIGGER `checks_are_not_deleted` BEFORE DELETE ON `checks`
BEGIN SELECT RAISE(ABORT, 'checks are append-only'); END;
--> statement-breakpoint
-- A key acts in its own mode: one of another mode than its agent's would move the other mode's money.
CREATE TRIGGER `api_keys_are_of_their_agent` BEFORE INSERT ON `api_keys`
WHEN NOT EXISTS (
  SELECT 1 FROM `agents` WHERE `id` = NEW.`agent_id` AND `organisation_id` = NEW.`organisation_id` AND `mode` = NEW.`mode`
)
BEGIN SELECT RAISE(ABORT, 'an API key has its agent''s organisation and mode'); END;
--> statement-breakpoint
CREATE TRIGGER `api_keys_keep_their_agent` BEFORE UPDATE OF `id`, `organisation_id`, `agent_id`, `mode`, `secret_hash` ON `api_keys`
BEGIN SELECT RAISE(ABORT, 'an API key stays its agent''s'); END;
--> statement-breakpoint
-- Warrants name these by position: what a position stands for stays as it is.
CREATE TRIGGER `agents_are_not_deleted` BEFORE DELETE ON `agents`
BEGIN SELECT RAISE(ABORT, 'agents are kept'); END;
--> statement-breakpoint
CREATE TRIGGER `verifiers_are_not_changed` BEFORE UPDATE ON `verifiers`
BEGIN SELECT RAISE(ABORT, 'a saved verifier is never edited'); END;
--> statement-breakpoint
CREATE TRIGGER `verifiers_are_not_deleted` BEFORE DELETE ON `verifiers`
BEGIN SELECT RAISE(ABORT, 'verifiers are kept'); END;
--> statement-breakpoint
CREATE TRIGGER `spend_sessions_stay_their_agents` BEFORE UPDATE OF `position`, `id`, `agent_id` ON `spend_sessions`
BEGIN SELECT RAISE(ABORT, 'a spend session stays its agent''s'); END;
--> statement-breakpoint
CREATE TRIGGER `spend_sessions_are_not_deleted` BEFORE DELETE ON `spend_sessions`
BEGIN SELECT RAISE(ABORT, 'spend sessions are kept'); END;
--> statement-breakpoint
CREATE TRIGGER `checks_of_a_known_warrant` BEFORE INSERT ON `checks`
WHEN NOT EXISTS (SELECT 1 FROM `warrants` WHERE `position` = NEW.`warrant`)
BEGIN SELECT RAISE(ABORT, 'a check belongs to a warrant'); END;
--> statement-breakpoint
CREATE TRIGGER `deposits_of_a_known_account` BEFORE INSERT ON `deposits`
WHEN NOT EXISTS (SELECT 1 FROM `accounts` WHERE `position` = NEW.`account`)
BEGIN SELECT RAISE(ABORT, 'a deposit belongs to an account'); END;
--> statement-breakpoint
CREATE TRIGGER `idempotency_keys_of_a_known_scope` AFTER INSERT ON `idempotency_keys`
WHEN NOT EXISTS (SELECT 1 FROM `scopes` WHERE `position` = NEW.`scope`)
BEGIN SELECT RAISE(ROLLBACK, 'an idempotency key belongs to a scope'); END;
--> statement-breakpoint
CREATE TRIGGER `agents_keep_their_mode` BEFORE UPDATE OF `position`, `id`, `organisation_id`, `mode` ON `agents`
BEGIN SELECT RAISE(ABORT, 'an agent stays in its organisation and mode'); END;
--> statement-breakpoint
CREATE TRIGGER `idempotency_outcomes_are_final` BEFORE UPDATE ON `idempotency_keys`
WHEN OLD.`status` IS NOT NULL OR OLD.`fingerprint` <> NEW.`fingerprint` OR OLD.`scope` <> NEW.`scope` OR OLD.`key` <> NEW.`key`
BEGIN SELECT RAISE(ABORT, 'a key stands for one request, and its outcome is recorded once'); END;
--> statement-breakpoint
CREATE TRIGGER `audit_entries_are_not_changed` BEFORE UPDATE ON `audit_entries`
BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END;
--> statement-breakpoint
CREATE TRIGGER `audit_entries_are_not_deleted` BEFORE DELETE ON `audit_entries`
BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END;
--> statement-breakpoint
CREATE TRIGGER `passkey_approvals_are_used_once` BEFORE UPDATE ON `passkey_approvals` WHEN OLD.`used_at` IS NOT NULL
BEGIN SELECT RAISE(ABORT, 'an approval is good for one use'); END;
--> statement-breakpoint
CREATE TRIGGER `password_resets_are_used_once` BEFORE UPDATE ON `password_resets` WHEN OLD.`used_at` IS NOT NULL
BEGIN SELECT RAISE(ABORT, 'a reset link is good for one use'); END;
--> statement-breakpoint
CREATE TRIGGER `webhook_deliveries_are_of_their_endpoint` BEFORE INSERT ON `webhook_deliveries`
WHEN NOT EXISTS (
  SELECT 1 FROM `webhooks` WHERE `id` = NEW.`webhook_id` AND `organisation_id` = NEW.`organisation_id` AND `mode` = NEW.`mode`
)
BEGIN SELECT RAISE(ABORT, 'a delivery has its endpoint''s organisation and mode'); END;
--> statement-breakpoint
CREATE TRIGGER `webhook_deliveries_end_once` BEFORE UPDATE ON `webhook_deliveries` WHEN OLD.`status` IN ('delivered', 'exhausted')
BEGIN SELECT RAISE(ABORT, 'a delivery that ended is never tried again'); END;
--> statement-breakpoint
-- Only the identical header is ever sent again, and what is known stays known.
CREATE TRIGGER `purchases_do_not_go_back` BEFORE UPDATE ON `purchases`
WHEN instr(',quoting,held,signed,answered,ended,', ',' || NEW.`phase` || ',')
    < instr(',quoting,held,signed,answered,ended,', ',' || OLD.`phase` || ',')
  OR OLD.`phase` = 'ended' AND OLD.`known` IN ('paid', 'unpaid') AND NEW.`known` IS NOT OLD.`known`
BEGIN SELECT RAISE(ABORT, 'a purchase does not go back'); END;
--> statement-breakpoint
CREATE TRIGGER `purchases_keep_their_order` BEFORE UPDATE OF `id`, `organisation_id`, `mode`, `agent_id`,
  `method`, `url`, `max_amount`, `created_at` ON `purchases`
BEGIN SELECT RAISE(ABORT, 'what was ordered is fixed at the beginning'); END;
--> statement-breakpoint
-- What was asked and what is signed are settled once: another would be another payment.
CREATE TRIGGER `purchases_keep_their_payment` BEFORE UPDATE ON `purchases`
WHEN OLD.`warrant_id` IS NOT NULL AND NEW.`warrant_id` IS NOT OLD.`warrant_id`
  OR OLD.`quoted_amount` IS NOT NULL AND NEW.`quoted_amount` IS NOT OLD.`quoted_amount`
  OR OLD.`quoted_asset` IS NOT NULL AND NEW.`quoted_asset` IS NOT OLD.`quoted_asset`
  OR OLD.`quoted_payee` IS NOT NULL AND NEW.`quoted_payee` IS NOT OLD.`quoted_payee`
  OR OLD.`timeout_seconds` IS NOT NULL AND NEW.`timeout_seconds` IS NOT OLD.`timeout_seconds`
  OR OLD.`pays` IS NOT NULL AND NEW.`pays` IS NOT OLD.`pays`
  OR OLD.`chain_id` IS NOT NULL AND NEW.`chain_id` IS NOT OLD.`chain_id`
  OR OLD.`contract` IS NOT NULL AND NEW.`contract` IS NOT OLD.`contract`
  OR OLD.`payer` IS NOT NULL AND NEW.`payer` IS NOT OLD.`payer`
  OR OLD.`nonce` IS NOT NULL AND NEW.`nonce` IS NOT OLD.`nonce`
  OR OLD.`valid_before` IS NOT NULL AND NEW.`valid_before` IS NOT OLD.`valid_before`
  OR OLD.`header` IS NOT NULL AND NEW.`header` IS NOT OLD.`header`
BEGIN SELECT RAISE(ABORT, 'what is paid, and the payment, are fixed once they are settled'); END;
--> statement-breakpoint
CREATE TRIGGER `purchases_are_not_deleted` BEFORE DELETE ON `purchases` WHEN OLD.`phase` <> 'quoting'
BEGIN SELECT RAISE(ABORT, 'purchases are kept'); END;
--> statement-breakpoint
CREATE TRIGGER `purchases_of_a_known_warrant` BEFORE UPDATE OF `warrant_id` ON `purchases`
WHEN NEW.`warrant_id` IS NOT NULL AND NOT EXISTS (
  SELECT 1 FROM `warrants` JOIN `scopes` ON `scopes`.`position` = `scope`
  WHERE `id` = NEW.`warrant_id` AND `organisation_id` = NEW.`organisation_id` AND `mode` = NEW.`mode`
)
BEGIN SELECT RAISE(ABORT, 'a purchase has its warrant''s organisation and mode'); END;
--> statement-breakpoint
CREATE TRIGGER `contents_are_not_changed` BEFORE UPDATE ON `contents`
BEGIN SELECT RAISE(ABORT, 'kept answers are not changed'); END;
--> statement-breakpoint
CREATE TRIGGER `passkeys_stay_their_persons` BEFORE INSERT ON `passkeys`
WHEN EXISTS (SELECT 1 FROM `passkeys` WHERE `id` = NEW.`id` AND `user_id` <> NEW.`user_id`)
BEGIN SELECT RAISE(ABORT, 'a passkey stays its person''s'); END;
