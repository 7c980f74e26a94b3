-- What a CHECK cannot say: triggers that keep the balances, and that keep history as it was written.

-- A posting is the only way to change a balance.
CREATE TRIGGER `postings_of_a_known_warrant` BEFORE INSERT ON `postings`
WHEN NEW.`warrant_id` IS NOT NULL AND NOT EXISTS (
  SELECT 1 FROM `warrants` WHERE `id` = NEW.`warrant_id` AND `organisation_id` = NEW.`organisation_id`
    AND `mode` = NEW.`mode` AND `asset` = NEW.`asset`
)
BEGIN
  SELECT RAISE(ABORT, 'a posting belongs to a warrant of the same organisation, mode and asset');
END;
--> statement-breakpoint
-- A warrant's postings are its hold, and the settlement that its state and share ask for. floor(amount × bps / 10000) in
-- two parts, since the product of the whole overflows.
CREATE TRIGGER `postings_hold_or_settle` BEFORE INSERT ON `postings`
WHEN NEW.`warrant_id` IS NOT NULL AND EXISTS (
  SELECT 1 FROM `warrants` WHERE `id` = NEW.`warrant_id` AND NOT (
    NEW.`held` = `amount` AND NEW.`paid` = 0 AND `settled_at` IS NULL
    OR NEW.`held` = -`amount` AND `settled_at` IS NOT NULL AND (NEW.`payee` IS NULL OR NEW.`payee` = `payee`)
      AND NEW.`paid` = `amount` / 10000 * coalesce(`released_bps`, 0)
        + `amount` % 10000 * coalesce(`released_bps`, 0) / 10000
  )
)
BEGIN
  SELECT RAISE(ABORT, 'a posting holds its warrant''s amount, or settles it as the warrant says');
END;
--> statement-breakpoint
CREATE TRIGGER `postings_hold_and_settle_once` BEFORE INSERT ON `postings`
WHEN NEW.`warrant_id` IS NOT NULL AND EXISTS (
  SELECT 1 FROM `postings` WHERE `warrant_id` = NEW.`warrant_id` AND (`held` < 0) = (NEW.`held` < 0)
)
BEGIN
  SELECT RAISE(ABORT, 'a warrant is held once and settled once');
END;
--> statement-breakpoint
CREATE TRIGGER `postings_of_a_known_deposit` BEFORE INSERT ON `postings`
WHEN NEW.`deposit_id` IS NOT NULL AND NOT EXISTS (
  SELECT 1 FROM `deposits` WHERE `id` = NEW.`deposit_id` AND `organisation_id` = NEW.`organisation_id`
    AND `mode` = NEW.`mode` AND `asset` = NEW.`asset` AND `amount` = NEW.`available`
    AND NEW.`held` = 0 AND NEW.`paid` = 0
)
BEGIN
  SELECT RAISE(ABORT, 'a posting belongs to a deposit of the same organisation, mode, asset and amount');
END;
--> statement-breakpoint
CREATE UNIQUE INDEX `postings_one_of_a_deposit` ON `postings` (`deposit_id`) WHERE `deposit_id` IS NOT NULL;
--> statement-breakpoint
CREATE TRIGGER `postings_open_a_balance` BEFORE INSERT ON `postings` WHEN NEW.`deposit_id` IS NOT NULL
BEGIN
  INSERT INTO `balances` (`organisation_id`, `mode`, `asset`, `available`, `held`, `paid`, `funding`)
  VALUES (NEW.`organisation_id`, NEW.`mode`, NEW.`asset`, 0, 0, 0, 0)
  ON CONFLICT DO NOTHING;
END;
--> statement-breakpoint
CREATE TRIGGER `postings_move_the_balance` AFTER INSERT ON `postings`
BEGIN
  UPDATE `balances` SET
    `available` = `available` + NEW.`available`,
    `held` = `held` + NEW.`held`,
    `paid` = `paid` + NEW.`paid`,
    `funding` = `funding` + NEW.`funding`
  WHERE `organisation_id` = NEW.`organisation_id` AND `mode` = NEW.`mode` AND `asset` = NEW.`asset`;
  SELECT RAISE(ABORT, 'a posting needs a balance to move') WHERE changes() <> 1;
END;
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
CREATE TRIGGER `warrants_keep_their_terms` BEFORE UPDATE OF `id`, `organisation_id`, `mode`, `amount`, `asset`, `payee`,
  `spec`, `spec_hash`, `agent_id`, `session_id`, `verifier_id`, `policy_id`, `policy_version`, `rules_hash`, `deadline`,
  `opened_at` ON `warrants`
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
-- A key acts in its own mode: one of another mode than its agent's would move the other world's money.
CREATE TRIGGER `api_keys_are_of_their_agent` BEFORE INSERT ON `api_keys`
WHEN NOT EXISTS (
  SELECT 1 FROM `agents` WHERE `id` = NEW.`agent_id` AND `organisation_id` = NEW.`organisation_id` AND `mode` = NEW.`mode`
)
BEGIN SELECT RAISE(ABORT, 'an API key has its agent''s organisation and mode'); END;
--> statement-breakpoint
CREATE TRIGGER `api_keys_keep_their_agent` BEFORE UPDATE OF `id`, `organisation_id`, `agent_id`, `mode`, `secret_hash` ON `api_keys`
BEGIN SELECT RAISE(ABORT, 'an API key stays its agent''s'); END;
--> statement-breakpoint
CREATE TRIGGER `agents_keep_their_mode` BEFORE UPDATE OF `id`, `organisation_id`, `mode` ON `agents`
BEGIN SELECT RAISE(ABORT, 'an agent stays in its organisation and mode'); END;
--> statement-breakpoint
CREATE TRIGGER `idempotency_outcomes_are_final` BEFORE UPDATE ON `idempotency_keys`
WHEN OLD.`status` IS NOT NULL OR OLD.`fingerprint` <> NEW.`fingerprint`
BEGIN SELECT RAISE(ABORT, 'a key stands for one request, and its outcome is recorded once'); END;
--> statement-breakpoint
CREATE TRIGGER `admin_acts_are_not_changed` BEFORE UPDATE ON `admin_acts`
BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END;
--> statement-breakpoint
CREATE TRIGGER `admin_acts_are_not_deleted` BEFORE DELETE ON `admin_acts`
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
  SELECT 1 FROM `warrants` WHERE `id` = NEW.`warrant_id` AND `organisation_id` = NEW.`organisation_id` AND `mode` = NEW.`mode`
)
BEGIN SELECT RAISE(ABORT, 'a purchase has its warrant''s organisation and mode'); END;
--> statement-breakpoint
CREATE TRIGGER `contents_are_not_changed` BEFORE UPDATE ON `contents`
BEGIN SELECT RAISE(ABORT, 'kept answers are not changed'); END;
--> statement-breakpoint
CREATE TRIGGER `passkeys_stay_their_persons` BEFORE INSERT ON `passkeys`
WHEN EXISTS (SELECT 1 FROM `passkeys` WHERE `id` = NEW.`id` AND `user_id` <> NEW.`user_id`)
BEGIN SELECT RAISE(ABORT, 'a passkey stays its person''s'); END;
