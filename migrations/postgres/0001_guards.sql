-- What the tables refuse, whoever writes to them: the triggers of SQLite, with their names and their words.
--
-- Most of them read nothing but the row. They are conditions of triggers that all call one function, with the words. What refuses every
-- change of a table or of some of its columns is asked once a statement: a statement that names such a column is refused even where it
-- finds no row. A guard that reads other tables is a function of its own. Where a table gets many rows at once (warrants, postings,
-- trace, checks, idempotency_keys, accounts, webhook_deliveries, session_totals), it is asked once a statement, of all its rows.
-- CockroachDB has no triggers of statements, nor transition tables: there, these must be made row by row.
--
-- The order of writes. SQLite asks for each row as it comes. Here the rows of a batch come by statements of many rows, and what a guard
-- looks at has to come before: scopes, agents, accounts, deposits, treasury_watches and chain_transfers; warrants, then purchases;
-- corrections that are decided before new ones; payees, new payouts, chain_transactions, payout_transactions, payouts that end; then
-- postings, and after them the balances. So a posting may find what caused it in a later state than when it was posted; a guard to which
-- that matters says so.
--
-- Functions that read keep the search path of their migration, and never read a table from its beginning to its end: their plans are
-- kept by a connection, also those that were made while a table had one page.

CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION '%', TG_ARGV[0];
END $$;

-- What is never changed or deleted

CREATE TRIGGER accounts_keep_their_asset BEFORE UPDATE OF position, scope, asset ON accounts
  EXECUTE FUNCTION refuse('an account stays that of its scope and asset');
CREATE TRIGGER accounts_are_not_deleted BEFORE DELETE OR TRUNCATE ON accounts EXECUTE FUNCTION refuse('accounts are kept');
CREATE TRIGGER agents_keep_their_mode BEFORE UPDATE OF position, id, organisation_id, mode ON agents
  EXECUTE FUNCTION refuse('an agent stays in its organisation and mode');
CREATE TRIGGER agents_are_not_deleted BEFORE DELETE OR TRUNCATE ON agents EXECUTE FUNCTION refuse('agents are kept');
CREATE TRIGGER api_keys_keep_their_agent BEFORE UPDATE OF id, organisation_id, agent_id, mode, secret_hash ON api_keys
  EXECUTE FUNCTION refuse('an API key stays its agent''s');
CREATE TRIGGER audit_entries_are_not_changed BEFORE UPDATE ON audit_entries
  EXECUTE FUNCTION refuse('the audit log is append-only');
CREATE TRIGGER audit_entries_are_not_deleted BEFORE DELETE OR TRUNCATE ON audit_entries
  EXECUTE FUNCTION refuse('the audit log is append-only');
CREATE TRIGGER capsule_parts_are_not_changed BEFORE UPDATE ON capsule_parts
  EXECUTE FUNCTION refuse('the body in a capsule is not changed');
CREATE TRIGGER capsules_are_not_changed BEFORE UPDATE ON capsules EXECUTE FUNCTION refuse('a capsule is not changed');
CREATE TRIGGER chain_transactions_are_not_deleted BEFORE DELETE OR TRUNCATE ON chain_transactions
  EXECUTE FUNCTION refuse('what was signed is kept');
CREATE TRIGGER chain_transfers_keep_their_terms
  BEFORE UPDATE OF id, rowid, watch, hash, ordinal, counterparty, amount, created_at ON chain_transfers
  EXECUTE FUNCTION refuse('what was transferred is fixed');
CREATE TRIGGER chain_transfers_are_not_deleted BEFORE DELETE OR TRUNCATE ON chain_transfers
  EXECUTE FUNCTION refuse('transfers are kept');
CREATE TRIGGER checks_are_not_changed BEFORE UPDATE ON checks EXECUTE FUNCTION refuse('checks are append-only');
CREATE TRIGGER checks_are_not_deleted BEFORE DELETE OR TRUNCATE ON checks EXECUTE FUNCTION refuse('checks are append-only');
CREATE TRIGGER contents_are_not_changed BEFORE UPDATE ON contents EXECUTE FUNCTION refuse('kept answers are not changed');
CREATE TRIGGER corrections_keep_their_terms
  BEFORE UPDATE OF position, id, account, deposit, amount_before, amount_after, reason, proposed_by, created_at ON corrections
  EXECUTE FUNCTION refuse('what is corrected is fixed');
CREATE TRIGGER corrections_are_not_deleted BEFORE DELETE OR TRUNCATE ON corrections
  EXECUTE FUNCTION refuse('corrections are kept');
CREATE TRIGGER deposit_senders_are_not_changed BEFORE UPDATE ON deposit_senders
  EXECUTE FUNCTION refuse('a sender is registered and removed, and never changed');
CREATE TRIGGER deposits_are_not_changed BEFORE UPDATE ON deposits EXECUTE FUNCTION refuse('deposits are append-only');
CREATE TRIGGER deposits_are_not_deleted BEFORE DELETE OR TRUNCATE ON deposits
  EXECUTE FUNCTION refuse('deposits are append-only');
CREATE TRIGGER log_anchors_are_not_changed BEFORE UPDATE ON log_anchors EXECUTE FUNCTION refuse('what was signed is kept');
CREATE TRIGGER log_anchors_are_not_deleted BEFORE DELETE OR TRUNCATE ON log_anchors
  EXECUTE FUNCTION refuse('what was signed is kept');
CREATE TRIGGER log_checkpoints_are_not_changed BEFORE UPDATE ON log_checkpoints
  EXECUTE FUNCTION refuse('what was signed is kept');
CREATE TRIGGER log_checkpoints_are_not_deleted BEFORE DELETE OR TRUNCATE ON log_checkpoints
  EXECUTE FUNCTION refuse('what was signed is kept');
CREATE TRIGGER log_tiles_are_not_deleted BEFORE DELETE OR TRUNCATE ON log_tiles EXECUTE FUNCTION refuse('the log only grows');
CREATE TRIGGER payees_keep_their_names BEFORE UPDATE OF position, account, payee ON payees
  EXECUTE FUNCTION refuse('a payee stays that of its account');
CREATE TRIGGER payees_are_not_deleted BEFORE DELETE OR TRUNCATE ON payees EXECUTE FUNCTION refuse('payees are kept');
CREATE TRIGGER payout_transactions_keep_their_terms
  BEFORE UPDATE OF chain_id, wallet, nonce, rowid, payout, account, rail, token, by_person, recorded_at ON payout_transactions
  EXECUTE FUNCTION refuse('which transaction pays a payout is fixed');
