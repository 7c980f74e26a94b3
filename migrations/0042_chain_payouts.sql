CREATE TABLE `payout_transactions` (
	`chain_id` integer NOT NULL,
	`wallet` text NOT NULL,
	`nonce` integer NOT NULL,
	`payout` integer NOT NULL,
	`account` integer NOT NULL,
	`rail` text NOT NULL,
	`token` text NOT NULL,
	`by_person` integer NOT NULL,
	`judged` integer NOT NULL,
	`problem` text,
	`recorded_at` integer NOT NULL,
	`digest` integer,
	PRIMARY KEY(`chain_id`, `wallet`, `nonce`),
	CONSTRAINT "payout_transactions_rail" CHECK(("payout_transactions"."rail" = 'sandbox_evm' OR "payout_transactions"."rail" = 'live_evm')),
	CONSTRAINT "payout_transactions_chain" CHECK(("payout_transactions"."rail" = 'sandbox_evm') = ("payout_transactions"."chain_id" IN (11155111, 11155420, 84532, 43113, 80002, 421614, 11142220, 11124, 1328, 51, 2201, 10143, 324705682, 1337, 31337))),
	CONSTRAINT "payout_transactions_flags" CHECK(("payout_transactions"."by_person" = 0 OR "payout_transactions"."by_person" = 1) AND ("payout_transactions"."judged" = 0 OR "payout_transactions"."judged" = 1))
);
--> statement-breakpoint
CREATE UNIQUE INDEX `payout_transactions_payout_unique` ON `payout_transactions` (`payout`);--> statement-breakpoint
CREATE INDEX `payout_transactions_to_judge` ON `payout_transactions` (`chain_id`,`wallet`,`nonce`) WHERE "payout_transactions"."judged" = 0;--> statement-breakpoint
CREATE INDEX `payout_transactions_in_limits` ON `payout_transactions` (`account`,`recorded_at`) WHERE "payout_transactions"."by_person" = 0;--> statement-breakpoint
CREATE TABLE `payout_waits` (
	`payee` integer PRIMARY KEY NOT NULL,
	`code` text,
	`detail` text,
	`until` integer,
	`released` integer,
	`since` integer NOT NULL,
	`digest` integer,
	CONSTRAINT "payout_waits_code" CHECK("payout_waits"."code" IS NULL OR ("payout_waits"."code" = 'above_payout_limit' OR "payout_waits"."code" = 'above_day_limit' OR "payout_waits"."code" = 'failed' OR "payout_waits"."code" = 'token_refuses' OR "payout_waits"."code" = 'no_money' OR "payout_waits"."code" = 'released')),
	CONSTRAINT "payout_waits_released" CHECK("payout_waits"."released" IS NULL OR ("payout_waits"."released" > 0 AND "payout_waits"."released" | 0 = "payout_waits"."released" AND "payout_waits"."released" > -9223372036854775808))
);
--> statement-breakpoint
CREATE TABLE `rail_states` (
	`mode` text NOT NULL,
	`asset` text NOT NULL,
	`chain_id` integer NOT NULL,
	`wallet` text NOT NULL,
	`token` text NOT NULL,
	`accepted_nonce` integer,
	`seen_nonce` integer,
	`code` text,
	`detail` text,
	`since` integer,
	`digest` integer,
	PRIMARY KEY(`mode`, `asset`),
	CONSTRAINT "rail_states_code" CHECK("rail_states"."code" IS NULL OR ("rail_states"."code" = 'away' OR "rail_states"."code" = 'no_gas' OR "rail_states"."code" = 'fees' OR "rail_states"."code" = 'refused' OR "rail_states"."code" = 'unknown_transactions' OR "rail_states"."code" = 'other_amount' OR "rail_states"."code" = 'no_treasury')),
	CONSTRAINT "rail_states_since" CHECK(("rail_states"."code" IS NULL) = ("rail_states"."since" IS NULL)),
	CONSTRAINT "rail_states_chain" CHECK(("rail_states"."mode" = 'sandbox') = ("rail_states"."chain_id" IN (11155111, 11155420, 84532, 43113, 80002, 421614, 11142220, 11124, 1328, 51, 2201, 10143, 324705682, 1337, 31337)))
);
