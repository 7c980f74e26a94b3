CREATE TABLE `messaging_accounts` (
	`user_id` text PRIMARY KEY NOT NULL,
	`organisation_id` text NOT NULL,
	`chat_id` text NOT NULL,
	`username` text,
	`linked_at` integer NOT NULL,
	FOREIGN KEY (`user_id`) REFERENCES `users`(`id`) ON UPDATE no action ON DELETE no action,
	FOREIGN KEY (`organisation_id`) REFERENCES `organisations`(`id`) ON UPDATE no action ON DELETE no action
);
--> statement-breakpoint
CREATE UNIQUE INDEX `messaging_accounts_by_chat` ON `messaging_accounts` (`chat_id`);--> statement-breakpoint
CREATE TABLE `messaging_codes` (
	`user_id` text PRIMARY KEY NOT NULL,
	`organisation_id` text NOT NULL,
	`code_hash` text NOT NULL,
	`expires_at` integer NOT NULL,
	FOREIGN KEY (`user_id`) REFERENCES `users`(`id`) ON UPDATE no action ON DELETE no action,
	FOREIGN KEY (`organisation_id`) REFERENCES `organisations`(`id`) ON UPDATE no action ON DELETE no action
);
--> statement-breakpoint
CREATE UNIQUE INDEX `messaging_codes_by_hash` ON `messaging_codes` (`code_hash`);--> statement-breakpoint
CREATE INDEX `messaging_codes_by_end` ON `messaging_codes` (`expires_at`);--> statement-breakpoint
DROP INDEX `notices_due`;--> statement-breakpoint
CREATE INDEX `notices_due` ON `notices` (`organisation_id`,`mode`,`channel`,`next_attempt_at`) WHERE "notices"."next_attempt_at" IS NOT NULL;--> statement-breakpoint
ALTER TABLE `organisations` ADD `messaging_decisions` integer DEFAULT false NOT NULL;--> statement-breakpoint
ALTER TABLE `notice_settings` ADD `messaging` integer DEFAULT true NOT NULL;