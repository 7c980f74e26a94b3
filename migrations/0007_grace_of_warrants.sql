DROP INDEX `warrants_overdue`;--> statement-breakpoint
ALTER TABLE `warrants` ADD `grace_until` integer;--> statement-breakpoint
CREATE INDEX `warrants_frozen_in_grace` ON `warrants` (`grace_until`) WHERE "warrants"."state" = 'frozen' AND "warrants"."grace_until" IS NOT NULL;--> statement-breakpoint
CREATE INDEX `warrants_overdue` ON `warrants` (CASE WHEN "grace_until" IS NULL THEN "deadline" ELSE "grace_until" END) WHERE "warrants"."state" = 'held';