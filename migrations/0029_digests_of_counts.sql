ALTER TABLE `warrant_counts` ADD `digest` integer;--> statement-breakpoint
ALTER TABLE `content_sums` ADD `digest` integer;