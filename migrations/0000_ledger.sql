CREATE TABLE `agents` (
	`position` integer PRIMARY KEY NOT NULL,
	`id` text NOT NULL,
	`organisation_id` text NOT NULL,
	`mode` text NOT NULL,
	`name` text NOT NULL,
	`identity` text NOT NULL,
	`status` text NOT NULL,
	`failure_budget` integer NOT NULL,
	`failure_count` integer NOT NULL,
	`must_be_named` integer NOT NULL,
	`created_at` integer NOT NULL,
	FOREIGN KEY (`organisation_id`) REFERENCES `organisations`(`id`) ON UPDATE no action ON DELETE no action,
	CONSTRAINT "agents_mode" CHECK(("agents"."mode" = 'sandbox' OR "agents"."mode" = 'live')),
	CONSTRAINT "agents_status" CHECK(("agents"."status" = 'active' OR "agents"."status" = 'paused' OR "agents"."status" = 'killed')),
	CONSTRAINT "agents_failures" CHECK("agents"."failure_budget" > 0 AND "agents"."failure_count" >= 0)
);
--> statement-breakpoint
CREATE UNIQUE INDEX `agents_id_unique` ON `agents` (`id`);--> statement-breakpoint
CREATE INDEX `agents_by_organisation` ON `agents` (`organisation_id`,`mode`,`id`);--> statement-breakpoint
CREATE TABLE `api_keys` (
	`id` text PRIMARY KEY NOT NULL,
	`organisation_id` text NOT NULL,
	`agent_id` text NOT NULL,
	`mode` text NOT NULL,
	`secret_hash` text NOT NULL,
	`last_four` text NOT NULL,
	`created_at` integer NOT NULL,
	`expires_at` integer,
	`last_used_at` integer,
	`revoked_at` integer,
	FOREIGN KEY (`organisation_id`) REFERENCES `organisations`(`id`) ON UPDATE no action ON DELETE no action,
	FOREIGN KEY (`agent_id`) REFERENCES `agents`(`id`) ON UPDATE no action ON DELETE no action,
	CONSTRAINT "api_keys_mode" CHECK(("api_keys"."mode" = 'sandbox' OR "api_keys"."mode" = 'live'))
);
--> statement-breakpoint
CREATE UNIQUE INDEX `api_keys_by_hash` ON `api_keys` (`secret_hash`);--> statement-breakpoint
CREATE INDEX `api_keys_by_organisation` ON `api_keys` (`organisation_id`,`mode`,`id`);--> statement-breakpoint
CREATE TABLE `audit_entries` (
	`id` text PRIMARY KEY NOT NULL,
	`organisation_id` text NOT NULL,
	`actor_kind` text NOT NULL,
	`actor_id` text,
	`action` text NOT NULL,
	`subject` text NOT NULL,
	`before` text,
	`after` text,
	`recorded_at` integer NOT NULL,
	FOREIGN KEY (`organisation_id`) REFERENCES `organisations`(`id`) ON UPDATE no action ON DELETE no action,
	CONSTRAINT "audit_entries_actor" CHECK(("audit_entries"."actor_kind" = 'machine') = ("audit_entries"."actor_id" IS NULL))
);
--> statement-breakpoint
CREATE INDEX `audit_entries_by_organisation` ON `audit_entries` (`organisation_id`,`id`);--> statement-breakpoint
CREATE TABLE `auth_sessions` (
	`token_hash` text PRIMARY KEY NOT NULL,
	`user_id` text NOT NULL,
	`mode` text NOT NULL,
	`created_at` integer NOT NULL,
	`expires_at` integer NOT NULL,
	FOREIGN KEY (`user_id`) REFERENCES `users`(`id`) ON UPDATE no action ON DELETE no action,
	CONSTRAINT "auth_sessions_mode" CHECK(("auth_sessions"."mode" = 'sandbox' OR "auth_sessions"."mode" = 'live'))
);
--> statement-breakpoint
CREATE INDEX `auth_sessions_by_user` ON `auth_sessions` (`user_id`);--> statement-breakpoint
CREATE INDEX `auth_sessions_by_end` ON `auth_sessions` (`expires_at`);--> statement-breakpoint
CREATE TABLE `instances` (
	`id` text PRIMARY KEY NOT NULL,
	`base_url` text,
	`chain_ids` text NOT NULL,
	`version` text NOT NULL,
	`oldest_writer` text NOT NULL,
	`created_at` integer NOT NULL,
	`restored_at` integer,
	`acknowledged_at` integer
);
--> statement-breakpoint
CREATE TABLE `organisations` (
	`id` text PRIMARY KEY NOT NULL,
	`name` text NOT NULL,
	`kill_switch` integer NOT NULL,
	`passkey_threshold` integer,
	`created_at` integer NOT NULL
);
--> statement-breakpoint
CREATE TABLE `passkey_approvals` (
	`token_hash` text PRIMARY KEY NOT NULL,
	`user_id` text NOT NULL,
	`passkey_id` text NOT NULL,
	`warrant_id` text NOT NULL,
	`version` integer NOT NULL,
	`decision` text NOT NULL,
	`released_bps` integer,
	`assertion` text NOT NULL,
	`created_at` integer NOT NULL,
	`expires_at` integer NOT NULL,
	`used_at` integer,
	FOREIGN KEY (`user_id`) REFERENCES `users`(`id`) ON UPDATE no action ON DELETE no action
);
--> statement-breakpoint
CREATE TABLE `passkeys` (
	`id` text PRIMARY KEY NOT NULL,
	`organisation_id` text NOT NULL,
	`user_id` text NOT NULL,
	`name` text NOT NULL,
	`public_key` text NOT NULL,
	`counter` integer NOT NULL,
	`transports` text NOT NULL,
	`counts_for_threshold` integer NOT NULL,
	`created_at` integer NOT NULL,
	`last_used_at` integer,
	FOREIGN KEY (`organisation_id`) REFERENCES `organisations`(`id`) ON UPDATE no action ON DELETE no action,
	FOREIGN KEY (`user_id`) REFERENCES `users`(`id`) ON UPDATE no action ON DELETE no action
);
--> statement-breakpoint
CREATE INDEX `passkeys_by_user` ON `passkeys` (`user_id`,`created_at`);--> statement-breakpoint
CREATE INDEX `passkeys_of_organisation` ON `passkeys` (`organisation_id`) WHERE "passkeys"."counts_for_threshold" = 1;--> statement-breakpoint
CREATE TABLE `password_resets` (
	`token_hash` text PRIMARY KEY NOT NULL,
	`user_id` text NOT NULL,
	`created_at` integer NOT NULL,
	`expires_at` integer NOT NULL,
	`used_at` integer,
	FOREIGN KEY (`user_id`) REFERENCES `users`(`id`) ON UPDATE no action ON DELETE no action
);
--> statement-breakpoint
CREATE INDEX `password_resets_by_user` ON `password_resets` (`user_id`);--> statement-breakpoint
CREATE TABLE `policies` (
	`position` integer PRIMARY KEY NOT NULL,
	`id` text NOT NULL,
	`organisation_id` text NOT NULL,
	`agent_id` text,
	`name` text NOT NULL,
	`version` integer NOT NULL,
	`rules` text NOT NULL,
	`rules_hash` text NOT NULL,
	`created_at` integer NOT NULL,
	FOREIGN KEY (`organisation_id`) REFERENCES `organisations`(`id`) ON UPDATE no action ON DELETE no action,
	FOREIGN KEY (`agent_id`) REFERENCES `agents`(`id`) ON UPDATE no action ON DELETE no action
);
--> statement-breakpoint
CREATE UNIQUE INDEX `policies_id_unique` ON `policies` (`id`);--> statement-breakpoint
CREATE UNIQUE INDEX `policies_of_organisation` ON `policies` (`organisation_id`,`name`,`version`) WHERE "policies"."agent_id" IS NULL;--> statement-breakpoint
CREATE UNIQUE INDEX `policies_of_agent` ON `policies` (`agent_id`,`name`,`version`) WHERE "policies"."agent_id" IS NOT NULL;--> statement-breakpoint
CREATE INDEX `policies_by_agent` ON `policies` (`organisation_id`,`agent_id`);--> statement-breakpoint
CREATE TABLE `schemas` (
	`id` text PRIMARY KEY NOT NULL,
	`organisation_id` text NOT NULL,
	`name` text NOT NULL,
	`schema` text NOT NULL,
	`schema_hash` text NOT NULL,
	`created_at` integer NOT NULL,
	FOREIGN KEY (`organisation_id`) REFERENCES `organisations`(`id`) ON UPDATE no action ON DELETE no action
);
--> statement-breakpoint
CREATE UNIQUE INDEX `schemas_by_name` ON `schemas` (`organisation_id`,`name`);--> statement-breakpoint
CREATE TABLE `spend_sessions` (
	`position` integer PRIMARY KEY NOT NULL,
	`id` text NOT NULL,
	`agent_id` text NOT NULL,
	`amount_ceiling` integer NOT NULL,
	`amount_spent` integer NOT NULL,
	`warrant_limit` integer,
	`warrant_count` integer NOT NULL,
	`failure_budget` integer NOT NULL,
	`failure_count` integer NOT NULL,
	`expires_at` integer NOT NULL,
	`revoked_at` integer,
	`created_at` integer NOT NULL,
	FOREIGN KEY (`agent_id`) REFERENCES `agents`(`id`) ON UPDATE no action ON DELETE no action,
	CONSTRAINT "spend_sessions_spent" CHECK("spend_sessions"."amount_spent" BETWEEN 0 AND "spend_sessions"."amount_ceiling"),
	CONSTRAINT "spend_sessions_count" CHECK("spend_sessions"."warrant_limit" IS NULL OR "spend_sessions"."warrant_count" <= "spend_sessions"."warrant_limit")
);
--> statement-breakpoint
CREATE UNIQUE INDEX `spend_sessions_id_unique` ON `spend_sessions` (`id`);--> statement-breakpoint
CREATE INDEX `spend_sessions_by_agent` ON `spend_sessions` (`agent_id`);--> statement-breakpoint
CREATE TABLE `users` (
	`id` text PRIMARY KEY NOT NULL,
	`organisation_id` text NOT NULL,
	`email` text NOT NULL,
	`name` text NOT NULL,
	`role` text NOT NULL,
	`password_hash` text NOT NULL,
	`password_reset_at` integer,
	`removed_at` integer,
	`created_at` integer NOT NULL,
	FOREIGN KEY (`organisation_id`) REFERENCES `organisations`(`id`) ON UPDATE no action ON DELETE no action,
	CONSTRAINT "users_role" CHECK(("users"."role" = 'viewer' OR "users"."role" = 'operator' OR "users"."role" = 'admin' OR "users"."role" = 'owner'))
);
--> statement-breakpoint
CREATE UNIQUE INDEX `users_by_email` ON `users` (`email`) WHERE "users"."removed_at" IS NULL;--> statement-breakpoint
CREATE INDEX `users_by_organisation` ON `users` (`organisation_id`);--> statement-breakpoint
CREATE TABLE `verifiers` (
	`position` integer PRIMARY KEY NOT NULL,
	`id` text NOT NULL,
	`organisation_id` text NOT NULL,
	`type` text NOT NULL,
	`name` text NOT NULL,
	`config` text NOT NULL,
	`created_at` integer NOT NULL,
	FOREIGN KEY (`organisation_id`) REFERENCES `organisations`(`id`) ON UPDATE no action ON DELETE no action
);
--> statement-breakpoint
CREATE UNIQUE INDEX `verifiers_id_unique` ON `verifiers` (`id`);--> statement-breakpoint
CREATE INDEX `verifiers_by_organisation` ON `verifiers` (`organisation_id`,`id`);--> statement-breakpoint
CREATE TABLE `accounts` (
	`position` integer PRIMARY KEY NOT NULL,
	`scope` integer NOT NULL,
	`asset` text NOT NULL,
	`available` integer NOT NULL,
	`held` integer NOT NULL,
	`paid` integer NOT NULL,
	`funding` integer NOT NULL,
	`posted` integer NOT NULL,
	CONSTRAINT "accounts_not_negative" CHECK("accounts"."available" >= 0 AND "accounts"."held" >= 0 AND "accounts"."paid" >= 0),
	CONSTRAINT "accounts_sum_to_zero" CHECK("accounts"."available" + "accounts"."held" + "accounts"."paid" + "accounts"."funding" = 0),
	CONSTRAINT "accounts_integers" CHECK(typeof("accounts"."available" + "accounts"."held" + "accounts"."paid") = 'integer' AND typeof("accounts"."funding") = 'integer')
);
--> statement-breakpoint
CREATE UNIQUE INDEX `accounts_by_scope` ON `accounts` (`scope`,`asset`);--> statement-breakpoint
CREATE TABLE `checks` (
	`position` integer PRIMARY KEY NOT NULL,
	`id` text NOT NULL,
	`warrant` integer NOT NULL,
	`source_url` text NOT NULL,
	`http_status` integer,
	`bytes` integer NOT NULL,
	`duration_ms` integer NOT NULL,
	`score` integer NOT NULL,
	`passed` integer NOT NULL,
	`reason_codes` text NOT NULL,
	`evidence_hash` blob NOT NULL,
	`details` text NOT NULL,
	`outcome` text NOT NULL,
	`band_label` text,
	`evaluated_at` integer NOT NULL,
	CONSTRAINT "checks_score" CHECK("checks"."score" BETWEEN 0 AND 10000)
);
--> statement-breakpoint
CREATE UNIQUE INDEX `checks_id_unique` ON `checks` (`id`);--> statement-breakpoint
CREATE INDEX `checks_of_warrant` ON `checks` (`warrant`);--> statement-breakpoint
CREATE TABLE `deposits` (
	`position` integer PRIMARY KEY NOT NULL,
	`id` text NOT NULL,
	`account` integer NOT NULL,
	`amount` integer NOT NULL,
	`reference` text,
	`created_at` integer NOT NULL,
	CONSTRAINT "deposits_amount" CHECK("deposits"."amount" > 0)
);
--> statement-breakpoint
CREATE UNIQUE INDEX `deposits_id_unique` ON `deposits` (`id`);--> statement-breakpoint
CREATE UNIQUE INDEX `deposits_by_reference` ON `deposits` (`account`,`reference`) WHERE "deposits"."reference" IS NOT NULL;--> statement-breakpoint
CREATE TABLE `escalations` (
	`id` text PRIMARY KEY NOT NULL,
	`organisation_id` text NOT NULL,
	`mode` text NOT NULL,
	`warrant_id` text NOT NULL,
	`check_id` text,
	`score` integer,
	`reason_codes` text NOT NULL,
	`status` text NOT NULL,
	`decision` text,
	`released_bps` integer,
	`note` text,
	`raised_by` text,
	`resolved_by` text,
	`created_at` integer NOT NULL,
	`resolved_at` integer,
	FOREIGN KEY (`organisation_id`) REFERENCES `organisations`(`id`) ON UPDATE no action ON DELETE no action,
	FOREIGN KEY (`warrant_id`) REFERENCES `warrants`(`id`) ON UPDATE no action ON DELETE no action,
	CONSTRAINT "escalations_resolved" CHECK(("escalations"."status" = 'resolved') = ("escalations"."resolved_at" IS NOT NULL))
);
--> statement-breakpoint
CREATE INDEX `escalations_by_status` ON `escalations` (`organisation_id`,`mode`,`status`,`id`);--> statement-breakpoint
CREATE UNIQUE INDEX `escalations_one_unresolved` ON `escalations` (`warrant_id`) WHERE "escalations"."status" <> 'resolved';--> statement-breakpoint
CREATE INDEX `escalations_by_warrant` ON `escalations` (`warrant_id`,`id`);--> statement-breakpoint
CREATE INDEX `escalations_waiting` ON `escalations` (`created_at`,`id`) WHERE "escalations"."status" <> 'resolved';--> statement-breakpoint
CREATE TABLE `idempotency_keys` (
	`position` integer PRIMARY KEY NOT NULL,
	`scope` integer NOT NULL,
	`key` text NOT NULL,
	`fingerprint` blob NOT NULL,
	`holder` text,
	`status` integer,
	`body` text,
	`warrant` integer,
	`version` integer,
	`encoding` integer,
	`content_hash` text,
	`created_at` integer NOT NULL,
	CONSTRAINT "idempotency_keys_holder" CHECK(("idempotency_keys"."status" IS NULL) = ("idempotency_keys"."holder" IS NOT NULL)),
	CONSTRAINT "idempotency_keys_outcome" CHECK(("idempotency_keys"."body" IS NOT NULL) + ("idempotency_keys"."warrant" IS NOT NULL) = ("idempotency_keys"."status" IS NOT NULL)),
	CONSTRAINT "idempotency_keys_warrant" CHECK(("idempotency_keys"."warrant" IS NULL) = ("idempotency_keys"."version" IS NULL) AND ("idempotency_keys"."warrant" IS NULL) = ("idempotency_keys"."encoding" IS NULL))
);
--> statement-breakpoint
CREATE UNIQUE INDEX `idempotency_keys_by_key` ON `idempotency_keys` (`scope`,`key`);--> statement-breakpoint
CREATE INDEX `idempotency_keys_by_creation` ON `idempotency_keys` (`created_at`) WHERE "idempotency_keys"."content_hash" IS NULL;--> statement-breakpoint
CREATE INDEX `idempotency_keys_with_content` ON `idempotency_keys` (`created_at`) WHERE "idempotency_keys"."content_hash" IS NOT NULL;--> statement-breakpoint
CREATE INDEX `idempotency_keys_of_content` ON `idempotency_keys` (`content_hash`) WHERE "idempotency_keys"."content_hash" IS NOT NULL;--> statement-breakpoint
CREATE UNIQUE INDEX `idempotency_keys_in_flight` ON `idempotency_keys` (`holder`) WHERE "idempotency_keys"."status" IS NULL;--> statement-breakpoint
CREATE TABLE `postings` (
	`position` integer PRIMARY KEY NOT NULL,
	`account` integer NOT NULL,
	`kind` text NOT NULL,
	`rail` text NOT NULL,
	`cause` integer NOT NULL,
	`available` integer NOT NULL,
	`held` integer NOT NULL,
	`paid` integer NOT NULL,
	`funding` integer NOT NULL,
	`recorded_at` integer NOT NULL,
	CONSTRAINT "postings_sum_to_zero" CHECK("postings"."available" + "postings"."held" + "postings"."paid" + "postings"."funding" = 0),
	CONSTRAINT "postings_integers" CHECK("postings"."available" | 0 = "postings"."available" AND "postings"."available" > -9223372036854775808 AND "postings"."held" | 0 = "postings"."held" AND "postings"."held" > -9223372036854775808 AND "postings"."paid" | 0 = "postings"."paid" AND "postings"."paid" > -9223372036854775808 AND "postings"."funding" | 0 = "postings"."funding" AND "postings"."funding" > -9223372036854775808)
);
--> statement-breakpoint
CREATE UNIQUE INDEX `postings_once` ON `postings` (`cause`,`kind`);--> statement-breakpoint
CREATE INDEX `postings_by_account` ON `postings` (`account`);--> statement-breakpoint
CREATE TABLE `scopes` (
	`position` integer PRIMARY KEY NOT NULL,
	`organisation_id` text NOT NULL,
	`mode` text NOT NULL,
	FOREIGN KEY (`organisation_id`) REFERENCES `organisations`(`id`) ON UPDATE no action ON DELETE no action,
	CONSTRAINT "scopes_mode" CHECK(("scopes"."mode" = 'sandbox' OR "scopes"."mode" = 'live'))
);
--> statement-breakpoint
CREATE UNIQUE INDEX `scopes_by_organisation` ON `scopes` (`organisation_id`,`mode`);--> statement-breakpoint
CREATE TABLE `trace` (
	`position` integer PRIMARY KEY NOT NULL,
	`warrant` integer NOT NULL,
	`sequence` integer NOT NULL,
	`from_state` text,
	`to_state` text NOT NULL,
	`actor_kind` text NOT NULL,
	`actor_id` text,
	`recorded_at` integer NOT NULL,
	`encoding` integer NOT NULL,
	`schema_hashes` text,
	`check_id` text,
	`entry_hash` blob NOT NULL,
	`event_id` text,
	CONSTRAINT "trace_actor" CHECK(("trace"."actor_kind" = 'system') = ("trace"."actor_id" IS NULL)),
	CONSTRAINT "trace_opening" CHECK(("trace"."sequence" = 0) = ("trace"."from_state" IS NULL)),
	CONSTRAINT "trace_schemas" CHECK("trace"."schema_hashes" IS NULL OR "trace"."sequence" = 0),
	CONSTRAINT "trace_check" CHECK("trace"."check_id" IS NULL OR "trace"."from_state" IS 'verifying')
);
--> statement-breakpoint
CREATE UNIQUE INDEX `trace_by_warrant` ON `trace` (`warrant`,`sequence`);--> statement-breakpoint
CREATE TABLE `warrant_counts` (
	`scope` integer NOT NULL,
	`agent` integer NOT NULL,
	`state` text NOT NULL,
	`count` integer NOT NULL,
	PRIMARY KEY(`scope`, `agent`, `state`),
	CONSTRAINT "warrant_counts_not_negative" CHECK("warrant_counts"."count" >= 0)
);
--> statement-breakpoint
CREATE TABLE `warrants` (
	`position` integer PRIMARY KEY NOT NULL,
	`id` text NOT NULL,
	`scope` integer NOT NULL,
	`account` integer NOT NULL,
	`state` text NOT NULL,
	`version` integer NOT NULL,
	`amount` integer NOT NULL,
	`released_bps` integer,
	`payee` text NOT NULL,
	`spec` text NOT NULL,
	`spec_hash` blob NOT NULL,
	`agent` integer,
	`session` integer,
	`verifier` integer,
	`policy` integer,
	`rules_hash` blob,
	`trace_head` blob NOT NULL,
	`deadline` integer NOT NULL,
	`opened_at` integer NOT NULL,
	`verifying_since` integer,
	`settled_at` integer,
	CONSTRAINT "warrants_state" CHECK(("warrants"."state" = 'held' OR "warrants"."state" = 'verifying' OR "warrants"."state" = 'released' OR "warrants"."state" = 'partially_released' OR "warrants"."state" = 'escalated' OR "warrants"."state" = 'refunded' OR "warrants"."state" = 'expired' OR "warrants"."state" = 'frozen' OR "warrants"."state" = 'disputed')),
	CONSTRAINT "warrants_amount" CHECK("warrants"."amount" > 0 AND "warrants"."amount" | 0 = "warrants"."amount" AND "warrants"."amount" > -9223372036854775808),
	CONSTRAINT "warrants_verifying_since" CHECK(("warrants"."state" = 'verifying') = ("warrants"."verifying_since" IS NOT NULL)),
	CONSTRAINT "warrants_version" CHECK("warrants"."version" >= 1),
	CONSTRAINT "warrants_rules" CHECK(("warrants"."policy" IS NULL) = ("warrants"."rules_hash" IS NOT NULL)),
	CONSTRAINT "warrants_share" CHECK(CASE "warrants"."state" WHEN 'released' THEN "warrants"."released_bps" IS 10000 WHEN 'partially_released' THEN "warrants"."released_bps" IS NOT NULL AND "warrants"."released_bps" > 0 AND "warrants"."released_bps" < 10000 ELSE "warrants"."released_bps" IS NULL END),
	CONSTRAINT "warrants_settled_at" CHECK(("warrants"."settled_at" IS NOT NULL) = ("warrants"."state" = 'released' OR "warrants"."state" = 'partially_released' OR "warrants"."state" = 'refunded' OR "warrants"."state" = 'expired'))
);
--> statement-breakpoint
CREATE UNIQUE INDEX `warrants_id_unique` ON `warrants` (`id`);--> statement-breakpoint
CREATE INDEX `warrants_by_state` ON `warrants` (`scope`,`state`);--> statement-breakpoint
CREATE INDEX `warrants_by_deadline` ON `warrants` (`scope`,`state`,`deadline`);--> statement-breakpoint
CREATE INDEX `warrants_of_agent_by_state` ON `warrants` (`agent`,`state`) WHERE "warrants"."agent" IS NOT NULL;--> statement-breakpoint
CREATE INDEX `warrants_of_agent_by_deadline` ON `warrants` (`agent`,`state`,`deadline`) WHERE "warrants"."agent" IS NOT NULL;--> statement-breakpoint
CREATE INDEX `warrants_overdue` ON `warrants` (`deadline`) WHERE "warrants"."state" = 'held';--> statement-breakpoint
CREATE INDEX `warrants_verifying` ON `warrants` (`verifying_since`) WHERE "warrants"."state" = 'verifying';--> statement-breakpoint
CREATE TABLE `contents` (
	`hash` text PRIMARY KEY NOT NULL,
	`bytes` blob NOT NULL
);
--> statement-breakpoint
CREATE TABLE `purchases` (
	`id` text PRIMARY KEY NOT NULL,
	`organisation_id` text NOT NULL,
	`mode` text NOT NULL,
	`agent_id` text,
	`method` text NOT NULL,
	`url` text NOT NULL,
	`max_amount` integer NOT NULL,
	`phase` text NOT NULL,
	`quoted_amount` integer,
	`quoted_asset` text,
	`quoted_payee` text,
	`timeout_seconds` integer,
	`pays` text,
	`warrant_id` text,
	`payer` text,
	`chain_id` integer,
	`contract` text,
	`nonce` text,
	`valid_before` integer,
	`header` text,
	`attempt` text,
	`known` text,
	`known_by` text,
	`transaction_id` text,
	`response_status` integer,
	`response_hash` text,
	`response_last_modified_at` integer,
	`created_at` integer NOT NULL,
	`answered_at` integer,
	`ended_at` integer,
	`next_check_at` integer,
	`chain_silent_since` integer,
	FOREIGN KEY (`organisation_id`) REFERENCES `organisations`(`id`) ON UPDATE no action ON DELETE no action,
	CONSTRAINT "purchases_mode" CHECK(("purchases"."mode" = 'sandbox' OR "purchases"."mode" = 'live')),
	CONSTRAINT "purchases_network" CHECK("purchases"."chain_id" IS NULL OR ("purchases"."mode" = 'sandbox') = ("purchases"."chain_id" IN (11155111, 11155420, 84532, 43113, 80002, 421614, 11142220, 11124, 1328, 51, 2201, 10143, 324705682, 1337, 31337))),
	CONSTRAINT "purchases_phase" CHECK(("purchases"."phase" = 'quoting' OR "purchases"."phase" = 'held' OR "purchases"."phase" = 'signed' OR "purchases"."phase" = 'answered' OR "purchases"."phase" = 'ended')),
	CONSTRAINT "purchases_held" CHECK("purchases"."phase" IN ('quoting', 'ended') OR "purchases"."warrant_id" IS NOT NULL),
	CONSTRAINT "purchases_signed" CHECK("purchases"."phase" NOT IN ('signed', 'answered') OR "purchases"."header" IS NOT NULL),
	CONSTRAINT "purchases_ended" CHECK(("purchases"."phase" = 'ended') = ("purchases"."ended_at" IS NOT NULL))
);
--> statement-breakpoint
CREATE INDEX `purchases_by_organisation` ON `purchases` (`organisation_id`,`mode`,`id`);--> statement-breakpoint
CREATE UNIQUE INDEX `purchases_of_warrant` ON `purchases` (`warrant_id`) WHERE "purchases"."warrant_id" IS NOT NULL;--> statement-breakpoint
CREATE UNIQUE INDEX `purchases_one_of_a_nonce` ON `purchases` (`payer`,`nonce`) WHERE "purchases"."nonce" IS NOT NULL;--> statement-breakpoint
CREATE INDEX `purchases_unfinished` ON `purchases` (`id`) WHERE "purchases"."phase" <> 'ended';--> statement-breakpoint
CREATE INDEX `purchases_to_check` ON `purchases` (`next_check_at`) WHERE "purchases"."next_check_at" IS NOT NULL;--> statement-breakpoint
CREATE INDEX `purchases_open_of_wallet` ON `purchases` (`payer`,`chain_id`,`contract`) WHERE "purchases"."payer" IS NOT NULL AND "purchases"."known" IS NOT 'paid' AND "purchases"."known" IS NOT 'unpaid';--> statement-breakpoint
CREATE INDEX `purchases_paid_of_wallet` ON `purchases` (`payer`,`chain_id`,`contract`,`answered_at`) WHERE "purchases"."payer" IS NOT NULL AND "purchases"."known" = 'paid';--> statement-breakpoint
CREATE INDEX `purchases_that_need_content` ON `purchases` (`response_hash`) WHERE "purchases"."response_hash" IS NOT NULL AND "purchases"."phase" <> 'ended';--> statement-breakpoint
CREATE TABLE `webhook_deliveries` (
	`id` text PRIMARY KEY NOT NULL,
	`webhook_id` text NOT NULL,
	`organisation_id` text NOT NULL,
	`mode` text NOT NULL,
	`event` text NOT NULL,
	`event_id` text NOT NULL,
	`warrant_id` text,
	`sequence` integer,
	`status` text NOT NULL,
	`attempts` integer NOT NULL,
	`response_code` integer,
	`response_start` text,
	`duration_ms` integer,
	`claimed_until` integer,
	`next_attempt_at` integer,
	`created_at` integer NOT NULL,
	FOREIGN KEY (`webhook_id`) REFERENCES `webhooks`(`id`) ON UPDATE no action ON DELETE no action,
	FOREIGN KEY (`organisation_id`) REFERENCES `organisations`(`id`) ON UPDATE no action ON DELETE no action,
	CONSTRAINT "webhook_deliveries_mode" CHECK(("webhook_deliveries"."mode" = 'sandbox' OR "webhook_deliveries"."mode" = 'live')),
	CONSTRAINT "webhook_deliveries_attempts" CHECK("webhook_deliveries"."attempts" BETWEEN 0 AND 4),
	CONSTRAINT "webhook_deliveries_of_an_entry" CHECK(("webhook_deliveries"."warrant_id" IS NULL) = ("webhook_deliveries"."sequence" IS NULL)),
	CONSTRAINT "webhook_deliveries_work" CHECK(("webhook_deliveries"."status" IN ('pending', 'failed')) = (("webhook_deliveries"."claimed_until" IS NOT NULL) + ("webhook_deliveries"."next_attempt_at" IS NOT NULL) = 1)),
	CONSTRAINT "webhook_deliveries_delivered" CHECK("webhook_deliveries"."status" <> 'delivered' OR "webhook_deliveries"."response_code" BETWEEN 200 AND 299)
);
--> statement-breakpoint
CREATE INDEX `webhook_deliveries_by_organisation` ON `webhook_deliveries` (`organisation_id`,`mode`,`created_at`);--> statement-breakpoint
CREATE INDEX `webhook_deliveries_due` ON `webhook_deliveries` (`webhook_id`,`next_attempt_at`) WHERE "webhook_deliveries"."next_attempt_at" IS NOT NULL;--> statement-breakpoint
CREATE INDEX `webhook_deliveries_next` ON `webhook_deliveries` (`next_attempt_at`) WHERE "webhook_deliveries"."next_attempt_at" IS NOT NULL;--> statement-breakpoint
CREATE INDEX `webhook_deliveries_claimed` ON `webhook_deliveries` (`claimed_until`) WHERE "webhook_deliveries"."claimed_until" IS NOT NULL;--> statement-breakpoint
CREATE INDEX `webhook_deliveries_first` ON `webhook_deliveries` (`webhook_id`,`warrant_id`,`sequence`) WHERE "webhook_deliveries"."attempts" < 2 AND ("webhook_deliveries"."next_attempt_at" IS NOT NULL OR "webhook_deliveries"."claimed_until" IS NOT NULL);--> statement-breakpoint
CREATE INDEX `webhook_deliveries_by_creation` ON `webhook_deliveries` (`created_at`);--> statement-breakpoint
CREATE TABLE `webhooks` (
	`id` text PRIMARY KEY NOT NULL,
	`organisation_id` text NOT NULL,
	`mode` text NOT NULL,
	`url` text NOT NULL,
	`events` text NOT NULL,
	`encrypted_secret` text NOT NULL,
	`disabled` integer NOT NULL,
	`created_at` integer NOT NULL,
	FOREIGN KEY (`organisation_id`) REFERENCES `organisations`(`id`) ON UPDATE no action ON DELETE no action,
	CONSTRAINT "webhooks_mode" CHECK(("webhooks"."mode" = 'sandbox' OR "webhooks"."mode" = 'live'))
);
--> statement-breakpoint
CREATE INDEX `webhooks_by_organisation` ON `webhooks` (`organisation_id`,`mode`,`id`);