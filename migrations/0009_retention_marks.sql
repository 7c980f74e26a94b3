ALTER TABLE `instances` ADD `retention_marks` text DEFAULT '[]' NOT NULL;--> statement-breakpoint
ALTER TABLE `instances` DROP COLUMN `retention_at`;