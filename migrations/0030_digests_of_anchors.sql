ALTER TABLE `chain_transactions` ADD `digest` integer;--> statement-breakpoint
ALTER TABLE `log_anchors` ADD `digest` integer;