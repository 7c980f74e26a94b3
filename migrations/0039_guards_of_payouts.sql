-- Payouts, corrections and the accounts of payees. What was released before is owed to its payees from now on.
DROP TRIGGER `postings_are_not_changed`;
--> statement-breakpoint
-- What the ledger has paid is owed. An `exact` purchase was paid by its wallet, so that nothing of it is owed.
UPDATE `postings` SET `payable` = `paid`
WHERE `kind` = 'settlement' AND `paid` <> 0 AND `cause` NOT IN (
  SELECT `warrants`.`position` FROM `purchases` JOIN `warrants` ON `warrants`.`id` = `purchases`.`warrant_id`
  WHERE `purchases`.`contract` IS NOT NULL
);
--> statement-breakpoint
CREATE TRIGGER `postings_are_not_changed` BEFORE UPDATE ON `postings`
BEGIN SELECT RAISE(ABORT, 'postings are append-only'); END;
--> statement-breakpoint
INSERT INTO `payees` (`account`, `payee`, `payable`, `submitted`, `paid_out`)
SELECT `warrants`.`account`, `warrants`.`payee`, sum(`payable`), 0, sum(`paid` - `payable`)
FROM `postings` JOIN `warrants` ON `warrants`.`position` = `cause`
WHERE `kind` = 'settlement' AND `paid` <> 0
GROUP BY 1, 2 ORDER BY min(`postings`.`position`);
--> statement-breakpoint
DROP TRIGGER `accounts_follow_their_postings`;
--> statement-breakpoint
UPDATE `accounts` SET `payable` = coalesce((SELECT sum(`payable`) FROM `payees` WHERE `account` = `accounts`.`position`), 0);
--> statement-breakpoint
CREATE TRIGGER `accounts_follow_their_postings` BEFORE UPDATE ON `accounts`
WHEN NOT EXISTS (
  SELECT 1 FROM (
    SELECT sum(`available`) AS `available`, sum(`held`) AS `held`, sum(`paid`) AS `paid`, sum(`funding`) AS `funding`,
      sum(`payable`) AS `payable`, sum(`submitted`) AS `submitted`, max(`position`) AS `posted`
    FROM `postings` WHERE `account` = OLD.`position` AND `position` > OLD.`posted`
  ) AS `since`
  WHERE NEW.`available` = OLD.`available` + `since`.`available` AND NEW.`held` = OLD.`held` + `since`.`held`
    AND NEW.`paid` = OLD.`paid` + `since`.`paid` AND NEW.`funding` = OLD.`funding` + `since`.`funding`
    AND NEW.`payable` = OLD.`payable` + `since`.`payable` AND NEW.`submitted` = OLD.`submitted` + `since`.`submitted`
    AND NEW.`posted` = `since`.`posted`
)
BEGIN SELECT RAISE(ABORT, 'a balance is the sum of its postings'); END;
--> statement-breakpoint
CREATE TRIGGER `accounts_owe_of_what_is_paid` BEFORE UPDATE ON `accounts`
WHEN NEW.`payable` < 0 OR NEW.`submitted` < 0 OR NEW.`payable` > NEW.`paid` - NEW.`submitted`
BEGIN SELECT RAISE(ABORT, 'what is owed is a part of what is paid'); END;
--> statement-breakpoint
DROP TRIGGER `accounts_begin_empty`;
--> statement-breakpoint
CREATE TRIGGER `accounts_begin_empty` BEFORE INSERT ON `accounts`
WHEN NEW.`available` <> 0 OR NEW.`held` <> 0 OR NEW.`paid` <> 0 OR NEW.`funding` <> 0 OR NEW.`posted` <> 0
  OR NEW.`payable` <> 0 OR NEW.`submitted` <> 0
  OR NOT EXISTS (SELECT 1 FROM `scopes` WHERE `position` = NEW.`scope`)
BEGIN SELECT RAISE(ABORT, 'an account begins empty, in a scope'); END;
--> statement-breakpoint
DROP TRIGGER `postings_of_a_known_kind`;
--> statement-breakpoint
CREATE TRIGGER `postings_of_a_known_kind` AFTER INSERT ON `postings`
WHEN NOT (NEW.`kind` = 'hold' OR NEW.`kind` = 'settlement' OR NEW.`kind` = 'deposit' OR NEW.`kind` = 'payout_submitted'
  OR NEW.`kind` = 'payout_paid' OR NEW.`kind` = 'payout_failed' OR NEW.`kind` = 'correction')
