-- Statements of solvency are leaves of the log beside the entries of the trace. The next leaf follows those of both.
DROP TRIGGER `trace_gets_a_leaf_once`;
--> statement-breakpoint
CREATE TRIGGER `trace_gets_a_leaf_once` BEFORE UPDATE OF `leaf_index` ON `trace`
WHEN OLD.`leaf_index` IS NOT NULL OR NEW.`leaf_index` IS NOT max(
  (SELECT coalesce(max(`leaf_index`), -1) + 1 FROM `trace` WHERE `leaf_index` IS NOT NULL),
  (SELECT coalesce(max(`leaf_index`), -1) + 1 FROM `solvency_statements` WHERE `leaf_index` IS NOT NULL)
)
BEGIN SELECT RAISE(ABORT, 'an entry becomes the next leaf of the log, once'); END;
--> statement-breakpoint
CREATE TRIGGER `solvency_statements_get_a_leaf_once` BEFORE UPDATE OF `leaf_index` ON `solvency_statements`
WHEN OLD.`leaf_index` IS NOT NULL OR NEW.`leaf_index` IS NOT max(
  (SELECT coalesce(max(`leaf_index`), -1) + 1 FROM `trace` WHERE `leaf_index` IS NOT NULL),
  (SELECT coalesce(max(`leaf_index`), -1) + 1 FROM `solvency_statements` WHERE `leaf_index` IS NOT NULL)
)
BEGIN SELECT RAISE(ABORT, 'a statement becomes the next leaf of the log, once'); END;
--> statement-breakpoint
CREATE TRIGGER `solvency_statements_go_on` BEFORE INSERT ON `solvency_statements`
WHEN NEW.`number` IS NOT (SELECT coalesce(max(`number`), 0) + 1 FROM `solvency_statements`) OR NEW.`leaf_index` IS NOT NULL
BEGIN SELECT RAISE(ABORT, 'a statement follows the one before it, and becomes a leaf of the log later'); END;
--> statement-breakpoint
CREATE TRIGGER `solvency_statements_are_not_changed`
BEFORE UPDATE OF `number`, `rowid`, `oid`, `_rowid_`, `note`, `seed`, `entry_hash`, `digest` ON `solvency_statements`
BEGIN SELECT RAISE(ABORT, 'what was signed is kept'); END;
--> statement-breakpoint
CREATE TRIGGER `solvency_statements_are_not_deleted` BEFORE DELETE ON `solvency_statements`
BEGIN SELECT RAISE(ABORT, 'what was signed is kept'); END;
--> statement-breakpoint
DROP TRIGGER `log_checkpoints_go_on`;
--> statement-breakpoint
-- What was signed of a log must not be contradicted by what is signed later.
CREATE TRIGGER `log_checkpoints_go_on` BEFORE INSERT ON `log_checkpoints`
WHEN NEW.`number` IS NOT (SELECT coalesce(max(`number`), 0) + 1 FROM `log_checkpoints`)
  OR NEW.`size` <= (SELECT coalesce(max(`size`), 0) FROM `log_checkpoints`)
  OR NEW.`size` > max(
    (SELECT coalesce(max(`leaf_index`), -1) + 1 FROM `trace` WHERE `leaf_index` IS NOT NULL),
    (SELECT coalesce(max(`leaf_index`), -1) + 1 FROM `solvency_statements` WHERE `leaf_index` IS NOT NULL)
  )
BEGIN SELECT RAISE(ABORT, 'a checkpoint is of a longer log than the one before it'); END;