CREATE TRIGGER payout_transactions_are_not_deleted BEFORE DELETE OR TRUNCATE ON payout_transactions
  EXECUTE FUNCTION refuse('which transaction pays a payout is kept');
CREATE TRIGGER payout_waits_are_not_deleted BEFORE DELETE OR TRUNCATE ON payout_waits
  EXECUTE FUNCTION refuse('what a payee waits for is kept');
CREATE TRIGGER payouts_keep_their_terms BEFORE UPDATE OF position, id, account, payee, amount, rail, created_at ON payouts
  EXECUTE FUNCTION refuse('what is paid out, and to whom, is fixed');
CREATE TRIGGER payouts_are_not_deleted BEFORE DELETE OR TRUNCATE ON payouts EXECUTE FUNCTION refuse('payouts are kept');
CREATE TRIGGER policies_are_not_changed BEFORE UPDATE ON policies EXECUTE FUNCTION refuse('a policy version is never edited');
CREATE TRIGGER policies_are_not_deleted BEFORE DELETE OR TRUNCATE ON policies EXECUTE FUNCTION refuse('policies are kept');
CREATE TRIGGER postings_are_not_changed BEFORE UPDATE ON postings EXECUTE FUNCTION refuse('postings are append-only');
CREATE TRIGGER postings_are_not_deleted BEFORE DELETE OR TRUNCATE ON postings
  EXECUTE FUNCTION refuse('postings are append-only');
CREATE TRIGGER purchases_keep_their_order
  BEFORE UPDATE OF id, rowid, organisation_id, mode, agent_id, method, url, max_amount, created_at ON purchases
  EXECUTE FUNCTION refuse('what was ordered is fixed at the beginning');
CREATE TRIGGER purchases_are_not_truncated BEFORE TRUNCATE ON purchases EXECUTE FUNCTION refuse('purchases are kept');
CREATE TRIGGER rail_states_are_not_deleted BEFORE DELETE OR TRUNCATE ON rail_states
  EXECUTE FUNCTION refuse('the state of a rail is kept');
CREATE TRIGGER schemas_are_not_changed BEFORE UPDATE ON schemas EXECUTE FUNCTION refuse('a named schema is immutable');
CREATE TRIGGER schemas_are_not_deleted BEFORE DELETE OR TRUNCATE ON schemas EXECUTE FUNCTION refuse('named schemas are kept');
-- Only the time of its newest commit is written again.
CREATE TRIGGER scopes_are_not_changed BEFORE UPDATE OF position, organisation_id, mode ON scopes
  EXECUTE FUNCTION refuse('scopes are kept');
CREATE TRIGGER scopes_are_not_deleted BEFORE DELETE OR TRUNCATE ON scopes EXECUTE FUNCTION refuse('scopes are kept');
CREATE TRIGGER session_totals_keep_their_times BEFORE UPDATE OF session, held_at, rowid ON session_totals
  EXECUTE FUNCTION refuse('what a session held is history');
CREATE TRIGGER session_totals_are_not_deleted BEFORE DELETE OR TRUNCATE ON session_totals
  EXECUTE FUNCTION refuse('what a session held is history');
CREATE TRIGGER solvency_statements_are_not_changed
  BEFORE UPDATE OF number, rowid, note, seed, entry_hash, digest ON solvency_statements
  EXECUTE FUNCTION refuse('what was signed is kept');
CREATE TRIGGER solvency_statements_are_not_deleted BEFORE DELETE OR TRUNCATE ON solvency_statements
  EXECUTE FUNCTION refuse('what was signed is kept');
CREATE TRIGGER source_keys_are_not_deleted BEFORE DELETE OR TRUNCATE ON source_keys
  EXECUTE FUNCTION refuse('source keys are kept');
CREATE TRIGGER spend_sessions_stay_their_agents BEFORE UPDATE OF position, id, agent_id ON spend_sessions
  EXECUTE FUNCTION refuse('a spend session stays its agent''s');
CREATE TRIGGER spend_sessions_are_not_deleted BEFORE DELETE OR TRUNCATE ON spend_sessions
  EXECUTE FUNCTION refuse('spend sessions are kept');
CREATE TRIGGER spend_sessions_keep_their_limits
  BEFORE UPDATE OF per_warrant_max, hourly_max, daily_max, payees, source_origins ON spend_sessions
  EXECUTE FUNCTION refuse('the limits of a spend session are fixed');
CREATE TRIGGER trace_is_not_changed
  BEFORE UPDATE OF position, warrant, sequence, from_state, to_state, actor_kind, actor_id, recorded_at, encoding, schema_hashes,
    check_id, entry_hash, event_id, digest ON trace
  EXECUTE FUNCTION refuse('the trace is append-only');
CREATE TRIGGER trace_is_not_deleted BEFORE DELETE OR TRUNCATE ON trace EXECUTE FUNCTION refuse('the trace is append-only');
CREATE TRIGGER treasury_watches_keep_their_terms
  BEFORE UPDATE OF id, rowid, mode, asset, chain_id, token, address, first_block, created_at ON treasury_watches
  EXECUTE FUNCTION refuse('what is watched, and from which block on, is fixed');
CREATE TRIGGER treasury_watches_are_not_deleted BEFORE DELETE OR TRUNCATE ON treasury_watches
  EXECUTE FUNCTION refuse('watches are kept');
CREATE TRIGGER verifiers_are_not_changed BEFORE UPDATE ON verifiers
  EXECUTE FUNCTION refuse('a saved verifier is never edited');
CREATE TRIGGER verifiers_are_not_deleted BEFORE DELETE OR TRUNCATE ON verifiers EXECUTE FUNCTION refuse('verifiers are kept');
CREATE TRIGGER warrants_keep_their_terms
  BEFORE UPDATE OF position, id, scope, account, amount, payee, spec, spec_hash, agent, session, verifier, policy, rules_hash,
    deadline, opened_at, opened_by_agent, opened_by_user ON warrants
  EXECUTE FUNCTION refuse('the terms of a warrant are fixed at open');
CREATE TRIGGER warrants_are_not_deleted BEFORE DELETE OR TRUNCATE ON warrants EXECUTE FUNCTION refuse('warrants are kept');

-- What a row says of itself, or of itself before

CREATE TRIGGER accounts_owe_of_what_is_paid BEFORE UPDATE ON accounts FOR EACH ROW
  WHEN (NEW.payable < 0 OR NEW.submitted < 0 OR NEW.payable > NEW.paid - NEW.submitted)
  EXECUTE FUNCTION refuse('what is owed is a part of what is paid');
