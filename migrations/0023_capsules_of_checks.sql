CREATE TABLE `capsule_parts` (
	`hash` text NOT NULL,
	`part` integer NOT NULL,
	`bytes` blob NOT NULL,
	PRIMARY KEY(`hash`, `part`)
);
--> statement-breakpoint
CREATE TABLE `capsules` (
	`position` integer PRIMARY KEY NOT NULL,
	`id` text NOT NULL,
	`organisation_id` text NOT NULL,
	`mode` text NOT NULL,
	`facts` text NOT NULL,
	`stored_hash` text,
	`parts` integer NOT NULL,
	`bytes` integer NOT NULL,
	`bytes_until` integer NOT NULL,
	`created_at` integer NOT NULL,
	FOREIGN KEY (`organisation_id`) REFERENCES `organisations`(`id`) ON UPDATE no action ON DELETE no action,
	CONSTRAINT "capsules_mode" CHECK(("capsules"."mode" = 'sandbox' OR "capsules"."mode" = 'live')),
	CONSTRAINT "capsules_bytes" CHECK("capsules"."bytes" > 0 AND "capsules"."bytes_until" >= "capsules"."bytes" AND "capsules"."parts" >= 0)
);
--> statement-breakpoint
CREATE UNIQUE INDEX `capsules_id_unique` ON `capsules` (`id`);--> statement-breakpoint
CREATE INDEX `capsules_of_scope` ON `capsules` (`organisation_id`,`mode`);--> statement-breakpoint
CREATE INDEX `capsules_by_creation` ON `capsules` (`created_at`);--> statement-breakpoint
CREATE INDEX `capsules_by_stored_hash` ON `capsules` (`stored_hash`) WHERE "capsules"."stored_hash" IS NOT NULL;--> statement-breakpoint
CREATE TABLE `source_keys` (
	`id` text PRIMARY KEY NOT NULL,
	`organisation_id` text NOT NULL,
	`origin` text NOT NULL,
	`signer` text NOT NULL,
	`created_at` integer NOT NULL,
	`removed_at` integer,
	FOREIGN KEY (`organisation_id`) REFERENCES `organisations`(`id`) ON UPDATE no action ON DELETE no action
);
--> statement-breakpoint
CREATE INDEX `source_keys_by_origin` ON `source_keys` (`organisation_id`,`origin`) WHERE "source_keys"."removed_at" IS NULL;--> statement-breakpoint
ALTER TABLE `instances` ADD `capsule_days` integer;--> statement-breakpoint
ALTER TABLE `checks` ADD `evaluator_version` integer;--> statement-breakpoint
ALTER TABLE `checks` ADD `signed_by` text;--> statement-breakpoint
ALTER TABLE `checks` ADD `capsule_hash` blob;