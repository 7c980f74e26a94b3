ALTER TABLE `auth_sessions` ADD `passkey_proved` integer DEFAULT false NOT NULL;--> statement-breakpoint
ALTER TABLE `organisations` ADD `second_factor` integer DEFAULT false NOT NULL;