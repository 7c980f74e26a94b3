DROP INDEX `auth_sessions_by_user`;--> statement-breakpoint
ALTER TABLE `auth_sessions` ADD `network` text;--> statement-breakpoint
ALTER TABLE `auth_sessions` ADD `agent` text;--> statement-breakpoint
ALTER TABLE `auth_sessions` ADD `last_used_at` integer;--> statement-breakpoint
CREATE INDEX `auth_sessions_by_user` ON `auth_sessions` (`user_id`,`expires_at`);