CREATE TRIGGER `spend_sessions_keep_their_limits`
BEFORE UPDATE OF `per_warrant_max`, `hourly_max`, `daily_max`, `payees`, `source_origins` ON `spend_sessions`
BEGIN SELECT RAISE(ABORT, 'the limits of a spend session are fixed'); END;
--> statement-breakpoint
CREATE TRIGGER `session_totals_keep_their_times` BEFORE UPDATE OF `session`, `held_at` ON `session_totals`
BEGIN SELECT RAISE(ABORT, 'what a session held is history'); END;
--> statement-breakpoint
CREATE TRIGGER `session_totals_are_not_deleted` BEFORE DELETE ON `session_totals`
BEGIN SELECT RAISE(ABORT, 'what a session held is history'); END;
--> statement-breakpoint
CREATE TRIGGER `session_totals_go_on` BEFORE INSERT ON `session_totals`
WHEN EXISTS (SELECT 1 FROM `session_totals` WHERE `session` = NEW.`session` AND `held_at` > NEW.`held_at`)
BEGIN SELECT RAISE(ABORT, 'what a session held is history'); END;