CREATE TRIGGER chain_transactions_keep_what_was_signed BEFORE UPDATE ON chain_transactions FOR EACH ROW
  WHEN ((NEW.chain_id, NEW.wallet, NEW.nonce, NEW."to", NEW.data, NEW.gas, NEW.created_at) IS DISTINCT FROM
      (OLD.chain_id, OLD.wallet, OLD.nonce, OLD."to", OLD.data, OLD.gas, OLD.created_at)
    OR length(NEW.signings) < length(OLD.signings)
    OR left(NEW.signings, length(OLD.signings) - 1) <> left(OLD.signings, length(OLD.signings) - 1))
  EXECUTE FUNCTION refuse('what was signed is kept');
-- After: of a transfer that is there already, the insert is an update.
CREATE TRIGGER chain_transfers_begin_uncredited AFTER INSERT ON chain_transfers FOR EACH ROW
  WHEN (NEW.status NOT IN ('found', 'sent') OR NEW.block IS NULL)
  EXECUTE FUNCTION refuse('a transfer begins in a block, and is no deposit yet');
CREATE TRIGGER chain_transfers_are_credited_once BEFORE UPDATE ON chain_transfers FOR EACH ROW
  WHEN (NEW.status <> OLD.status
      AND NOT (OLD.status = 'found' AND NEW.status IN ('unassigned', 'credited'))
      AND NOT (OLD.status = 'unassigned' AND NEW.status = 'credited')
    OR OLD.deposit IS NOT NULL AND NEW.deposit IS DISTINCT FROM OLD.deposit)
  EXECUTE FUNCTION refuse('a transfer is credited once');
CREATE TRIGGER corrections_are_decided_once BEFORE UPDATE ON corrections FOR EACH ROW
  WHEN (OLD.status <> 'proposed' OR NEW.status = 'proposed')
  EXECUTE FUNCTION refuse('a correction is decided once');
CREATE TRIGGER idempotency_outcomes_are_final BEFORE UPDATE ON idempotency_keys FOR EACH ROW
  WHEN (OLD.status IS NOT NULL OR OLD.fingerprint <> NEW.fingerprint OR OLD.scope <> NEW.scope OR OLD.key <> NEW.key)
  EXECUTE FUNCTION refuse('a key stands for one request, and its outcome is recorded once');
CREATE TRIGGER log_tiles_only_grow BEFORE UPDATE ON log_tiles FOR EACH ROW
  WHEN (NEW.level <> OLD.level OR NEW.tile <> OLD.tile OR length(NEW.hashes) <= length(OLD.hashes)
    OR substr(NEW.hashes, 1, length(OLD.hashes)) <> OLD.hashes)
  EXECUTE FUNCTION refuse('the log only grows');
CREATE TRIGGER passkey_approvals_are_used_once BEFORE UPDATE ON passkey_approvals FOR EACH ROW WHEN (OLD.used_at IS NOT NULL)
  EXECUTE FUNCTION refuse('an approval is good for one use');
CREATE TRIGGER password_resets_are_used_once BEFORE UPDATE ON password_resets FOR EACH ROW WHEN (OLD.used_at IS NOT NULL)
  EXECUTE FUNCTION refuse('a reset link is good for one use');
CREATE TRIGGER payouts_go_forward BEFORE UPDATE ON payouts FOR EACH ROW
  WHEN (NEW.version <> OLD.version + 1
    OR NOT (OLD.status = 'submitted' AND NEW.status <> 'submitted' OR OLD.status = 'paid' AND NEW.status = 'failed')
    OR OLD.reference IS NOT NULL AND NEW.reference IS DISTINCT FROM OLD.reference)
  EXECUTE FUNCTION refuse('a payout is paid once, or fails once');
CREATE TRIGGER purchases_do_not_go_back BEFORE UPDATE ON purchases FOR EACH ROW
  WHEN (strpos(',quoting,held,signed,answered,ended,', ',' || NEW.phase || ',')
      < strpos(',quoting,held,signed,answered,ended,', ',' || OLD.phase || ',')
    OR OLD.phase = 'ended' AND OLD.known IN ('paid', 'unpaid') AND NEW.known IS DISTINCT FROM OLD.known)
  EXECUTE FUNCTION refuse('a purchase does not go back');
CREATE TRIGGER purchases_keep_their_payment BEFORE UPDATE ON purchases FOR EACH ROW
  WHEN (OLD.warrant_id IS NOT NULL AND NEW.warrant_id IS DISTINCT FROM OLD.warrant_id
    OR OLD.quoted_amount IS NOT NULL AND NEW.quoted_amount IS DISTINCT FROM OLD.quoted_amount
    OR OLD.quoted_asset IS NOT NULL AND NEW.quoted_asset IS DISTINCT FROM OLD.quoted_asset
    OR OLD.quoted_payee IS NOT NULL AND NEW.quoted_payee IS DISTINCT FROM OLD.quoted_payee
    OR OLD.timeout_seconds IS NOT NULL AND NEW.timeout_seconds IS DISTINCT FROM OLD.timeout_seconds
    OR OLD.pays IS NOT NULL AND NEW.pays IS DISTINCT FROM OLD.pays
    OR OLD.chain_id IS NOT NULL AND NEW.chain_id IS DISTINCT FROM OLD.chain_id
    OR OLD.contract IS NOT NULL AND NEW.contract IS DISTINCT FROM OLD.contract
    OR OLD.payer IS NOT NULL AND NEW.payer IS DISTINCT FROM OLD.payer
    OR OLD.nonce IS NOT NULL AND NEW.nonce IS DISTINCT FROM OLD.nonce
    OR OLD.valid_before IS NOT NULL AND NEW.valid_before IS DISTINCT FROM OLD.valid_before
    OR OLD.header IS NOT NULL AND NEW.header IS DISTINCT FROM OLD.header)
  EXECUTE FUNCTION refuse('what is paid, and the payment, are fixed once they are settled');
CREATE TRIGGER purchases_are_not_deleted BEFORE DELETE ON purchases FOR EACH ROW WHEN (OLD.phase <> 'quoting')
  EXECUTE FUNCTION refuse('purchases are kept');
CREATE TRIGGER purchases_keep_what_the_chain_said BEFORE UPDATE ON purchases FOR EACH ROW
  WHEN (NEW.chain_said IS DISTINCT FROM OLD.chain_said
    AND (OLD.chain_said IS NOT NULL OR NEW.chain_said NOT IN ('paid', 'unpaid') OR NEW.known_by IS DISTINCT FROM 'person'))
  EXECUTE FUNCTION refuse('the chain answers once what a person has attested');