BEGIN SELECT RAISE(ROLLBACK, 'a posting is a deposit or its correction, a hold, a settlement, or a move of a payout'); END;
--> statement-breakpoint
DROP TRIGGER `postings_hold_an_amount`;
--> statement-breakpoint
CREATE TRIGGER `postings_hold_an_amount` AFTER INSERT ON `postings`
WHEN NEW.`kind` = 'hold' AND (
  SELECT `account` = NEW.`account` AND `settled_at` IS NULL AND NEW.`held` = `amount` AND NEW.`paid` = 0 AND NEW.`funding` = 0
    AND NEW.`payable` = 0 AND NEW.`submitted` = 0
  FROM `warrants` WHERE `position` = NEW.`cause`
) IS NOT 1
BEGIN SELECT RAISE(ROLLBACK, 'a hold is the amount of a warrant of the same account'); END;
--> statement-breakpoint
DROP TRIGGER `postings_settle_a_warrant`;
--> statement-breakpoint
-- floor(amount × bps / 10000) in two parts, since the product of the whole overflows. All of it is owed, or nothing.
CREATE TRIGGER `postings_settle_a_warrant` AFTER INSERT ON `postings`
WHEN NEW.`kind` = 'settlement' AND (
  SELECT `account` = NEW.`account` AND `settled_at` IS NOT NULL AND NEW.`held` = -`amount` AND NEW.`funding` = 0
    AND NEW.`paid` = `amount` / 10000 * coalesce(`released_bps`, 0)
      + `amount` % 10000 * coalesce(`released_bps`, 0) / 10000
    AND (NEW.`payable` = NEW.`paid` OR NEW.`payable` = 0) AND NEW.`submitted` = 0
  FROM `warrants` WHERE `position` = NEW.`cause`
) IS NOT 1
BEGIN SELECT RAISE(ROLLBACK, 'a settlement is what its warrant says, of the same account'); END;
--> statement-breakpoint
DROP TRIGGER `postings_of_a_known_deposit`;
--> statement-breakpoint
CREATE TRIGGER `postings_of_a_known_deposit` AFTER INSERT ON `postings`
WHEN NEW.`kind` = 'deposit' AND (
  SELECT `account` = NEW.`account` AND `amount` = NEW.`available` AND NEW.`held` = 0 AND NEW.`paid` = 0
    AND NEW.`payable` = 0 AND NEW.`submitted` = 0
  FROM `deposits` WHERE `position` = NEW.`cause`
) IS NOT 1
BEGIN SELECT RAISE(ROLLBACK, 'a posting brings the amount of a deposit of the same account'); END;
--> statement-breakpoint
CREATE TRIGGER `postings_of_a_known_correction` AFTER INSERT ON `postings`
WHEN NEW.`kind` = 'correction' AND (
  SELECT `account` = NEW.`account` AND `status` = 'recorded' AND NEW.`available` = `amount_after` - `amount_before`
    AND NEW.`held` = 0 AND NEW.`paid` = 0 AND NEW.`payable` = 0 AND NEW.`submitted` = 0
  FROM `corrections` WHERE `position` = NEW.`cause`
) IS NOT 1
BEGIN SELECT RAISE(ROLLBACK, 'a correction is posted once it is recorded, to the account of its deposit'); END;
--> statement-breakpoint
-- A payout that came back after it was paid has the posting of its payment.
CREATE TRIGGER `postings_of_a_known_payout` AFTER INSERT ON `postings`
WHEN (NEW.`kind` = 'payout_submitted' OR NEW.`kind` = 'payout_paid' OR NEW.`kind` = 'payout_failed') AND (
  SELECT `account` = NEW.`account` AND `rail` = NEW.`rail` AND 'payout_' || `status` = NEW.`kind`
    AND NEW.`available` = 0 AND NEW.`held` = 0 AND NEW.`paid` = 0
    AND NEW.`payable` = CASE `status` WHEN 'submitted' THEN -`amount` WHEN 'failed' THEN `amount` ELSE 0 END
    AND NEW.`submitted` = CASE
      WHEN `status` = 'submitted' THEN `amount`
      WHEN `status` = 'failed'
        AND EXISTS (SELECT 1 FROM `postings` AS `other` WHERE `other`.`cause` = NEW.`cause` AND `other`.`kind` = 'payout_paid') THEN 0
      ELSE -`amount`
    END
  FROM `payouts` WHERE `position` = NEW.`cause`
) IS NOT 1
BEGIN SELECT RAISE(ROLLBACK, 'a payout is posted as it says, to the account of its payee'); END;
--> statement-breakpoint
CREATE TRIGGER `payees_begin_empty` BEFORE INSERT ON `payees`
WHEN NEW.`payable` <> 0 OR NEW.`submitted` <> 0 OR NEW.`paid_out` <> 0
  OR NOT EXISTS (SELECT 1 FROM `accounts` WHERE `position` = NEW.`account`)
