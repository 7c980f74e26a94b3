-- What a person has attested is still compared with the chain, once it answers.
UPDATE `purchases` SET `next_check_at` = `ended_at` WHERE `known_by` = 'person';
--> statement-breakpoint
CREATE TRIGGER `purchases_keep_what_the_chain_said` BEFORE UPDATE OF `chain_said` ON `purchases`
WHEN NEW.`chain_said` IS NOT OLD.`chain_said`
  AND (OLD.`chain_said` IS NOT NULL OR NEW.`chain_said` NOT IN ('paid', 'unpaid') OR NEW.`known_by` IS NOT 'person')
BEGIN SELECT RAISE(ABORT, 'the chain answers once what a person has attested'); END;
