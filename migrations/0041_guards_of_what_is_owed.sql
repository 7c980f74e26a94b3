DROP TRIGGER `postings_settle_a_warrant`;
--> statement-breakpoint
-- floor(amount × bps / 10000) in two parts, since the product of the whole overflows. All of it is owed, and nothing of what a
-- wallet has paid (x402 `exact`): an executable that knows no payees would pay them nothing.
CREATE TRIGGER `postings_settle_a_warrant` AFTER INSERT ON `postings`
WHEN NEW.`kind` = 'settlement' AND (
  SELECT `account` = NEW.`account` AND `settled_at` IS NOT NULL AND NEW.`held` = -`amount` AND NEW.`funding` = 0
    AND NEW.`paid` = `amount` / 10000 * coalesce(`released_bps`, 0)
      + `amount` % 10000 * coalesce(`released_bps`, 0) / 10000
    AND NEW.`payable` = CASE
      WHEN NEW.`paid` = 0
        OR EXISTS (SELECT 1 FROM `purchases` WHERE `warrant_id` = `warrants`.`id` AND `contract` IS NOT NULL) THEN 0
      ELSE NEW.`paid`
    END
    AND NEW.`submitted` = 0
  FROM `warrants` WHERE `position` = NEW.`cause`
) IS NOT 1
BEGIN SELECT RAISE(ROLLBACK, 'a settlement is what its warrant says, of the same account'); END;
