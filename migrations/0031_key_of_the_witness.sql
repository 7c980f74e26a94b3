ALTER TABLE `instances` ADD `witness_key` text;--> statement-breakpoint
ALTER TABLE `instances` ADD `lost_witness_keys` text DEFAULT '[]' NOT NULL;