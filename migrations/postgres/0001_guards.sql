-- What the tables refuse, whoever writes to them: the triggers of SQLite, with their names and their words.
--
-- Most of them read nothing but the row. They are conditions of triggers that all call one function, with the words. What refuses every
-- change of a table or of some of its columns is asked once a statement: a statement that names such a column is refused even where it
-- finds no row. A guard that reads other rows is a function of its own, which is called for each row. It is called before the row is
-- written where what it reads was there before the statement, and after the statement where the other rows of it count, or where the
-- insert of a row that is there already is an update. There are no transition tables, which YugabyteDB lacks.
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

-- Rows of one statement come in no order: of those, none is later than the other. Stable: it sees what was there before the statement.
CREATE FUNCTION session_totals_go_on() RETURNS trigger LANGUAGE plpgsql STABLE
  SET search_path FROM CURRENT SET enable_seqscan = off AS $$
BEGIN
  IF EXISTS (SELECT 1 FROM session_totals WHERE session = NEW.session AND held_at > NEW.held_at) THEN
    RAISE EXCEPTION 'what a session held is history';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER session_totals_go_on BEFORE INSERT ON session_totals FOR EACH ROW EXECUTE FUNCTION session_totals_go_on();

CREATE FUNCTION webhook_deliveries_are_of_their_endpoint() RETURNS trigger LANGUAGE plpgsql
  SET search_path FROM CURRENT SET enable_seqscan = off AS $$
BEGIN
  IF NOT EXISTS (
    SELECT 1 FROM webhooks WHERE id = NEW.webhook_id AND organisation_id = NEW.organisation_id AND mode = NEW.mode
  ) THEN
    RAISE EXCEPTION 'a delivery has its endpoint''s organisation and mode';
  END IF;
  RETURN NULL;
END $$;
-- After: of a delivery that is there already, the insert is an update.
CREATE TRIGGER webhook_deliveries_are_of_their_endpoint AFTER INSERT ON webhook_deliveries FOR EACH ROW
  EXECUTE FUNCTION webhook_deliveries_are_of_their_endpoint();

-- Warrants

CREATE FUNCTION warrants_of_their_account() RETURNS trigger LANGUAGE plpgsql
  SET search_path FROM CURRENT SET enable_seqscan = off AS $$
BEGIN
  IF NEW.scope IS DISTINCT FROM (SELECT scope FROM accounts WHERE position = NEW.account) THEN
    RAISE EXCEPTION 'a warrant is held from an account of its scope';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER warrants_of_their_account BEFORE INSERT ON warrants FOR EACH ROW EXECUTE FUNCTION warrants_of_their_account();

CREATE FUNCTION checks_of_a_known_warrant() RETURNS trigger LANGUAGE plpgsql
  SET search_path FROM CURRENT SET enable_seqscan = off AS $$
BEGIN
  IF NOT EXISTS (SELECT 1 FROM warrants WHERE position = NEW.warrant) THEN
    RAISE EXCEPTION 'a check belongs to a warrant';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER checks_of_a_known_warrant BEFORE INSERT ON checks FOR EACH ROW EXECUTE FUNCTION checks_of_a_known_warrant();

CREATE FUNCTION idempotency_keys_of_a_known_scope() RETURNS trigger LANGUAGE plpgsql
  SET search_path FROM CURRENT SET enable_seqscan = off AS $$
BEGIN
  IF NOT EXISTS (SELECT 1 FROM scopes WHERE position = NEW.scope) THEN
    RAISE EXCEPTION 'an idempotency key belongs to a scope';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER idempotency_keys_of_a_known_scope BEFORE INSERT ON idempotency_keys FOR EACH ROW
  EXECUTE FUNCTION idempotency_keys_of_a_known_scope();

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
  IF (
    SELECT NEW.available = OLD.available + sum(available) AND NEW.held = OLD.held + sum(held)
      AND NEW.paid = OLD.paid + sum(paid) AND NEW.funding = OLD.funding + sum(funding)
      AND NEW.payable = OLD.payable + sum(payable) AND NEW.submitted = OLD.submitted + sum(submitted)
      AND NEW.posted = max(position)
    FROM postings WHERE account = OLD.position AND position > OLD.posted
  ) IS NOT TRUE THEN
    RAISE EXCEPTION 'a balance is the sum of its postings';
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER accounts_follow_their_postings AFTER UPDATE ON accounts FOR EACH ROW
  EXECUTE FUNCTION accounts_follow_their_postings();

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

CREATE TRIGGER postings_of_a_known_kind BEFORE INSERT ON postings FOR EACH ROW
  WHEN (NEW.kind NOT IN ('hold', 'settlement', 'deposit', 'payout_submitted', 'payout_paid', 'payout_failed', 'correction'))
  EXECUTE FUNCTION refuse('a posting is a deposit or its correction, a hold, a settlement, or a move of a payout');