CREATE TRIGGER purchases_acknowledged_once BEFORE UPDATE ON purchases FOR EACH ROW
  WHEN (NEW.acknowledged_at IS DISTINCT FROM OLD.acknowledged_at
    AND (OLD.acknowledged_at IS NOT NULL OR NEW.chain_said IS NULL OR NEW.chain_said = NEW.known))
  EXECUTE FUNCTION refuse('only what a chain contradicts is acknowledged, and once');
CREATE TRIGGER rail_states_keep_the_nonce BEFORE UPDATE ON rail_states FOR EACH ROW
  WHEN (NEW.mode <> OLD.mode OR NEW.asset <> OLD.asset
    OR NEW.chain_id = OLD.chain_id AND NEW.wallet = OLD.wallet
      AND coalesce(NEW.accepted_nonce, -1) < coalesce(OLD.accepted_nonce, -1))
  EXECUTE FUNCTION refuse('the nonce of a wallet never falls');
CREATE TRIGGER source_keys_are_not_changed BEFORE UPDATE ON source_keys FOR EACH ROW
  WHEN (OLD.removed_at IS NOT NULL
    OR (NEW.id, NEW.rowid, NEW.organisation_id, NEW.origin, NEW.signer, NEW.created_at) IS DISTINCT FROM
      (OLD.id, OLD.rowid, OLD.organisation_id, OLD.origin, OLD.signer, OLD.created_at))
  EXECUTE FUNCTION refuse('a source key is removed once, and not changed');
CREATE TRIGGER trace_begins_without_a_leaf BEFORE INSERT ON trace FOR EACH ROW WHEN (NEW.leaf_index IS NOT NULL)
  EXECUTE FUNCTION refuse('an entry becomes a leaf of the log later');
-- After: of a watch that is there already, the insert is an update.
CREATE TRIGGER treasury_watches_begin_reconciled AFTER INSERT ON treasury_watches FOR EACH ROW
  WHEN (NEW.received <> 0 OR NEW.sent <> 0 OR NEW.balance <> NEW.opening OR NEW.last_block <> NEW.first_block)
  EXECUTE FUNCTION refuse('a watch begins with the balance at its first block');
CREATE TRIGGER treasury_watches_add_up BEFORE UPDATE ON treasury_watches FOR EACH ROW
  WHEN (NEW.last_block = NEW.reconciled_block AND NEW.balance <> NEW.opening + NEW.received - NEW.sent)
  EXECUTE FUNCTION refuse('at the reconciled block the transfers add up to the balance');
CREATE TRIGGER warrants_settle_once BEFORE UPDATE ON warrants FOR EACH ROW WHEN (OLD.settled_at IS NOT NULL)
  EXECUTE FUNCTION refuse('a settled warrant is final');
CREATE TRIGGER warrants_open_without_a_grace BEFORE INSERT ON warrants FOR EACH ROW WHEN (NEW.grace_until IS NOT NULL)
  EXECUTE FUNCTION refuse('a grace comes from an interrupted check');
CREATE TRIGGER warrants_grace_is_short BEFORE UPDATE ON warrants FOR EACH ROW
  WHEN (NEW.grace_until IS NOT NULL AND NOT (
    NEW.state IN ('held', 'verifying', 'frozen') AND NEW.grace_until > NEW.deadline AND NEW.grace_until <= NEW.deadline + 3600000
  ))
  EXECUTE FUNCTION refuse('a grace ends within an hour after the deadline, and is for what awaits a check');
CREATE TRIGGER webhook_deliveries_end_once BEFORE UPDATE ON webhook_deliveries FOR EACH ROW
  WHEN (OLD.status IN ('delivered', 'exhausted'))
  EXECUTE FUNCTION refuse('a delivery that ended is never tried again');

-- Organisations, agents and people

-- The positions of the two are the first of a block each.
CREATE FUNCTION scopes_of_an_organisation() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
  INSERT INTO scopes (position, organisation_id, mode)
    VALUES (nextval('positions'), NEW.id, 'live'), (nextval('positions'), NEW.id, 'sandbox');
  RETURN NULL;
END $$;
CREATE TRIGGER scopes_of_an_organisation AFTER INSERT ON organisations FOR EACH ROW EXECUTE FUNCTION scopes_of_an_organisation();

CREATE FUNCTION api_keys_are_of_their_agent() RETURNS trigger LANGUAGE plpgsql
  SET search_path FROM CURRENT SET enable_seqscan = off AS $$
BEGIN
  IF NOT EXISTS (
    SELECT 1 FROM agents WHERE id = NEW.agent_id AND organisation_id = NEW.organisation_id AND mode = NEW.mode
  ) THEN
    RAISE EXCEPTION 'an API key has its agent''s organisation and mode';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER api_keys_are_of_their_agent BEFORE INSERT ON api_keys FOR EACH ROW EXECUTE FUNCTION api_keys_are_of_their_agent();

CREATE FUNCTION passkeys_stay_their_persons() RETURNS trigger LANGUAGE plpgsql
  SET search_path FROM CURRENT SET enable_seqscan = off AS $$
BEGIN
  IF EXISTS (SELECT 1 FROM passkeys WHERE id = NEW.id AND user_id <> NEW.user_id) THEN
    RAISE EXCEPTION 'a passkey stays its person''s';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER passkeys_stay_their_persons BEFORE INSERT ON passkeys FOR EACH ROW EXECUTE FUNCTION passkeys_stay_their_persons();

-- Rows of one statement come in no order: of those, none is later than the other.
CREATE FUNCTION session_totals_go_on() RETURNS trigger LANGUAGE plpgsql
  SET search_path FROM CURRENT SET enable_seqscan = off AS $$
BEGIN
  IF EXISTS (
    SELECT 1 FROM inserted
    WHERE (SELECT max(held_at) FROM session_totals WHERE session = inserted.session)
      > (SELECT max(held_at) FROM inserted AS together WHERE together.session = inserted.session)
  ) THEN
    RAISE EXCEPTION 'what a session held is history';
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER session_totals_go_on AFTER INSERT ON session_totals REFERENCING NEW TABLE AS inserted
  FOR EACH STATEMENT EXECUTE FUNCTION session_totals_go_on();

CREATE FUNCTION webhook_deliveries_are_of_their_endpoint() RETURNS trigger LANGUAGE plpgsql
  SET search_path FROM CURRENT SET enable_seqscan = off AS $$
