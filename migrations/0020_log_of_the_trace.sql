CREATE TABLE `log_checkpoints` (
	`number` integer PRIMARY KEY NOT NULL,
	`size` integer NOT NULL,
	`root` blob NOT NULL,
	`note` text NOT NULL
);
--> statement-breakpoint
CREATE UNIQUE INDEX `log_checkpoints_size_unique` ON `log_checkpoints` (`size`);--> statement-breakpoint
CREATE TABLE `log_tiles` (
	`level` integer NOT NULL,
	`tile` integer NOT NULL,
	`hashes` blob NOT NULL,
	PRIMARY KEY(`level`, `tile`),
	CONSTRAINT "log_tiles_place" CHECK("log_tiles"."level" >= 0 AND "log_tiles"."tile" >= 0),
	CONSTRAINT "log_tiles_hashes" CHECK(length("log_tiles"."hashes") % 32 = 0 AND length("log_tiles"."hashes") BETWEEN 32 AND 8192)
);
--> statement-breakpoint
ALTER TABLE `trace` ADD `leaf_index` integer;--> statement-breakpoint
CREATE UNIQUE INDEX `trace_by_leaf` ON `trace` (`leaf_index`) WHERE "trace"."leaf_index" IS NOT NULL;--> statement-breakpoint
CREATE INDEX `trace_without_leaf` ON `trace` (`position`) WHERE "trace"."leaf_index" IS NULL;