CREATE FUNCTION postings_on_a_rail_of_their_mode() RETURNS trigger LANGUAGE plpgsql
  SET search_path FROM CURRENT SET enable_seqscan = off AS $$
BEGIN
  IF NOT EXISTS (
    SELECT 1 FROM scopes
    WHERE position = (SELECT scope FROM accounts WHERE position = NEW.account)
      AND (NEW.rail = mode || '_book' OR NEW.rail = mode || '_evm' AND starts_with(NEW.kind, 'payout_'))
  ) THEN
    RAISE EXCEPTION 'a posting moves an account of the mode of its rail';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER postings_on_a_rail_of_their_mode BEFORE INSERT ON postings FOR EACH ROW
  EXECUTE FUNCTION postings_on_a_rail_of_their_mode();

-- A warrant that was opened and settled in one batch is settled already: then its settlement follows its hold.
CREATE FUNCTION postings_hold_an_amount() RETURNS trigger LANGUAGE plpgsql
  SET search_path FROM CURRENT SET enable_seqscan = off AS $$
BEGIN
  IF (
    SELECT account = NEW.account AND NEW.held = amount AND NEW.paid = 0 AND NEW.funding = 0
      AND NEW.payable = 0 AND NEW.submitted = 0
      AND (settled_at IS NULL OR (
        SELECT later.position > NEW.position FROM postings AS later
        WHERE later.cause = NEW.cause AND later.kind = 'settlement'))
    FROM warrants WHERE position = NEW.cause
  ) IS NOT TRUE THEN
    RAISE EXCEPTION 'a hold is the amount of a warrant of the same account';
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER postings_hold_an_amount AFTER INSERT ON postings FOR EACH ROW WHEN (NEW.kind = 'hold')
  EXECUTE FUNCTION postings_hold_an_amount();

CREATE FUNCTION postings_settle_a_warrant() RETURNS trigger LANGUAGE plpgsql
  SET search_path FROM CURRENT SET enable_seqscan = off AS $$
BEGIN
  IF (
    SELECT account = NEW.account AND settled_at IS NOT NULL AND NEW.held = -amount AND NEW.funding = 0
      AND NEW.paid = amount / 10000 * coalesce(released_bps, 0) + amount % 10000 * coalesce(released_bps, 0) / 10000
      AND NEW.payable = CASE
        WHEN NEW.paid = 0 OR (SELECT contract IS NOT NULL FROM purchases WHERE warrant_id = warrants.id) THEN 0
        ELSE NEW.paid
      END
      AND NEW.submitted = 0
    FROM warrants WHERE position = NEW.cause
  ) IS NOT TRUE THEN
    RAISE EXCEPTION 'a settlement is what its warrant says, of the same account';
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER postings_settle_a_warrant AFTER INSERT ON postings FOR EACH ROW WHEN (NEW.kind = 'settlement')
  EXECUTE FUNCTION postings_settle_a_warrant();

CREATE FUNCTION postings_of_a_known_deposit() RETURNS trigger LANGUAGE plpgsql
  SET search_path FROM CURRENT SET enable_seqscan = off AS $$
BEGIN
  IF (
    SELECT account = NEW.account AND amount = NEW.available AND NEW.held = 0 AND NEW.paid = 0
      AND NEW.payable = 0 AND NEW.submitted = 0
    FROM deposits WHERE position = NEW.cause
  ) IS NOT TRUE THEN
    RAISE EXCEPTION 'a posting brings the amount of a deposit of the same account';
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER postings_of_a_known_deposit AFTER INSERT ON postings FOR EACH ROW WHEN (NEW.kind = 'deposit')
  EXECUTE FUNCTION postings_of_a_known_deposit();

CREATE FUNCTION postings_of_a_known_correction() RETURNS trigger LANGUAGE plpgsql
  SET search_path FROM CURRENT SET enable_seqscan = off AS $$
BEGIN
  IF (
    SELECT account = NEW.account AND status = 'recorded' AND NEW.available = amount_after - amount_before
      AND NEW.held = 0 AND NEW.paid = 0 AND NEW.payable = 0 AND NEW.submitted = 0
    FROM corrections WHERE position = NEW.cause
  ) IS NOT TRUE THEN
    RAISE EXCEPTION 'a correction is posted once it is recorded, to the account of its deposit';
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER postings_of_a_known_correction AFTER INSERT ON postings FOR EACH ROW WHEN (NEW.kind = 'correction')
  EXECUTE FUNCTION postings_of_a_known_correction();

-- A payout may have gone on in the same batch: then what it went on to is posted after this.
CREATE FUNCTION postings_of_a_known_payout() RETURNS trigger LANGUAGE plpgsql
  SET search_path FROM CURRENT SET enable_seqscan = off AS $$
