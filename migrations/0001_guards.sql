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
CREATE TRIGGER `postings_of_a_known_deposit` BEFORE INSERT ON `postings`
WHEN NEW.`deposit_id` IS NOT NULL AND NOT EXISTS (
  SELECT 1 FROM `deposits` WHERE `id` = NEW.`deposit_id` AND `organisation_id` = NEW.`organisation_id`
    AND `mode` = NEW.`mode` AND `asset` = NEW.`asset` AND `amount` = NEW.`available`
)
BEGIN
  SELECT RAISE(ABORT, 'a posting belongs to a deposit of the same organisation, mode, asset and amount');
END;
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
  `spec`, `spec_hash`, `policy_id`, `rules_hash`, `deadline`, `opened_at` ON `warrants`
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
