-- Payouts that a wallet sends on a chain. Only payouts go by such a rail, each by one of its mode.
DROP TRIGGER `payouts_on_a_rail_of_their_mode`;
--> statement-breakpoint
CREATE TRIGGER `payouts_on_a_rail_of_their_mode` BEFORE INSERT ON `payouts`
WHEN NOT EXISTS (
  SELECT 1 FROM `scopes`
  WHERE `position` = (SELECT `scope` FROM `accounts` WHERE `position` = NEW.`account`)
    AND (NEW.`rail` = `mode` || '_book' OR NEW.`rail` = `mode` || '_evm')
)
BEGIN SELECT RAISE(ABORT, 'a payout goes by a rail of its mode'); END;
--> statement-breakpoint
DROP TRIGGER `postings_on_a_rail_of_their_mode`;
--> statement-breakpoint
CREATE TRIGGER `postings_on_a_rail_of_their_mode` AFTER INSERT ON `postings`
WHEN NOT EXISTS (
  SELECT 1 FROM `scopes`
  WHERE `position` = (SELECT `scope` FROM `accounts` WHERE `position` = NEW.`account`)
    AND (NEW.`rail` = `mode` || '_book' OR NEW.`rail` = `mode` || '_evm' AND NEW.`kind` LIKE 'payout\_%' ESCAPE '\')
)
BEGIN SELECT RAISE(ROLLBACK, 'a posting moves an account of the mode of its rail'); END;
--> statement-breakpoint
-- What was signed for a payout is written before its posting, so that nothing is under way on a chain that was not signed.
CREATE TRIGGER `postings_of_a_signed_payout` AFTER INSERT ON `postings`
WHEN NEW.`kind` LIKE 'payout\_%' ESCAPE '\' AND NEW.`rail` LIKE '%\_evm' ESCAPE '\'
  AND NOT EXISTS (SELECT 1 FROM `payout_transactions` WHERE `payout` = NEW.`cause`)
BEGIN SELECT RAISE(ROLLBACK, 'a payout on a chain has its transaction'); END;
--> statement-breakpoint
CREATE TRIGGER `payouts_end_with_their_transaction` BEFORE UPDATE ON `payouts`
WHEN NEW.`status` <> OLD.`status` AND EXISTS (
  SELECT 1 FROM `payout_transactions` JOIN `chain_transactions` USING (`chain_id`, `wallet`, `nonce`)
  WHERE `payout` = OLD.`position` AND `state` = 'open'
)
BEGIN SELECT RAISE(ABORT, 'a payout does not end while its transaction may get into a block'); END;
--> statement-breakpoint
CREATE TRIGGER `payout_transactions_of_a_payout` BEFORE INSERT ON `payout_transactions`
WHEN NEW.`judged` <> 0 OR NEW.`problem` IS NOT NULL OR NOT EXISTS (
  SELECT 1 FROM `payouts`
  WHERE `position` = NEW.`payout` AND `account` = NEW.`account` AND `rail` = NEW.`rail` AND `status` = 'submitted'
)
BEGIN SELECT RAISE(ABORT, 'a transaction pays a payout that is submitted on its rail'); END;
--> statement-breakpoint
CREATE TRIGGER `payout_transactions_are_signed` BEFORE INSERT ON `payout_transactions`
WHEN NOT EXISTS (
  SELECT 1 FROM `chain_transactions`
  WHERE `chain_id` = NEW.`chain_id` AND `wallet` = NEW.`wallet` AND `nonce` = NEW.`nonce` AND `state` = 'open' AND `to` = NEW.`token`
) OR EXISTS (
  SELECT 1 FROM `log_anchors` WHERE `chain_id` = NEW.`chain_id` AND `wallet` = NEW.`wallet` AND `nonce` = NEW.`nonce`
)
BEGIN SELECT RAISE(ABORT, 'a payout has a transaction of its own, to its token'); END;
--> statement-breakpoint
CREATE TRIGGER `payout_transactions_keep_their_terms` BEFORE UPDATE OF `chain_id`, `wallet`, `nonce`, `payout`, `account`, `rail`,
  `token`, `by_person`, `recorded_at` ON `payout_transactions`
WHEN NEW.`chain_id` IS NOT OLD.`chain_id` OR NEW.`wallet` IS NOT OLD.`wallet` OR NEW.`nonce` IS NOT OLD.`nonce`
  OR NEW.`payout` IS NOT OLD.`payout` OR NEW.`account` IS NOT OLD.`account` OR NEW.`rail` IS NOT OLD.`rail`
  OR NEW.`token` IS NOT OLD.`token` OR NEW.`by_person` IS NOT OLD.`by_person` OR NEW.`recorded_at` IS NOT OLD.`recorded_at`
BEGIN SELECT RAISE(ABORT, 'which transaction pays a payout is fixed'); END;
--> statement-breakpoint
CREATE TRIGGER `payout_transactions_are_not_deleted` BEFORE DELETE ON `payout_transactions`
BEGIN SELECT RAISE(ABORT, 'which transaction pays a payout is kept'); END;
--> statement-breakpoint
CREATE TRIGGER `log_anchors_are_no_payouts` BEFORE INSERT ON `log_anchors`
WHEN EXISTS (
  SELECT 1 FROM `payout_transactions`
  WHERE `chain_id` = NEW.`chain_id` AND `wallet` = NEW.`wallet` AND `nonce` = NEW.`nonce`
)
BEGIN SELECT RAISE(ABORT, 'an anchor has a transaction of its own'); END;
--> statement-breakpoint
CREATE TRIGGER `payout_waits_of_a_payee` BEFORE INSERT ON `payout_waits`
WHEN NOT EXISTS (SELECT 1 FROM `payees` WHERE `position` = NEW.`payee`)
BEGIN SELECT RAISE(ABORT, 'a payee waits that there is'); END;
--> statement-breakpoint
CREATE TRIGGER `payout_waits_are_not_deleted` BEFORE DELETE ON `payout_waits`
BEGIN SELECT RAISE(ABORT, 'what a payee waits for is kept'); END;
--> statement-breakpoint
-- What the operator has accepted of a wallet's transactions is never forgotten.
CREATE TRIGGER `rail_states_keep_the_nonce` BEFORE UPDATE ON `rail_states`
WHEN NEW.`mode` IS NOT OLD.`mode` OR NEW.`asset` IS NOT OLD.`asset`
  OR NEW.`chain_id` = OLD.`chain_id` AND NEW.`wallet` = OLD.`wallet` AND coalesce(NEW.`accepted_nonce`, -1) < coalesce(OLD.`accepted_nonce`, -1)
BEGIN SELECT RAISE(ABORT, 'the nonce of a wallet never falls'); END;
--> statement-breakpoint
CREATE TRIGGER `rail_states_are_not_deleted` BEFORE DELETE ON `rail_states`
BEGIN SELECT RAISE(ABORT, 'the state of a rail is kept'); END;