BEGIN
  IF (
    SELECT account = NEW.account AND rail = NEW.rail
      AND NEW.available = 0 AND NEW.held = 0 AND NEW.paid = 0
      AND NEW.payable = CASE NEW.kind WHEN 'payout_submitted' THEN -amount WHEN 'payout_failed' THEN amount ELSE 0 END
      AND NEW.submitted = CASE
        WHEN NEW.kind = 'payout_submitted' THEN amount
        WHEN NEW.kind = 'payout_failed' AND (
          SELECT earlier.position < NEW.position FROM postings AS earlier
          WHERE earlier.cause = NEW.cause AND earlier.kind = 'payout_paid') THEN 0
        ELSE -amount
      END
      AND ('payout_' || status = NEW.kind
        OR NEW.kind = 'payout_submitted' AND status = 'paid' AND (
          SELECT later.position > NEW.position FROM postings AS later
          WHERE later.cause = NEW.cause AND later.kind = 'payout_paid')
        OR NEW.kind IN ('payout_submitted', 'payout_paid') AND status = 'failed' AND (
          SELECT later.position > NEW.position FROM postings AS later
          WHERE later.cause = NEW.cause AND later.kind = 'payout_failed'))
    FROM payouts WHERE position = NEW.cause
  ) IS NOT TRUE THEN
    RAISE EXCEPTION 'a payout is posted as it says, to the account of its payee';
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER postings_of_a_known_payout AFTER INSERT ON postings FOR EACH ROW
  WHEN (NEW.kind IN ('payout_submitted', 'payout_paid', 'payout_failed'))
  EXECUTE FUNCTION postings_of_a_known_payout();

CREATE FUNCTION postings_of_a_signed_payout() RETURNS trigger LANGUAGE plpgsql
  SET search_path FROM CURRENT SET enable_seqscan = off AS $$
BEGIN
  IF NOT EXISTS (SELECT 1 FROM payout_transactions WHERE payout = NEW.cause) THEN
    RAISE EXCEPTION 'a payout on a chain has its transaction';
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER postings_of_a_signed_payout AFTER INSERT ON postings FOR EACH ROW
  WHEN (starts_with(NEW.kind, 'payout_') AND right(NEW.rail, 4) = '_evm')
  EXECUTE FUNCTION postings_of_a_signed_payout();

-- The log

CREATE FUNCTION leaves_of_the_log() RETURNS int8 LANGUAGE sql STABLE SET search_path FROM CURRENT SET enable_seqscan = off AS $$
  SELECT greatest(
    (SELECT coalesce(max(leaf_index), -1) + 1 FROM trace WHERE leaf_index IS NOT NULL),
    (SELECT coalesce(max(leaf_index), -1) + 1 FROM solvency_statements WHERE leaf_index IS NOT NULL)
  )
$$;

-- Whether there is a leaf before this one. Volatile: asked when a statement has ended, it sees what that has written. The next function
-- calls it, whose settings it has.
CREATE FUNCTION follows_a_leaf(leaf int8) RETURNS boolean LANGUAGE plpgsql VOLATILE AS $$
BEGIN
  PERFORM 1 FROM trace WHERE leaf_index = leaf - 1;
  RETURN FOUND OR leaf = 0 OR EXISTS (SELECT 1 FROM solvency_statements WHERE leaf_index = leaf - 1);
END $$;

-- The rows of a statement come in no order. Each follows a leaf that is there when the statement has ended. The first of them follows what
-- was there before the statement, and must follow all of it. So they are the next leaves, without a gap. Stable: what this function itself
-- reads is what was there before the statement.
CREATE FUNCTION gets_a_leaf_once() RETURNS trigger LANGUAGE plpgsql STABLE SET search_path FROM CURRENT SET enable_seqscan = off AS $$
BEGIN
  IF OLD.leaf_index IS NOT NULL OR NEW.leaf_index IS NULL OR NOT follows_a_leaf(NEW.leaf_index) THEN
    RAISE EXCEPTION '%', TG_ARGV[0];
  END IF;
  IF NEW.leaf_index = 0 OR EXISTS (SELECT 1 FROM trace WHERE leaf_index = NEW.leaf_index - 1)
    OR EXISTS (SELECT 1 FROM solvency_statements WHERE leaf_index = NEW.leaf_index - 1)
  THEN
    IF EXISTS (SELECT 1 FROM trace WHERE leaf_index >= NEW.leaf_index)
      OR EXISTS (SELECT 1 FROM solvency_statements WHERE leaf_index >= NEW.leaf_index)
    THEN
      RAISE EXCEPTION '%', TG_ARGV[0];
    END IF;
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER trace_gets_a_leaf_once AFTER UPDATE ON trace FOR EACH ROW
  EXECUTE FUNCTION gets_a_leaf_once('an entry becomes the next leaf of the log, once');
CREATE TRIGGER solvency_statements_get_a_leaf_once AFTER UPDATE ON solvency_statements FOR EACH ROW
  EXECUTE FUNCTION gets_a_leaf_once('a statement becomes the next leaf of the log, once');

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
