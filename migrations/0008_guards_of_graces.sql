CREATE TRIGGER `warrants_open_without_a_grace` BEFORE INSERT ON `warrants` WHEN NEW.`grace_until` IS NOT NULL
BEGIN SELECT RAISE(ABORT, 'a grace comes from an interrupted check'); END;
--> statement-breakpoint
CREATE TRIGGER `warrants_grace_is_short` BEFORE UPDATE ON `warrants`
WHEN NEW.`grace_until` IS NOT NULL AND NOT (
  typeof(NEW.`grace_until`) = 'integer' AND NEW.`state` IN ('held', 'verifying', 'frozen')
  AND NEW.`grace_until` > NEW.`deadline` AND NEW.`grace_until` <= NEW.`deadline` + 3600000
)
BEGIN SELECT RAISE(ABORT, 'a grace ends within an hour after the deadline, and is for what awaits a check'); END;