BEGIN
  IF EXISTS (
    SELECT 1 FROM inserted
    WHERE (SELECT organisation_id = inserted.organisation_id AND mode = inserted.mode
      FROM webhooks WHERE id = inserted.webhook_id) IS NOT TRUE
  ) THEN
    RAISE EXCEPTION 'a delivery has its endpoint''s organisation and mode';
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER webhook_deliveries_are_of_their_endpoint AFTER INSERT ON webhook_deliveries REFERENCING NEW TABLE AS inserted
  FOR EACH STATEMENT EXECUTE FUNCTION webhook_deliveries_are_of_their_endpoint();

-- Warrants

CREATE FUNCTION warrants_of_their_account() RETURNS trigger LANGUAGE plpgsql
  SET search_path FROM CURRENT SET enable_seqscan = off AS $$
BEGIN
  IF EXISTS (
    SELECT 1 FROM inserted WHERE scope IS DISTINCT FROM (SELECT scope FROM accounts WHERE position = inserted.account)
  ) THEN
    RAISE EXCEPTION 'a warrant is held from an account of its scope';
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER warrants_of_their_account AFTER INSERT ON warrants REFERENCING NEW TABLE AS inserted
  FOR EACH STATEMENT EXECUTE FUNCTION warrants_of_their_account();

CREATE FUNCTION checks_of_a_known_warrant() RETURNS trigger LANGUAGE plpgsql
  SET search_path FROM CURRENT SET enable_seqscan = off AS $$
BEGIN
  IF EXISTS (SELECT 1 FROM inserted WHERE (SELECT true FROM warrants WHERE position = inserted.warrant) IS NOT TRUE) THEN
    RAISE EXCEPTION 'a check belongs to a warrant';
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER checks_of_a_known_warrant AFTER INSERT ON checks REFERENCING NEW TABLE AS inserted
  FOR EACH STATEMENT EXECUTE FUNCTION checks_of_a_known_warrant();

CREATE FUNCTION idempotency_keys_of_a_known_scope() RETURNS trigger LANGUAGE plpgsql
  SET search_path FROM CURRENT SET enable_seqscan = off AS $$
BEGIN
  IF EXISTS (SELECT 1 FROM inserted WHERE (SELECT true FROM scopes WHERE position = inserted.scope) IS NOT TRUE) THEN
    RAISE EXCEPTION 'an idempotency key belongs to a scope';
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER idempotency_keys_of_a_known_scope AFTER INSERT ON idempotency_keys REFERENCING NEW TABLE AS inserted
  FOR EACH STATEMENT EXECUTE FUNCTION idempotency_keys_of_a_known_scope();

CREATE FUNCTION purchases_of_a_known_warrant() RETURNS trigger LANGUAGE plpgsql
  SET search_path FROM CURRENT SET enable_seqscan = off AS $$
BEGIN
  IF NOT EXISTS (
    SELECT 1 FROM warrants JOIN scopes ON scopes.position = warrants.scope
    WHERE warrants.id = NEW.warrant_id AND scopes.organisation_id = NEW.organisation_id AND scopes.mode = NEW.mode
  ) THEN
    RAISE EXCEPTION 'a purchase has its warrant''s organisation and mode';
  END IF;
  RETURN NEW;
END $$;
-- A purchase that has its warrant keeps it: it is not looked for again.
CREATE TRIGGER purchases_of_a_known_warrant BEFORE UPDATE ON purchases FOR EACH ROW
  WHEN (NEW.warrant_id IS NOT NULL AND NEW.warrant_id IS DISTINCT FROM OLD.warrant_id)
  EXECUTE FUNCTION purchases_of_a_known_warrant();

-- Accounts, deposits and corrections

CREATE FUNCTION accounts_begin_empty() RETURNS trigger LANGUAGE plpgsql
  SET search_path FROM CURRENT SET enable_seqscan = off AS $$
BEGIN
  IF NEW.available <> 0 OR NEW.held <> 0 OR NEW.paid <> 0 OR NEW.funding <> 0 OR NEW.posted <> 0
    OR NEW.payable <> 0 OR NEW.submitted <> 0
    OR NOT EXISTS (SELECT 1 FROM scopes WHERE position = NEW.scope)
  THEN
    RAISE EXCEPTION 'an account begins empty, in a scope';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER accounts_begin_empty BEFORE INSERT ON accounts FOR EACH ROW EXECUTE FUNCTION accounts_begin_empty();

CREATE FUNCTION accounts_follow_their_postings() RETURNS trigger LANGUAGE plpgsql
  SET search_path FROM CURRENT SET enable_seqscan = off AS $$
BEGIN
  IF EXISTS (
    SELECT 1 FROM before JOIN after USING (position)
    WHERE (
      SELECT after.available = before.available + sum(available) AND after.held = before.held + sum(held)
        AND after.paid = before.paid + sum(paid) AND after.funding = before.funding + sum(funding)
        AND after.payable = before.payable + sum(payable) AND after.submitted = before.submitted + sum(submitted)
        AND after.posted = max(postings.position)
      FROM postings WHERE account = before.position AND postings.position > before.posted
    ) IS NOT TRUE
  ) THEN
    RAISE EXCEPTION 'a balance is the sum of its postings';
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER accounts_follow_their_postings AFTER UPDATE ON accounts REFERENCING OLD TABLE AS before NEW TABLE AS after
  FOR EACH STATEMENT EXECUTE FUNCTION accounts_follow_their_postings();

CREATE FUNCTION deposits_of_a_known_account() RETURNS trigger LANGUAGE plpgsql
  SET search_path FROM CURRENT SET enable_seqscan = off AS $$
BEGIN
  IF NOT EXISTS (SELECT 1 FROM accounts WHERE position = NEW.account) THEN
    RAISE EXCEPTION 'a deposit belongs to an account';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER deposits_of_a_known_account BEFORE INSERT ON deposits FOR EACH ROW EXECUTE FUNCTION deposits_of_a_known_account();

-- Of several corrections of a deposit in one statement, each follows those with a smaller position.
CREATE FUNCTION corrections_of_a_known_deposit() RETURNS trigger LANGUAGE plpgsql
  SET search_path FROM CURRENT SET enable_seqscan = off AS $$
BEGIN
  IF NEW.status = 'withdrawn' OR NEW.decided_at IS NOT NULL
    OR NEW.account IS DISTINCT FROM (SELECT account FROM deposits WHERE position = NEW.deposit)
    OR NEW.amount_before IS DISTINCT FROM coalesce(
      (SELECT amount_after FROM corrections
        WHERE deposit = NEW.deposit AND status = 'recorded' AND position < NEW.position ORDER BY position DESC LIMIT 1),
      (SELECT amount FROM deposits WHERE position = NEW.deposit)
    )
  THEN
    RAISE EXCEPTION 'a correction begins with what its deposit counts for';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER corrections_of_a_known_deposit BEFORE INSERT ON corrections FOR EACH ROW
  EXECUTE FUNCTION corrections_of_a_known_deposit();

