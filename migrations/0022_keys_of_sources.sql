CREATE TABLE `source_keys` (
	`id` text PRIMARY KEY NOT NULL,
	`organisation_id` text NOT NULL,
	`origin` text NOT NULL,
	`jwk` text NOT NULL,
	`created_at` integer NOT NULL,
	`removed_at` integer,
	FOREIGN KEY (`organisation_id`) REFERENCES `organisations`(`id`) ON UPDATE no action ON DELETE no action
);
--> statement-breakpoint
CREATE INDEX `source_keys_by_origin` ON `source_keys` (`organisation_id`,`origin`) WHERE "source_keys"."removed_at" IS NULL;