-- Treasuries on chains, and what comes in to them. An insert that becomes an update is no new row.
CREATE TRIGGER `treasury_watches_keep_their_terms` BEFORE UPDATE OF `id`, `mode`, `asset`, `chain_id`, `token`, `address`,
  `first_block`, `created_at` ON `treasury_watches`
BEGIN SELECT RAISE(ABORT, 'what is watched, and from which block on, is fixed'); END;
--> statement-breakpoint
CREATE TRIGGER `treasury_watches_begin_reconciled` BEFORE INSERT ON `treasury_watches`
WHEN (NEW.`received` <> 0 OR NEW.`sent` <> 0 OR NEW.`balance` <> NEW.`opening` OR NEW.`last_block` <> NEW.`first_block`)
  AND NOT EXISTS (SELECT 1 FROM `treasury_watches` WHERE `id` = NEW.`id`)
BEGIN SELECT RAISE(ABORT, 'a watch begins with the balance at its first block'); END;
--> statement-breakpoint
-- Money is credited up to the reconciled block: there the transfers add up to the balance.
CREATE TRIGGER `treasury_watches_add_up` BEFORE UPDATE ON `treasury_watches`
WHEN NEW.`last_block` = NEW.`reconciled_block` AND NEW.`balance` <> NEW.`opening` + NEW.`received` - NEW.`sent`
BEGIN SELECT RAISE(ABORT, 'at the reconciled block the transfers add up to the balance'); END;
--> statement-breakpoint
CREATE TRIGGER `treasury_watches_are_not_deleted` BEFORE DELETE ON `treasury_watches`
BEGIN SELECT RAISE(ABORT, 'watches are kept'); END;
--> statement-breakpoint
CREATE TRIGGER `chain_transfers_begin_uncredited` BEFORE INSERT ON `chain_transfers`
WHEN (NEW.`status` NOT IN ('found', 'sent') OR NEW.`block` IS NULL) AND NOT EXISTS (
  SELECT 1 FROM `chain_transfers` WHERE `watch` = NEW.`watch` AND `hash` = NEW.`hash` AND `ordinal` = NEW.`ordinal`
)
BEGIN SELECT RAISE(ABORT, 'a transfer begins in a block, and is no deposit yet'); END;
--> statement-breakpoint
CREATE TRIGGER `chain_transfers_keep_their_terms` BEFORE UPDATE OF `id`, `watch`, `hash`, `ordinal`, `counterparty`, `amount`,
  `created_at` ON `chain_transfers`
BEGIN SELECT RAISE(ABORT, 'what was transferred is fixed'); END;
--> statement-breakpoint
CREATE TRIGGER `chain_transfers_are_credited_once` BEFORE UPDATE ON `chain_transfers`
WHEN NEW.`status` <> OLD.`status`
  AND NOT (OLD.`status` = 'found' AND NEW.`status` IN ('unassigned', 'credited'))
  AND NOT (OLD.`status` = 'unassigned' AND NEW.`status` = 'credited')
  OR OLD.`deposit` IS NOT NULL AND NEW.`deposit` IS NOT OLD.`deposit`
BEGIN SELECT RAISE(ABORT, 'a transfer is credited once'); END;
--> statement-breakpoint
CREATE TRIGGER `chain_transfers_are_their_deposits` BEFORE UPDATE ON `chain_transfers`
WHEN NEW.`deposit` IS NOT NULL AND OLD.`deposit` IS NULL AND NOT EXISTS (
  SELECT 1 FROM `treasury_watches` AS `watches`, `deposits`
    JOIN `accounts` ON `accounts`.`position` = `deposits`.`account` JOIN `scopes` ON `scopes`.`position` = `accounts`.`scope`
  WHERE `watches`.`id` = NEW.`watch` AND `deposits`.`id` = NEW.`deposit` AND `deposits`.`amount` = NEW.`amount`
    AND `deposits`.`reference` = 'eip155:' || `watches`.`chain_id` || ':' || NEW.`hash` || '/' || NEW.`ordinal`
    AND `accounts`.`asset` = `watches`.`asset` AND `scopes`.`mode` = `watches`.`mode`
    AND NEW.`block` <= `watches`.`reconciled_block`
)
BEGIN SELECT RAISE(ABORT, 'a transfer is a deposit of its amount, reference, mode and asset, in a reconciled block'); END;
--> statement-breakpoint
CREATE TRIGGER `chain_transfers_are_not_deleted` BEFORE DELETE ON `chain_transfers`
BEGIN SELECT RAISE(ABORT, 'transfers are kept'); END;
--> statement-breakpoint
CREATE TRIGGER `deposit_senders_are_not_changed` BEFORE UPDATE ON `deposit_senders`
BEGIN SELECT RAISE(ABORT, 'a sender is registered and removed, and never changed'); END;
