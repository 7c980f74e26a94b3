CREATE TABLE `content_sums` (
	`scope` integer NOT NULL,
	`bought` integer NOT NULL,
	`bytes` integer NOT NULL,
	PRIMARY KEY(`scope`, `bought`),
	CONSTRAINT "content_sums_not_negative" CHECK("content_sums"."bytes" >= 0)
);
--> statement-breakpoint
DROP INDEX `idempotency_keys_of_content`;--> statement-breakpoint
DROP INDEX `purchases_that_need_content`;--> statement-breakpoint
ALTER TABLE `purchases` ADD `content_bytes` integer DEFAULT 0 NOT NULL;--> statement-breakpoint
CREATE INDEX `purchases_that_keep_content` ON `purchases` (`response_hash`) WHERE "purchases"."content_bytes" > 0;--> statement-breakpoint
CREATE INDEX `purchases_with_bought_content` ON `purchases` (`created_at`) WHERE "purchases"."content_bytes" > 0 AND "purchases"."warrant_id" IS NOT NULL AND "purchases"."phase" = 'ended';--> statement-breakpoint
CREATE INDEX `purchases_with_free_content` ON `purchases` (`ended_at`) WHERE "purchases"."content_bytes" > 0 AND "purchases"."warrant_id" IS NULL;--> statement-breakpoint
CREATE INDEX `purchases_with_free_content_of_scope` ON `purchases` (`organisation_id`,`mode`) WHERE "purchases"."content_bytes" > 0 AND "purchases"."warrant_id" IS NULL;