CREATE TABLE `chain_transactions` (
	`chain_id` integer NOT NULL,
	`wallet` text NOT NULL,
	`nonce` integer NOT NULL,
	`to` text NOT NULL,
	`data` text NOT NULL,
	`gas` integer NOT NULL,
	`signings` text NOT NULL,
	`state` text NOT NULL,
	`block` integer,
	`mined_hash` text,
	`created_at` integer NOT NULL,
	PRIMARY KEY(`chain_id`, `wallet`, `nonce`),
	CONSTRAINT "chain_transactions_state" CHECK(("chain_transactions"."state" = 'open' OR "chain_transactions"."state" = 'confirmed' OR "chain_transactions"."state" = 'given_up')),
	CONSTRAINT "chain_transactions_confirmed" CHECK(("chain_transactions"."state" = 'confirmed') = ("chain_transactions"."block" IS NOT NULL) AND ("chain_transactions"."block" IS NULL) = ("chain_transactions"."mined_hash" IS NULL)),
	CONSTRAINT "chain_transactions_signed" CHECK(json_array_length("chain_transactions"."signings") > 0),
	CONSTRAINT "chain_transactions_numbers" CHECK("chain_transactions"."nonce" >= 0 AND "chain_transactions"."gas" > 0)
);
--> statement-breakpoint
CREATE INDEX `chain_transactions_open` ON `chain_transactions` (`chain_id`,`wallet`,`nonce`) WHERE "chain_transactions"."state" = 'open';--> statement-breakpoint
CREATE TABLE `log_anchors` (
	`chain_id` integer NOT NULL,
	`wallet` text NOT NULL,
	`nonce` integer NOT NULL,
	`checkpoint` integer NOT NULL,
	`size` integer NOT NULL,
	`root` blob NOT NULL,
	PRIMARY KEY(`chain_id`, `wallet`, `nonce`)
);
--> statement-breakpoint
CREATE INDEX `log_anchors_by_size` ON `log_anchors` (`size`);