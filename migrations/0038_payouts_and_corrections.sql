CREATE TABLE `corrections` (
	`position` integer PRIMARY KEY NOT NULL,
	`id` text NOT NULL,
	`account` integer NOT NULL,
	`deposit` integer NOT NULL,
	`amount_before` integer NOT NULL,
	`amount_after` integer NOT NULL,
	`reason` text NOT NULL,
	`status` text NOT NULL,
	`proposed_by` text,
	`decided_by` text,
	`created_at` integer NOT NULL,
	`decided_at` integer,
	`digest` integer,
	CONSTRAINT "corrections_status" CHECK(("corrections"."status" = 'proposed' OR "corrections"."status" = 'recorded' OR "corrections"."status" = 'withdrawn')),
	CONSTRAINT "corrections_amounts" CHECK("corrections"."amount_before" >= 0 AND "corrections"."amount_after" >= 0 AND "corrections"."amount_before" <> "corrections"."amount_after" AND "corrections"."amount_before" | 0 = "corrections"."amount_before" AND "corrections"."amount_before" > -9223372036854775808 AND "corrections"."amount_after" | 0 = "corrections"."amount_after" AND "corrections"."amount_after" > -9223372036854775808),
	CONSTRAINT "corrections_decided" CHECK(("corrections"."decided_at" IS NULL) = ("corrections"."decided_by" IS NULL) AND ("corrections"."status" <> 'proposed' OR "corrections"."decided_at" IS NULL) AND ("corrections"."status" <> 'withdrawn' OR "corrections"."decided_at" IS NOT NULL)),
	CONSTRAINT "corrections_two_people" CHECK("corrections"."status" <> 'recorded' OR "corrections"."decided_by" IS NOT "corrections"."proposed_by" OR "corrections"."decided_by" IS NULL)
);
--> statement-breakpoint
CREATE UNIQUE INDEX `corrections_id_unique` ON `corrections` (`id`);--> statement-breakpoint
CREATE INDEX `corrections_by_account` ON `corrections` (`account`);--> statement-breakpoint
CREATE INDEX `corrections_of_deposit` ON `corrections` (`deposit`);--> statement-breakpoint
CREATE UNIQUE INDEX `corrections_one_proposed` ON `corrections` (`deposit`) WHERE "corrections"."status" = 'proposed';--> statement-breakpoint
CREATE TABLE `payees` (
	`position` integer PRIMARY KEY NOT NULL,
	`account` integer NOT NULL,
	`payee` text NOT NULL,
	`payable` integer NOT NULL,
	`submitted` integer NOT NULL,
	`paid_out` integer NOT NULL,
	CONSTRAINT "payees_not_negative" CHECK("payees"."payable" >= 0 AND "payees"."submitted" >= 0 AND "payees"."paid_out" >= 0),
	CONSTRAINT "payees_integers" CHECK("payees"."payable" | 0 = "payees"."payable" AND "payees"."payable" > -9223372036854775808 AND "payees"."submitted" | 0 = "payees"."submitted" AND "payees"."submitted" > -9223372036854775808 AND "payees"."paid_out" | 0 = "payees"."paid_out" AND "payees"."paid_out" > -9223372036854775808)
);
--> statement-breakpoint
CREATE UNIQUE INDEX `payees_by_name` ON `payees` (`account`,`payee`);--> statement-breakpoint
CREATE INDEX `payees_owed` ON `payees` (`account`) WHERE "payees"."payable" > 0;--> statement-breakpoint
CREATE TABLE `payouts` (
	`position` integer PRIMARY KEY NOT NULL,
	`id` text NOT NULL,
	`account` integer NOT NULL,
	`payee` integer NOT NULL,
	`amount` integer NOT NULL,
	`rail` text NOT NULL,
	`status` text NOT NULL,
	`version` integer NOT NULL,
	`reference` text,
	`reason` text,
	`created_at` integer NOT NULL,
	`ended_at` integer,
	`digest` integer,
	CONSTRAINT "payouts_amount" CHECK("payouts"."amount" > 0 AND "payouts"."amount" | 0 = "payouts"."amount" AND "payouts"."amount" > -9223372036854775808),
	CONSTRAINT "payouts_status" CHECK(("payouts"."status" = 'owed' OR "payouts"."status" = 'submitted' OR "payouts"."status" = 'paid' OR "payouts"."status" = 'failed')),
	CONSTRAINT "payouts_version" CHECK("payouts"."version" >= 1),
	CONSTRAINT "payouts_ended" CHECK(("payouts"."status" = 'submitted') = ("payouts"."ended_at" IS NULL)),
	CONSTRAINT "payouts_reference" CHECK("payouts"."status" <> 'paid' OR "payouts"."reference" IS NOT NULL),
	CONSTRAINT "payouts_reason" CHECK(("payouts"."status" = 'failed') = ("payouts"."reason" IS NOT NULL))
);
--> statement-breakpoint
CREATE UNIQUE INDEX `payouts_id_unique` ON `payouts` (`id`);--> statement-breakpoint
CREATE INDEX `payouts_by_status` ON `payouts` (`account`,`status`);--> statement-breakpoint
CREATE INDEX `payouts_of_payee` ON `payouts` (`payee`,`status`);--> statement-breakpoint
ALTER TABLE `accounts` ADD `payable` integer DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE `accounts` ADD `submitted` integer DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE `postings` ADD `payable` integer DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE `postings` ADD `submitted` integer DEFAULT 0 NOT NULL;