CREATE FUNCTION chain_transfers_are_their_deposits() RETURNS trigger LANGUAGE plpgsql
  SET search_path FROM CURRENT SET enable_seqscan = off AS $$
BEGIN
  IF NOT EXISTS (
    SELECT 1 FROM treasury_watches AS watches, deposits
      JOIN accounts ON accounts.position = deposits.account JOIN scopes ON scopes.position = accounts.scope
    WHERE watches.id = NEW.watch AND deposits.id = NEW.deposit AND deposits.amount = NEW.amount
      AND deposits.reference = 'eip155:' || watches.chain_id || ':' || NEW.hash || '/' || NEW.ordinal
      AND accounts.asset = watches.asset AND scopes.mode = watches.mode
      AND NEW.block <= watches.reconciled_block
  ) THEN
    RAISE EXCEPTION 'a transfer is a deposit of its amount, reference, mode and asset, in a reconciled block';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER chain_transfers_are_their_deposits BEFORE UPDATE ON chain_transfers FOR EACH ROW
  WHEN (NEW.deposit IS NOT NULL AND OLD.deposit IS NULL)
  EXECUTE FUNCTION chain_transfers_are_their_deposits();

-- Payees and payouts

CREATE FUNCTION payees_begin_empty() RETURNS trigger LANGUAGE plpgsql
  SET search_path FROM CURRENT SET enable_seqscan = off AS $$
BEGIN
  IF NEW.payable <> 0 OR NEW.submitted <> 0 OR NEW.paid_out <> 0
    OR NOT EXISTS (SELECT 1 FROM accounts WHERE position = NEW.account)
  THEN
    RAISE EXCEPTION 'a payee begins with nothing, in an account';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER payees_begin_empty BEFORE INSERT ON payees FOR EACH ROW EXECUTE FUNCTION payees_begin_empty();

CREATE FUNCTION payees_follow_their_payouts() RETURNS trigger LANGUAGE plpgsql
  SET search_path FROM CURRENT SET enable_seqscan = off AS $$
BEGIN
  IF NEW.submitted <> (SELECT coalesce(sum(amount), 0) FROM payouts WHERE payee = OLD.position AND status = 'submitted') THEN
    RAISE EXCEPTION 'what is under way to a payee is in its payouts';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER payees_follow_their_payouts BEFORE UPDATE ON payees FOR EACH ROW WHEN (NEW.submitted <> OLD.submitted)
  EXECUTE FUNCTION payees_follow_their_payouts();

CREATE FUNCTION payout_waits_of_a_payee() RETURNS trigger LANGUAGE plpgsql
  SET search_path FROM CURRENT SET enable_seqscan = off AS $$
BEGIN
  IF NOT EXISTS (SELECT 1 FROM payees WHERE position = NEW.payee) THEN
    RAISE EXCEPTION 'a payee waits that there is';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER payout_waits_of_a_payee BEFORE INSERT ON payout_waits FOR EACH ROW EXECUTE FUNCTION payout_waits_of_a_payee();

CREATE FUNCTION payouts_begin_submitted() RETURNS trigger LANGUAGE plpgsql
  SET search_path FROM CURRENT SET enable_seqscan = off AS $$
BEGIN
  IF NEW.status <> 'submitted' OR NEW.version <> 1
    OR NEW.account IS DISTINCT FROM (SELECT account FROM payees WHERE position = NEW.payee)
  THEN
    RAISE EXCEPTION 'a payout begins as submitted, to a payee of its account';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER payouts_begin_submitted BEFORE INSERT ON payouts FOR EACH ROW EXECUTE FUNCTION payouts_begin_submitted();

CREATE FUNCTION payouts_on_a_rail_of_their_mode() RETURNS trigger LANGUAGE plpgsql
  SET search_path FROM CURRENT SET enable_seqscan = off AS $$
BEGIN
  IF NOT EXISTS (
    SELECT 1 FROM scopes
    WHERE position = (SELECT scope FROM accounts WHERE position = NEW.account)
      AND (NEW.rail = mode || '_book' OR NEW.rail = mode || '_evm')
  ) THEN
    RAISE EXCEPTION 'a payout goes by a rail of its mode';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER payouts_on_a_rail_of_their_mode BEFORE INSERT ON payouts FOR EACH ROW
  EXECUTE FUNCTION payouts_on_a_rail_of_their_mode();

CREATE FUNCTION payouts_end_with_their_transaction() RETURNS trigger LANGUAGE plpgsql
  SET search_path FROM CURRENT SET enable_seqscan = off AS $$
BEGIN
  IF EXISTS (
    SELECT 1 FROM payout_transactions JOIN chain_transactions USING (chain_id, wallet, nonce)
    WHERE payout = OLD.position AND state = 'open'
  ) THEN
    RAISE EXCEPTION 'a payout does not end while its transaction may get into a block';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER payouts_end_with_their_transaction BEFORE UPDATE ON payouts FOR EACH ROW WHEN (NEW.status <> OLD.status)
  EXECUTE FUNCTION payouts_end_with_their_transaction();

CREATE FUNCTION payout_transactions_of_a_payout() RETURNS trigger LANGUAGE plpgsql
  SET search_path FROM CURRENT SET enable_seqscan = off AS $$
BEGIN
  IF NEW.judged <> 0 OR NEW.problem IS NOT NULL OR NOT EXISTS (
    SELECT 1 FROM payouts
    WHERE position = NEW.payout AND account = NEW.account AND rail = NEW.rail AND status = 'submitted'
  ) THEN
    RAISE EXCEPTION 'a transaction pays a payout that is submitted on its rail';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER payout_transactions_of_a_payout BEFORE INSERT ON payout_transactions FOR EACH ROW
  EXECUTE FUNCTION payout_transactions_of_a_payout();

CREATE FUNCTION payout_transactions_are_signed() RETURNS trigger LANGUAGE plpgsql
  SET search_path FROM CURRENT SET enable_seqscan = off AS $$
BEGIN
  IF NOT EXISTS (
    SELECT 1 FROM chain_transactions
    WHERE chain_id = NEW.chain_id AND wallet = NEW.wallet AND nonce = NEW.nonce AND state = 'open' AND "to" = NEW.token
  ) OR EXISTS (
    SELECT 1 FROM log_anchors WHERE chain_id = NEW.chain_id AND wallet = NEW.wallet AND nonce = NEW.nonce
  ) THEN
    RAISE EXCEPTION 'a payout has a transaction of its own, to its token';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER payout_transactions_are_signed BEFORE INSERT ON payout_transactions FOR EACH ROW
  EXECUTE FUNCTION payout_transactions_are_signed();

