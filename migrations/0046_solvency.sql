CREATE TABLE `solvency_statements` (
	`number` integer PRIMARY KEY NOT NULL,
	`note` text NOT NULL,
	`seed` blob NOT NULL,
	`entry_hash` blob NOT NULL,
	`leaf_index` integer,
	`digest` integer
);
--> statement-breakpoint
CREATE UNIQUE INDEX `solvency_statements_by_leaf` ON `solvency_statements` (`leaf_index`) WHERE "solvency_statements"."leaf_index" IS NOT NULL;--> statement-breakpoint
CREATE INDEX `solvency_statements_without_leaf` ON `solvency_statements` (`number`) WHERE "solvency_statements"."leaf_index" IS NULL;