BEGIN SELECT RAISE(ABORT, 'a payee begins with nothing, in an account'); END;
--> statement-breakpoint
CREATE TRIGGER `payees_keep_their_names` BEFORE UPDATE OF `position`, `account`, `payee` ON `payees`
BEGIN SELECT RAISE(ABORT, 'a payee stays that of its account'); END;
--> statement-breakpoint
CREATE TRIGGER `payees_follow_their_payouts` BEFORE UPDATE ON `payees`
WHEN NEW.`submitted` <> OLD.`submitted` AND NEW.`submitted` IS NOT (
  SELECT coalesce(sum(`amount`), 0) FROM `payouts` WHERE `payee` = OLD.`position` AND `status` = 'submitted'
)
BEGIN SELECT RAISE(ABORT, 'what is under way to a payee is in its payouts'); END;
--> statement-breakpoint
CREATE TRIGGER `payees_are_not_deleted` BEFORE DELETE ON `payees`
BEGIN SELECT RAISE(ABORT, 'payees are kept'); END;
--> statement-breakpoint
CREATE TRIGGER `payouts_begin_submitted` BEFORE INSERT ON `payouts`
WHEN NEW.`status` <> 'submitted' OR NEW.`version` <> 1
  OR NEW.`account` IS NOT (SELECT `account` FROM `payees` WHERE `position` = NEW.`payee`)
BEGIN SELECT RAISE(ABORT, 'a payout begins as submitted, to a payee of its account'); END;
--> statement-breakpoint
-- The rails of a mode: a payout of the sandbox never goes by a live one.
CREATE TRIGGER `payouts_on_a_rail_of_their_mode` BEFORE INSERT ON `payouts`
WHEN NEW.`rail` IS NOT (
  SELECT `mode` || '_book' FROM `scopes`
  WHERE `position` = (SELECT `scope` FROM `accounts` WHERE `position` = NEW.`account`)
)
BEGIN SELECT RAISE(ABORT, 'a payout goes by a rail of its mode'); END;
--> statement-breakpoint
CREATE TRIGGER `payouts_go_forward` BEFORE UPDATE ON `payouts`
WHEN NEW.`version` <> OLD.`version` + 1
  OR NOT (OLD.`status` = 'submitted' AND NEW.`status` <> 'submitted' OR OLD.`status` = 'paid' AND NEW.`status` = 'failed')
  OR OLD.`reference` IS NOT NULL AND NEW.`reference` IS NOT OLD.`reference`
BEGIN SELECT RAISE(ABORT, 'a payout is paid once, or fails once'); END;
--> statement-breakpoint
CREATE TRIGGER `payouts_keep_their_terms` BEFORE UPDATE OF `position`, `id`, `account`, `payee`, `amount`, `rail`, `created_at` ON `payouts`
BEGIN SELECT RAISE(ABORT, 'what is paid out, and to whom, is fixed'); END;
--> statement-breakpoint
CREATE TRIGGER `payouts_are_not_deleted` BEFORE DELETE ON `payouts`
BEGIN SELECT RAISE(ABORT, 'payouts are kept'); END;
--> statement-breakpoint
CREATE TRIGGER `corrections_of_a_known_deposit` BEFORE INSERT ON `corrections`
WHEN NEW.`status` = 'withdrawn' OR NEW.`decided_at` IS NOT NULL
  OR NEW.`account` IS NOT (SELECT `account` FROM `deposits` WHERE `position` = NEW.`deposit`)
  OR NEW.`amount_before` IS NOT coalesce(
  (SELECT `amount_after` FROM `corrections` WHERE `deposit` = NEW.`deposit` AND `status` = 'recorded' ORDER BY `position` DESC LIMIT 1),
  (SELECT `amount` FROM `deposits` WHERE `position` = NEW.`deposit`)
)
BEGIN SELECT RAISE(ABORT, 'a correction begins with what its deposit counts for'); END;
--> statement-breakpoint
CREATE TRIGGER `corrections_are_decided_once` BEFORE UPDATE ON `corrections`
WHEN OLD.`status` <> 'proposed' OR NEW.`status` = 'proposed'
BEGIN SELECT RAISE(ABORT, 'a correction is decided once'); END;
--> statement-breakpoint
CREATE TRIGGER `corrections_keep_their_terms` BEFORE UPDATE OF `position`, `id`, `account`, `deposit`, `amount_before`, `amount_after`,
  `reason`, `proposed_by`, `created_at` ON `corrections`
BEGIN SELECT RAISE(ABORT, 'what is corrected is fixed'); END;
--> statement-breakpoint
CREATE TRIGGER `corrections_are_not_deleted` BEFORE DELETE ON `corrections`
BEGIN SELECT RAISE(ABORT, 'corrections are kept'); END;