-- Postings

CREATE FUNCTION postings_of_a_known_kind() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF EXISTS (
    SELECT 1 FROM inserted
    WHERE NOT (kind = 'hold' OR kind = 'settlement' OR kind = 'deposit' OR kind = 'payout_submitted' OR kind = 'payout_paid'
      OR kind = 'payout_failed' OR kind = 'correction')
  ) THEN
    RAISE EXCEPTION 'a posting is a deposit or its correction, a hold, a settlement, or a move of a payout';
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER postings_of_a_known_kind AFTER INSERT ON postings REFERENCING NEW TABLE AS inserted
  FOR EACH STATEMENT EXECUTE FUNCTION postings_of_a_known_kind();

CREATE FUNCTION postings_on_a_rail_of_their_mode() RETURNS trigger LANGUAGE plpgsql
  SET search_path FROM CURRENT SET enable_seqscan = off AS $$
BEGIN
  IF EXISTS (
    SELECT 1 FROM inserted
    WHERE (
      SELECT rail = mode || '_book' OR rail = mode || '_evm' AND starts_with(kind, 'payout_')
      FROM scopes WHERE position = (SELECT scope FROM accounts WHERE position = inserted.account)
    ) IS NOT TRUE
  ) THEN
    RAISE EXCEPTION 'a posting moves an account of the mode of its rail';
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER postings_on_a_rail_of_their_mode AFTER INSERT ON postings REFERENCING NEW TABLE AS inserted
  FOR EACH STATEMENT EXECUTE FUNCTION postings_on_a_rail_of_their_mode();

-- A warrant that was opened and settled in one batch is settled already: then its settlement follows its hold.
CREATE FUNCTION postings_hold_an_amount() RETURNS trigger LANGUAGE plpgsql
  SET search_path FROM CURRENT SET enable_seqscan = off AS $$
BEGIN
  IF EXISTS (
    SELECT 1 FROM inserted AS posting
    WHERE kind = 'hold' AND (
      SELECT account = posting.account AND posting.held = amount AND posting.paid = 0 AND posting.funding = 0
        AND posting.payable = 0 AND posting.submitted = 0
        AND (settled_at IS NULL OR (
          SELECT later.position > posting.position FROM postings AS later
          WHERE later.cause = posting.cause AND later.kind = 'settlement'))
      FROM warrants WHERE position = posting.cause
    ) IS NOT TRUE
  ) THEN
    RAISE EXCEPTION 'a hold is the amount of a warrant of the same account';
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER postings_hold_an_amount AFTER INSERT ON postings REFERENCING NEW TABLE AS inserted
  FOR EACH STATEMENT EXECUTE FUNCTION postings_hold_an_amount();

CREATE FUNCTION postings_settle_a_warrant() RETURNS trigger LANGUAGE plpgsql
  SET search_path FROM CURRENT SET enable_seqscan = off AS $$
BEGIN
  IF EXISTS (
    SELECT 1 FROM inserted AS posting
    WHERE kind = 'settlement' AND (
      SELECT account = posting.account AND settled_at IS NOT NULL AND posting.held = -amount AND posting.funding = 0
        AND posting.paid = amount / 10000 * coalesce(released_bps, 0) + amount % 10000 * coalesce(released_bps, 0) / 10000
        AND posting.payable = CASE
          WHEN posting.paid = 0 OR (SELECT contract IS NOT NULL FROM purchases WHERE warrant_id = warrants.id) THEN 0
          ELSE posting.paid
        END
        AND posting.submitted = 0
      FROM warrants WHERE position = posting.cause
    ) IS NOT TRUE
  ) THEN
    RAISE EXCEPTION 'a settlement is what its warrant says, of the same account';
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER postings_settle_a_warrant AFTER INSERT ON postings REFERENCING NEW TABLE AS inserted
  FOR EACH STATEMENT EXECUTE FUNCTION postings_settle_a_warrant();

CREATE FUNCTION postings_of_a_known_deposit() RETURNS trigger LANGUAGE plpgsql
  SET search_path FROM CURRENT SET enable_seqscan = off AS $$
BEGIN
  IF EXISTS (
    SELECT 1 FROM inserted AS posting
    WHERE kind = 'deposit' AND (
      SELECT account = posting.account AND amount = posting.available AND posting.held = 0 AND posting.paid = 0
        AND posting.payable = 0 AND posting.submitted = 0
      FROM deposits WHERE position = posting.cause
    ) IS NOT TRUE
  ) THEN
    RAISE EXCEPTION 'a posting brings the amount of a deposit of the same account';
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER postings_of_a_known_deposit AFTER INSERT ON postings REFERENCING NEW TABLE AS inserted
  FOR EACH STATEMENT EXECUTE FUNCTION postings_of_a_known_deposit();

CREATE FUNCTION postings_of_a_known_correction() RETURNS trigger LANGUAGE plpgsql
  SET search_path FROM CURRENT SET enable_seqscan = off AS $$
BEGIN
  IF EXISTS (
    SELECT 1 FROM inserted AS posting
    WHERE kind = 'correction' AND (
      SELECT account = posting.account AND status = 'recorded' AND posting.available = amount_after - amount_before
        AND posting.held = 0 AND posting.paid = 0 AND posting.payable = 0 AND posting.submitted = 0
      FROM corrections WHERE position = posting.cause
    ) IS NOT TRUE
  ) THEN
    RAISE EXCEPTION 'a correction is posted once it is recorded, to the account of its deposit';
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER postings_of_a_known_correction AFTER INSERT ON postings REFERENCING NEW TABLE AS inserted
  FOR EACH STATEMENT EXECUTE FUNCTION postings_of_a_known_correction();

-- A payout may have gone on in the same batch: then what it went on to is posted after this.
CREATE FUNCTION postings_of_a_known_payout() RETURNS trigger LANGUAGE plpgsql
  SET search_path FROM CURRENT SET enable_seqscan = off AS $$
