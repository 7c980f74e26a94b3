CREATE TABLE `notice_settings` (
	`user_id` text PRIMARY KEY NOT NULL,
	`organisation_id` text NOT NULL,
	`email` integer NOT NULL,
	`sandbox` integer NOT NULL,
	`from_minute` integer,
	`until_minute` integer,
	`time_zone` text NOT NULL,
	FOREIGN KEY (`user_id`) REFERENCES `users`(`id`) ON UPDATE no action ON DELETE no action,
	FOREIGN KEY (`organisation_id`) REFERENCES `organisations`(`id`) ON UPDATE no action ON DELETE no action
);
--> statement-breakpoint
CREATE TABLE `notices` (
	`id` text PRIMARY KEY NOT NULL,
	`organisation_id` text NOT NULL,
	`mode` text NOT NULL,
	`user_id` text NOT NULL,
	`channel` text NOT NULL,
	`subject` text NOT NULL,
	`about` text NOT NULL,
	`encrypted_link` text,
	`status` text NOT NULL,
	`attempts` integer NOT NULL,
	`answer` text,
	`duration_ms` integer,
	`claimed_until` integer,
	`next_attempt_at` integer,
	`created_at` integer NOT NULL,
	FOREIGN KEY (`organisation_id`) REFERENCES `organisations`(`id`) ON UPDATE no action ON DELETE no action,
	FOREIGN KEY (`user_id`) REFERENCES `users`(`id`) ON UPDATE no action ON DELETE no action,
	CONSTRAINT "notices_mode" CHECK(("notices"."mode" = 'sandbox' OR "notices"."mode" = 'live')),
	CONSTRAINT "notices_attempts" CHECK("notices"."attempts" BETWEEN 0 AND 6),
	CONSTRAINT "notices_work" CHECK(("notices"."status" IN ('pending', 'failed')) = (("notices"."claimed_until" IS NOT NULL) + ("notices"."next_attempt_at" IS NOT NULL) = 1))
);
--> statement-breakpoint
CREATE INDEX `notices_due` ON `notices` (`organisation_id`,`mode`,`next_attempt_at`) WHERE "notices"."next_attempt_at" IS NOT NULL;--> statement-breakpoint
CREATE INDEX `notices_next` ON `notices` (`next_attempt_at`) WHERE "notices"."next_attempt_at" IS NOT NULL;--> statement-breakpoint
CREATE INDEX `notices_claimed` ON `notices` (`claimed_until`) WHERE "notices"."claimed_until" IS NOT NULL;--> statement-breakpoint
CREATE INDEX `notices_by_subject` ON `notices` (`organisation_id`,`subject`,`created_at`);--> statement-breakpoint
CREATE INDEX `notices_by_user` ON `notices` (`user_id`,`created_at`);--> statement-breakpoint
CREATE INDEX `notices_by_creation` ON `notices` (`created_at`);--> statement-breakpoint
CREATE TABLE `planned_notices` (
	`id` text PRIMARY KEY NOT NULL,
	`organisation_id` text NOT NULL,
	`mode` text NOT NULL,
	`made` integer NOT NULL,
	`due_at` integer NOT NULL,
	`created_at` integer NOT NULL,
	FOREIGN KEY (`organisation_id`) REFERENCES `organisations`(`id`) ON UPDATE no action ON DELETE no action,
	CONSTRAINT "planned_notices_mode" CHECK(("planned_notices"."mode" = 'sandbox' OR "planned_notices"."mode" = 'live'))
);
--> statement-breakpoint
CREATE INDEX `planned_notices_due` ON `planned_notices` (`organisation_id`,`mode`,`due_at`);--> statement-breakpoint
CREATE INDEX `planned_notices_next` ON `planned_notices` (`due_at`);