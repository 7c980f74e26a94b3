-- An entry of the trace is never changed, but for its leaf: it gets one later, once, and the next in the log's order.
DROP TRIGGER `trace_is_not_changed`;
--> statement-breakpoint
CREATE TRIGGER `trace_is_not_changed` BEFORE UPDATE ON `trace`
WHEN NEW.`position` IS NOT OLD.`position` OR NEW.`warrant` IS NOT OLD.`warrant` OR NEW.`sequence` IS NOT OLD.`sequence` OR
  NEW.`from_state` IS NOT OLD.`from_state` OR NEW.`to_state` IS NOT OLD.`to_state` OR NEW.`actor_kind` IS NOT
  OLD.`actor_kind` OR NEW.`actor_id` IS NOT OLD.`actor_id` OR NEW.`recorded_at` IS NOT OLD.`recorded_at` OR
  NEW.`encoding` IS NOT OLD.`encoding` OR NEW.`schema_hashes` IS NOT OLD.`schema_hashes` OR NEW.`check_id` IS NOT
  OLD.`check_id` OR NEW.`entry_hash` IS NOT OLD.`entry_hash` OR NEW.`event_id` IS NOT OLD.`event_id`
BEGIN SELECT RAISE(ABORT, 'the trace is append-only'); END;
--> statement-breakpoint
CREATE TRIGGER `trace_gets_a_leaf_once` BEFORE UPDATE OF `leaf_index` ON `trace`
WHEN OLD.`leaf_index` IS NOT NULL OR NEW.`leaf_index` IS NOT
  (SELECT coalesce(max(`leaf_index`), -1) + 1 FROM `trace` WHERE `leaf_index` IS NOT NULL)
BEGIN SELECT RAISE(ABORT, 'an entry becomes the next leaf of the log, once'); END;
--> statement-breakpoint
CREATE TRIGGER `trace_begins_without_a_leaf` AFTER INSERT ON `trace` WHEN NEW.`leaf_index` IS NOT NULL
BEGIN SELECT RAISE(ROLLBACK, 'an entry becomes a leaf of the log later'); END;
--> statement-breakpoint
CREATE TRIGGER `log_tiles_only_grow` BEFORE UPDATE ON `log_tiles`
WHEN NEW.`level` <> OLD.`level` OR NEW.`tile` <> OLD.`tile` OR length(NEW.`hashes`) <= length(OLD.`hashes`)
  OR substr(NEW.`hashes`, 1, length(OLD.`hashes`)) <> OLD.`hashes`
BEGIN SELECT RAISE(ABORT, 'the log only grows'); END;
--> statement-breakpoint
CREATE TRIGGER `log_tiles_are_not_deleted` BEFORE DELETE ON `log_tiles`
BEGIN SELECT RAISE(ABORT, 'the log only grows'); END;
--> statement-breakpoint
-- What was signed of a log must not be contradicted by what is signed later.
CREATE TRIGGER `log_checkpoints_go_on` BEFORE INSERT ON `log_checkpoints`
WHEN NEW.`number` IS NOT (SELECT coalesce(max(`number`), 0) + 1 FROM `log_checkpoints`)
  OR NEW.`size` <= (SELECT coalesce(max(`size`), 0) FROM `log_checkpoints`)
  OR NEW.`size` > (SELECT coalesce(max(`leaf_index`), -1) + 1 FROM `trace` WHERE `leaf_index` IS NOT NULL)
BEGIN SELECT RAISE(ABORT, 'a checkpoint is of a longer log than the one before it'); END;
--> statement-breakpoint
CREATE TRIGGER `log_checkpoints_are_not_changed` BEFORE UPDATE ON `log_checkpoints`
BEGIN SELECT RAISE(ABORT, 'what was signed is kept'); END;
--> statement-breakpoint
CREATE TRIGGER `log_checkpoints_are_not_deleted` BEFORE DELETE ON `log_checkpoints`
BEGIN SELECT RAISE(ABORT, 'what was signed is kept'); END;
