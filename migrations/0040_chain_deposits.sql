CREATE TABLE `chain_transfers` (
	`watch` text NOT NULL,
	`hash` text NOT NULL,
	`ordinal` integer NOT NULL,
	`id` text NOT NULL,
	`status` text NOT NULL,
	`counterparty` text NOT NULL,
	`amount` integer NOT NULL,
	`block` integer,
	`block_hash` text,
	`deposit` text,
	`created_at` integer NOT NULL,
	`digest` integer,
	PRIMARY KEY(`watch`, `hash`, `ordinal`),
	FOREIGN KEY (`watch`) REFERENCES `treasury_watches`(`id`) ON UPDATE no action ON DELETE no action,
	FOREIGN KEY (`deposit`) REFERENCES `deposits`(`id`) ON UPDATE no action ON DELETE no action,
	CONSTRAINT "chain_transfers_amount" CHECK("chain_transfers"."amount" > 0 AND "chain_transfers"."amount" | 0 = "chain_transfers"."amount" AND "chain_transfers"."amount" > -9223372036854775808),
	CONSTRAINT "chain_transfers_ordinal" CHECK("chain_transfers"."ordinal" >= 0),
	CONSTRAINT "chain_transfers_status" CHECK(("chain_transfers"."status" = 'found' OR "chain_transfers"."status" = 'unassigned' OR "chain_transfers"."status" = 'credited' OR "chain_transfers"."status" = 'sent')),
	CONSTRAINT "chain_transfers_block" CHECK(("chain_transfers"."block" IS NULL) = ("chain_transfers"."block_hash" IS NULL)),
	CONSTRAINT "chain_transfers_credited" CHECK(("chain_transfers"."status" = 'credited') = ("chain_transfers"."deposit" IS NOT NULL))
);
--> statement-breakpoint
CREATE UNIQUE INDEX `chain_transfers_id_unique` ON `chain_transfers` (`id`);--> statement-breakpoint
CREATE INDEX `chain_transfers_by_block` ON `chain_transfers` (`watch`,`block`);--> statement-breakpoint
CREATE INDEX `chain_transfers_to_assign` ON `chain_transfers` (`watch`,`status`) WHERE "chain_transfers"."deposit" IS NULL AND "chain_transfers"."status" <> 'sent';--> statement-breakpoint
CREATE UNIQUE INDEX `chain_transfers_of_deposit` ON `chain_transfers` (`deposit`) WHERE "chain_transfers"."deposit" IS NOT NULL;--> statement-breakpoint
CREATE TABLE `deposit_senders` (
	`mode` text NOT NULL,
	`address` text NOT NULL,
	`organisation_id` text NOT NULL,
	`note` text,
	`created_at` integer NOT NULL,
	`digest` integer,
	PRIMARY KEY(`mode`, `address`),
	FOREIGN KEY (`organisation_id`) REFERENCES `organisations`(`id`) ON UPDATE no action ON DELETE no action,
	CONSTRAINT "deposit_senders_address" CHECK(length("deposit_senders"."address") = 42 AND "deposit_senders"."address" = lower("deposit_senders"."address")),
	CONSTRAINT "deposit_senders_mode" CHECK("deposit_senders"."mode" = 'sandbox' OR "deposit_senders"."mode" = 'live')
);
--> statement-breakpoint
CREATE INDEX `deposit_senders_of_organisation` ON `deposit_senders` (`organisation_id`,`mode`,`address`);--> statement-breakpoint
CREATE TABLE `treasury_watches` (
	`id` text PRIMARY KEY NOT NULL,
	`mode` text NOT NULL,
	`asset` text NOT NULL,
	`chain_id` integer NOT NULL,
	`token` text NOT NULL,
	`address` text NOT NULL,
	`first_block` integer NOT NULL,
	`first_hash` text NOT NULL,
	`opening` integer NOT NULL,
	`last_block` integer NOT NULL,
	`last_hash` text NOT NULL,
	`received` integer NOT NULL,
	`sent` integer NOT NULL,
	`reconciled_block` integer NOT NULL,
	`reconciled_hash` text NOT NULL,
	`balance` integer NOT NULL,
	`stopped` text,
	`created_at` integer NOT NULL,
	`digest` integer,
	CONSTRAINT "treasury_watches_chain" CHECK(("treasury_watches"."mode" = 'sandbox' AND "treasury_watches"."chain_id" IN (11155111, 11155420, 84532, 43113, 80002, 421614, 11142220, 11124, 1328, 51, 2201, 10143, 324705682, 1337, 31337)) OR ("treasury_watches"."mode" = 'live' AND "treasury_watches"."chain_id" NOT IN (11155111, 11155420, 84532, 43113, 80002, 421614, 11142220, 11124, 1328, 51, 2201, 10143, 324705682, 1337, 31337))),
	CONSTRAINT "treasury_watches_blocks" CHECK("treasury_watches"."first_block" >= 0 AND "treasury_watches"."first_block" <= "treasury_watches"."reconciled_block" AND "treasury_watches"."reconciled_block" <= "treasury_watches"."last_block"),
	CONSTRAINT "treasury_watches_sums" CHECK("treasury_watches"."opening" >= 0 AND "treasury_watches"."received" >= 0 AND "treasury_watches"."sent" >= 0 AND "treasury_watches"."balance" >= 0 AND "treasury_watches"."opening" | 0 = "treasury_watches"."opening" AND "treasury_watches"."opening" > -9223372036854775808 AND "treasury_watches"."received" | 0 = "treasury_watches"."received" AND "treasury_watches"."received" > -9223372036854775808 AND "treasury_watches"."sent" | 0 = "treasury_watches"."sent" AND "treasury_watches"."sent" > -9223372036854775808 AND "treasury_watches"."balance" | 0 = "treasury_watches"."balance" AND "treasury_watches"."balance" > -9223372036854775808),
	CONSTRAINT "treasury_watches_stopped" CHECK("treasury_watches"."stopped" IS NULL OR ("treasury_watches"."stopped" = 'balance_differs' OR "treasury_watches"."stopped" = 'asset_changed' OR "treasury_watches"."stopped" = 'chain_replaced' OR "treasury_watches"."stopped" = 'too_large'))
);
--> statement-breakpoint
CREATE UNIQUE INDEX `treasury_watches_by_wallet` ON `treasury_watches` (`chain_id`,`token`,`address`);