BEGIN
  IF EXISTS (
    SELECT 1 FROM inserted AS posting
    WHERE kind IN ('payout_submitted', 'payout_paid', 'payout_failed') AND (
      SELECT account = posting.account AND rail = posting.rail
        AND posting.available = 0 AND posting.held = 0 AND posting.paid = 0
        AND posting.payable = CASE kind WHEN 'payout_submitted' THEN -amount WHEN 'payout_failed' THEN amount ELSE 0 END
        AND posting.submitted = CASE
          WHEN kind = 'payout_submitted' THEN amount
          WHEN kind = 'payout_failed' AND (
            SELECT earlier.position < posting.position FROM postings AS earlier
            WHERE earlier.cause = posting.cause AND earlier.kind = 'payout_paid') THEN 0
          ELSE -amount
        END
        AND ('payout_' || status = kind
          OR kind = 'payout_submitted' AND status = 'paid' AND (
            SELECT later.position > posting.position FROM postings AS later
            WHERE later.cause = posting.cause AND later.kind = 'payout_paid')
          OR kind IN ('payout_submitted', 'payout_paid') AND status = 'failed' AND (
            SELECT later.position > posting.position FROM postings AS later
            WHERE later.cause = posting.cause AND later.kind = 'payout_failed'))
      FROM payouts WHERE position = posting.cause
    ) IS NOT TRUE
  ) THEN
    RAISE EXCEPTION 'a payout is posted as it says, to the account of its payee';
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER postings_of_a_known_payout AFTER INSERT ON postings REFERENCING NEW TABLE AS inserted
  FOR EACH STATEMENT EXECUTE FUNCTION postings_of_a_known_payout();

CREATE FUNCTION postings_of_a_signed_payout() RETURNS trigger LANGUAGE plpgsql
  SET search_path FROM CURRENT SET enable_seqscan = off AS $$
BEGIN
  IF EXISTS (
    SELECT 1 FROM inserted AS posting
    WHERE starts_with(kind, 'payout_') AND right(rail, 4) = '_evm'
      AND (SELECT true FROM payout_transactions WHERE payout = posting.cause) IS NOT TRUE
  ) THEN
    RAISE EXCEPTION 'a payout on a chain has its transaction';
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER postings_of_a_signed_payout AFTER INSERT ON postings REFERENCING NEW TABLE AS inserted
  FOR EACH STATEMENT EXECUTE FUNCTION postings_of_a_signed_payout();

-- The log

CREATE FUNCTION leaves_of_the_log() RETURNS int8 LANGUAGE sql STABLE SET search_path FROM CURRENT SET enable_seqscan = off AS $$
  SELECT greatest(
    (SELECT coalesce(max(leaf_index), -1) + 1 FROM trace WHERE leaf_index IS NOT NULL),
    (SELECT coalesce(max(leaf_index), -1) + 1 FROM solvency_statements WHERE leaf_index IS NOT NULL)
  )
$$;

-- The rows of a statement come in no order. They are the next leaves where no leaf of another row is among them or after them, and
-- the one before them is there. No two are the same: a unique index sees to that.
CREATE FUNCTION next_leaves(leaves int8[]) RETURNS boolean LANGUAGE sql STABLE
  SET search_path FROM CURRENT SET enable_seqscan = off AS $$
  SELECT last - first + 1 = cardinality(leaves)
    AND (SELECT count(*) FROM trace WHERE leaf_index >= first)
      + (SELECT count(*) FROM solvency_statements WHERE leaf_index >= first) = cardinality(leaves)
    AND (first = 0 OR EXISTS (SELECT 1 FROM trace WHERE leaf_index = first - 1)
      OR EXISTS (SELECT 1 FROM solvency_statements WHERE leaf_index = first - 1))
  FROM (SELECT min(leaf) AS first, max(leaf) AS last FROM unnest(leaves) AS leaf) AS bounds
$$;

CREATE FUNCTION trace_gets_a_leaf_once() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
  IF EXISTS (SELECT 1 FROM before WHERE leaf_index IS NOT NULL) OR EXISTS (SELECT 1 FROM after WHERE leaf_index IS NULL)
    OR NOT next_leaves(ARRAY(SELECT leaf_index FROM after))
  THEN
    RAISE EXCEPTION 'an entry becomes the next leaf of the log, once';
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER trace_gets_a_leaf_once AFTER UPDATE ON trace REFERENCING OLD TABLE AS before NEW TABLE AS after
  FOR EACH STATEMENT EXECUTE FUNCTION trace_gets_a_leaf_once();

CREATE FUNCTION solvency_statements_get_a_leaf_once() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
  IF EXISTS (SELECT 1 FROM before WHERE leaf_index IS NOT NULL) OR EXISTS (SELECT 1 FROM after WHERE leaf_index IS NULL)
    OR NOT next_leaves(ARRAY(SELECT leaf_index FROM after))
  THEN
    RAISE EXCEPTION 'a statement becomes the next leaf of the log, once';
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER solvency_statements_get_a_leaf_once AFTER UPDATE ON solvency_statements
  REFERENCING OLD TABLE AS before NEW TABLE AS after
  FOR EACH STATEMENT EXECUTE FUNCTION solvency_statements_get_a_leaf_once();

CREATE FUNCTION solvency_statements_go_on() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
  IF NEW.number IS DISTINCT FROM (SELECT coalesce(max(number), 0) + 1 FROM solvency_statements) OR NEW.leaf_index IS NOT NULL THEN
    RAISE EXCEPTION 'a statement follows the one before it, and becomes a leaf of the log later';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER solvency_statements_go_on BEFORE INSERT ON solvency_statements FOR EACH ROW
  EXECUTE FUNCTION solvency_statements_go_on();

CREATE FUNCTION log_checkpoints_go_on() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
  IF NEW.number IS DISTINCT FROM (SELECT coalesce(max(number), 0) + 1 FROM log_checkpoints)
    OR NEW.size <= (SELECT coalesce(max(size), 0) FROM log_checkpoints)
    OR NEW.size > leaves_of_the_log()
  THEN
    RAISE EXCEPTION 'a checkpoint is of a longer log than the one before it';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER log_checkpoints_go_on BEFORE INSERT ON log_checkpoints FOR EACH ROW EXECUTE FUNCTION log_checkpoints_go_on();

CREATE FUNCTION log_anchors_are_no_payouts() RETURNS trigger LANGUAGE plpgsql
  SET search_path FROM CURRENT SET enable_seqscan = off AS $$
BEGIN
  IF EXISTS (
    SELECT 1 FROM payout_transactions WHERE chain_id = NEW.chain_id AND wallet = NEW.wallet AND nonce = NEW.nonce
  ) THEN
    RAISE EXCEPTION 'an anchor has a transaction of its own';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER log_anchors_are_no_payouts BEFORE INSERT ON log_anchors FOR EACH ROW EXECUTE FUNCTION log_anchors_are_no_payouts();
