ALTER TABLE `purchases` ADD `chain_said` text;--> statement-breakpoint
CREATE INDEX `purchases_that_chains_confirm` ON `purchases` (`chain_said`,`known`) WHERE "purchases"."chain_said" IS NOT NULL;