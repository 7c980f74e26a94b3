-- A chain may take any signing of a transaction, so none is forgotten, and what they say is never changed.
CREATE TRIGGER `chain_transactions_keep_what_was_signed` BEFORE UPDATE ON `chain_transactions`
WHEN NEW.`chain_id` IS NOT OLD.`chain_id` OR NEW.`wallet` IS NOT OLD.`wallet` OR NEW.`nonce` IS NOT OLD.`nonce` OR
  NEW.`to` IS NOT OLD.`to` OR NEW.`data` IS NOT OLD.`data` OR NEW.`gas` IS NOT OLD.`gas` OR
  NEW.`created_at` IS NOT OLD.`created_at` OR length(NEW.`signings`) < length(OLD.`signings`) OR
  substr(NEW.`signings`, 1, length(OLD.`signings`) - 1) IS NOT substr(OLD.`signings`, 1, length(OLD.`signings`) - 1)
BEGIN SELECT RAISE(ABORT, 'what was signed is kept'); END;
--> statement-breakpoint
CREATE TRIGGER `chain_transactions_are_not_deleted` BEFORE DELETE ON `chain_transactions`
BEGIN SELECT RAISE(ABORT, 'what was signed is kept'); END;
--> statement-breakpoint
CREATE TRIGGER `log_anchors_are_not_changed` BEFORE UPDATE ON `log_anchors`
BEGIN SELECT RAISE(ABORT, 'what was signed is kept'); END;
--> statement-breakpoint
CREATE TRIGGER `log_anchors_are_not_deleted` BEFORE DELETE ON `log_anchors`
BEGIN SELECT RAISE(ABORT, 'what was signed is kept'); END;
