CREATE TRIGGER `capsules_are_not_changed` BEFORE UPDATE ON `capsules`
BEGIN SELECT RAISE(ABORT, 'a capsule is not changed'); END;
--> statement-breakpoint
CREATE TRIGGER `capsule_parts_are_not_changed` BEFORE UPDATE ON `capsule_parts`
BEGIN SELECT RAISE(ABORT, 'the body in a capsule is not changed'); END;
--> statement-breakpoint
-- Who may sign for an origin is said once, and taken back once.
CREATE TRIGGER `source_keys_are_not_changed` BEFORE UPDATE ON `source_keys`
WHEN OLD.`removed_at` IS NOT NULL OR NEW.`id` IS NOT OLD.`id` OR NEW.`organisation_id` IS NOT OLD.`organisation_id`
  OR NEW.`origin` IS NOT OLD.`origin` OR NEW.`signer` IS NOT OLD.`signer` OR NEW.`created_at` IS NOT OLD.`created_at`
BEGIN SELECT RAISE(ABORT, 'a source key is removed once, and not changed'); END;
--> statement-breakpoint
CREATE TRIGGER `source_keys_are_not_deleted` BEFORE DELETE ON `source_keys`
BEGIN SELECT RAISE(ABORT, 'source keys are kept'); END;
