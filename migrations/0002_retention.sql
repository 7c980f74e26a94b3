ALTER TABLE `instances` ADD `retention_at` integer;--> statement-breakpoint
ALTER TABLE `instances` ADD `idempotency_days` integer;