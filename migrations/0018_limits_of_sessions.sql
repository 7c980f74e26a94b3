CREATE TABLE `session_totals` (
	`session` integer NOT NULL,
	`held_at` integer NOT NULL,
	`total` integer NOT NULL,
	PRIMARY KEY(`session`, `held_at`),
	CONSTRAINT "session_totals_total" CHECK("session_totals"."total" >= 0 AND "session_totals"."total" | 0 = "session_totals"."total" AND "session_totals"."total" > -9223372036854775808)
);
--> statement-breakpoint
ALTER TABLE `spend_sessions` ADD `amount_held` integer DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE `spend_sessions` ADD `held_at` integer;--> statement-breakpoint
ALTER TABLE `spend_sessions` ADD `per_warrant_max` integer;--> statement-breakpoint
ALTER TABLE `spend_sessions` ADD `hourly_max` integer;--> statement-breakpoint
ALTER TABLE `spend_sessions` ADD `daily_max` integer;--> statement-breakpoint
ALTER TABLE `spend_sessions` ADD `payees` text;--> statement-breakpoint
ALTER TABLE `spend_sessions` ADD `source_origins` text;