-- The ledger's tables, as the migrations of SQLite have made them up to 0047. test/postgres/schema.ts compares the two.
--
-- Columns: an integer is an int8, also a boolean (0 or 1); a text is in the order of its bytes; a blob is a bytea.
-- Rows: SQLite numbers the rows of every table in the order of commits. Here a row has its number as position, or as rowid where its
-- primary key is another. Holdfast gives it, from a block of 1,024 that it takes from the sequence.
-- Indexes: one that is not unique ends with that number, as each of SQLite's does without saying so.

CREATE SEQUENCE positions AS int8 INCREMENT BY 1024 START 1024 NO CYCLE;

-- Rows that are locked by name, for what belongs to no organisation.
CREATE TABLE locks (
  name text COLLATE "C" NOT NULL,
  PRIMARY KEY (name)
);

-- One row for each transaction that changed something: it says whether a COMMIT whose answer was lost took place, and what it changed
-- that pages of other instances show. Only an instance of the same version understands that; null: anything may have changed.
CREATE TABLE commits (
  id text COLLATE "C" NOT NULL,
  instance text COLLATE "C" NOT NULL,
  at int8 NOT NULL,
  version text COLLATE "C",
  news text COLLATE "C",
  PRIMARY KEY (id)
);
CREATE INDEX commits_by_time ON commits (at);

CREATE TABLE accounts (
  position int8 NOT NULL,
  scope int8 NOT NULL,
  asset text COLLATE "C" NOT NULL,
  available int8 NOT NULL,
  held int8 NOT NULL,
  paid int8 NOT NULL,
  funding int8 NOT NULL,
  posted int8 NOT NULL,
  digest int8,
  payable int8 NOT NULL DEFAULT 0,
  submitted int8 NOT NULL DEFAULT 0,
  PRIMARY KEY (position),
  CONSTRAINT accounts_not_negative CHECK (available >= 0 AND held >= 0 AND paid >= 0),
  CONSTRAINT accounts_sum_to_zero CHECK (available + held + paid + funding = 0)
) WITH (fillfactor = 50);
CREATE UNIQUE INDEX accounts_by_scope ON accounts (scope, asset);

CREATE TABLE imported_tables (
  name text COLLATE "C" NOT NULL,
  last int8 NOT NULL,
  digest int8,
  rowid int8 NOT NULL,
  PRIMARY KEY (name)
);
CREATE UNIQUE INDEX imported_tables_by_row ON imported_tables (rowid);

CREATE TABLE organisations (
  id text COLLATE "C" NOT NULL,
  name text COLLATE "C" NOT NULL,
  kill_switch int8 NOT NULL,
  passkey_threshold int8,
  created_at int8 NOT NULL,
  hides_specs int8 NOT NULL DEFAULT 0,
  second_factor int8 NOT NULL DEFAULT 0,
  messaging_decisions int8 NOT NULL DEFAULT 0,
  rowid int8 NOT NULL,
  PRIMARY KEY (id)
);
CREATE UNIQUE INDEX organisations_by_row ON organisations (rowid);

CREATE TABLE agents (
  position int8 NOT NULL,
  id text COLLATE "C" NOT NULL,
  organisation_id text COLLATE "C" NOT NULL,
  mode text COLLATE "C" NOT NULL,
  name text COLLATE "C" NOT NULL,
  identity text COLLATE "C" NOT NULL,
  status text COLLATE "C" NOT NULL,
  failure_budget int8 NOT NULL,
  failure_count int8 NOT NULL,
  must_be_named int8 NOT NULL,
  created_at int8 NOT NULL,
  digest int8,
  PRIMARY KEY (position),
  FOREIGN KEY (organisation_id) REFERENCES organisations (id),
  CONSTRAINT agents_mode CHECK ((mode = 'sandbox' OR mode = 'live')),
  CONSTRAINT agents_status CHECK ((status = 'active' OR status = 'paused' OR status = 'killed')),
  CONSTRAINT agents_failures CHECK (failure_budget > 0 AND failure_count >= 0)
);
CREATE UNIQUE INDEX agents_id_unique ON agents (id);
CREATE INDEX agents_by_organisation ON agents (organisation_id, mode, id, position);

CREATE TABLE api_keys (
  id text COLLATE "C" NOT NULL,
  organisation_id text COLLATE "C" NOT NULL,
  agent_id text COLLATE "C" NOT NULL,
  mode text COLLATE "C" NOT NULL,
  secret_hash text COLLATE "C" NOT NULL,
  last_four text COLLATE "C" NOT NULL,
  created_at int8 NOT NULL,
  expires_at int8,
  last_used_at int8,
  revoked_at int8,
  rowid int8 NOT NULL,
  PRIMARY KEY (id),
  FOREIGN KEY (organisation_id) REFERENCES organisations (id),
  FOREIGN KEY (agent_id) REFERENCES agents (id),
  CONSTRAINT api_keys_mode CHECK ((mode = 'sandbox' OR mode = 'live'))
);
CREATE UNIQUE INDEX api_keys_by_row ON api_keys (rowid);
CREATE UNIQUE INDEX api_keys_by_hash ON api_keys (secret_hash);
CREATE INDEX api_keys_by_organisation ON api_keys (organisation_id, mode, id);
CREATE INDEX api_keys_by_agent ON api_keys (agent_id, id);

CREATE TABLE audit_entries (
  id text COLLATE "C" NOT NULL,
  organisation_id text COLLATE "C" NOT NULL,
  actor_kind text COLLATE "C" NOT NULL,
  actor_id text COLLATE "C",
  action text COLLATE "C" NOT NULL,
  subject text COLLATE "C" NOT NULL,
  before text COLLATE "C",
  after text COLLATE "C",
  recorded_at int8 NOT NULL,
  rowid int8 NOT NULL,
  PRIMARY KEY (id),
  FOREIGN KEY (organisation_id) REFERENCES organisations (id),
  CONSTRAINT audit_entries_actor CHECK ((actor_kind = 'machine') = (actor_id IS NULL))
);
CREATE UNIQUE INDEX audit_entries_by_row ON audit_entries (rowid);
CREATE INDEX audit_entries_by_organisation ON audit_entries (organisation_id, id);

CREATE TABLE users (
  id text COLLATE "C" NOT NULL,
  organisation_id text COLLATE "C" NOT NULL,
  email text COLLATE "C" NOT NULL,
  name text COLLATE "C" NOT NULL,
  role text COLLATE "C" NOT NULL,
  password_hash text COLLATE "C" NOT NULL,
  password_reset_at int8,
  removed_at int8,
  created_at int8 NOT NULL,
  rowid int8 NOT NULL,
  PRIMARY KEY (id),
  FOREIGN KEY (organisation_id) REFERENCES organisations (id),
  CONSTRAINT users_role CHECK ((role = 'viewer' OR role = 'operator' OR role = 'admin' OR role = 'owner'))
);
CREATE UNIQUE INDEX users_by_row ON users (rowid);
CREATE UNIQUE INDEX users_by_email ON users (email) WHERE removed_at IS NULL;
CREATE INDEX users_by_organisation ON users (organisation_id, rowid);

CREATE TABLE auth_sessions (
  token_hash text COLLATE "C" NOT NULL,
  user_id text COLLATE "C" NOT NULL,
  mode text COLLATE "C" NOT NULL,
  created_at int8 NOT NULL,
  expires_at int8 NOT NULL,
  passkey_proved int8 NOT NULL DEFAULT 0,
  network text COLLATE "C",
  agent text COLLATE "C",
  last_used_at int8,
  rowid int8 NOT NULL,
  PRIMARY KEY (token_hash),
  FOREIGN KEY (user_id) REFERENCES users (id),
  CONSTRAINT auth_sessions_mode CHECK ((mode = 'sandbox' OR mode = 'live'))
);
CREATE UNIQUE INDEX auth_sessions_by_row ON auth_sessions (rowid);
CREATE INDEX auth_sessions_by_end ON auth_sessions (expires_at, rowid);
CREATE INDEX auth_sessions_by_user ON auth_sessions (user_id, expires_at, rowid);

CREATE TABLE capsule_parts (
  hash text COLLATE "C" NOT NULL,
  part int8 NOT NULL,
  bytes bytea NOT NULL,
  rowid int8 NOT NULL,
  PRIMARY KEY (hash, part)
);
CREATE UNIQUE INDEX capsule_parts_by_row ON capsule_parts (rowid);

CREATE TABLE capsules (
  position int8 NOT NULL,
  id text COLLATE "C" NOT NULL,
  organisation_id text COLLATE "C" NOT NULL,
  mode text COLLATE "C" NOT NULL,
  facts text COLLATE "C" NOT NULL,
  stored_hash text COLLATE "C",
  parts int8 NOT NULL,
  bytes int8 NOT NULL,
  bytes_until int8 NOT NULL,
  created_at int8 NOT NULL,
  digest int8,
  PRIMARY KEY (position),
  FOREIGN KEY (organisation_id) REFERENCES organisations (id),
  CONSTRAINT capsules_mode CHECK ((mode = 'sandbox' OR mode = 'live')),
  CONSTRAINT capsules_bytes CHECK (bytes > 0 AND bytes_until >= bytes AND parts >= 0)
);
CREATE UNIQUE INDEX capsules_id_unique ON capsules (id);
CREATE INDEX capsules_of_scope ON capsules (organisation_id, mode, position);
CREATE INDEX capsules_by_creation ON capsules (created_at, position);
CREATE INDEX capsules_by_stored_hash ON capsules (stored_hash, position) WHERE stored_hash IS NOT NULL;

CREATE TABLE chain_transactions (
  chain_id int8 NOT NULL,
  wallet text COLLATE "C" NOT NULL,
  nonce int8 NOT NULL,
  "to" text COLLATE "C" NOT NULL,
  data text COLLATE "C" NOT NULL,
  gas int8 NOT NULL,
  signings text COLLATE "C" NOT NULL,
  state text COLLATE "C" NOT NULL,
  block int8,
  mined_hash text COLLATE "C",
  created_at int8 NOT NULL,
  digest int8,
  rowid int8 NOT NULL,
  PRIMARY KEY (chain_id, wallet, nonce),
  CONSTRAINT chain_transactions_state CHECK ((state = 'open' OR state = 'confirmed' OR state = 'given_up')),
  CONSTRAINT chain_transactions_confirmed CHECK ((state = 'confirmed') = (block IS NOT NULL) AND (block IS NULL) = (mined_hash IS NULL)),
  CONSTRAINT chain_transactions_signed CHECK (json_array_length(signings::json) > 0),
  CONSTRAINT chain_transactions_numbers CHECK (nonce >= 0 AND gas > 0)
);
CREATE UNIQUE INDEX chain_transactions_by_row ON chain_transactions (rowid);
CREATE INDEX chain_transactions_open ON chain_transactions (chain_id, wallet, nonce) WHERE state = 'open';

CREATE TABLE treasury_watches (
  id text COLLATE "C" NOT NULL,
  mode text COLLATE "C" NOT NULL,
  asset text COLLATE "C" NOT NULL,
  chain_id int8 NOT NULL,
  token text COLLATE "C" NOT NULL,
  address text COLLATE "C" NOT NULL,
  first_block int8 NOT NULL,
  first_hash text COLLATE "C" NOT NULL,
  opening int8 NOT NULL,
  last_block int8 NOT NULL,
  last_hash text COLLATE "C" NOT NULL,
  received int8 NOT NULL,
  sent int8 NOT NULL,
  reconciled_block int8 NOT NULL,
  reconciled_hash text COLLATE "C" NOT NULL,
  balance int8 NOT NULL,
  stopped text COLLATE "C",
  created_at int8 NOT NULL,
  digest int8,
  rowid int8 NOT NULL,
  PRIMARY KEY (id),
  CONSTRAINT treasury_watches_chain CHECK ((mode = 'sandbox' AND chain_id IN (11155111, 11155420, 84532, 43113, 80002, 421614, 11142220, 11124, 1328, 51, 2201, 10143, 324705682, 1337, 31337)) OR (mode = 'live' AND chain_id NOT IN (11155111, 11155420, 84532, 43113, 80002, 421614, 11142220, 11124, 1328, 51, 2201, 10143, 324705682, 1337, 31337))),
  CONSTRAINT treasury_watches_blocks CHECK (first_block >= 0 AND first_block <= reconciled_block AND reconciled_block <= last_block),
  CONSTRAINT treasury_watches_sums CHECK (opening >= 0 AND received >= 0 AND sent >= 0 AND balance >= 0),
  CONSTRAINT treasury_watches_stopped CHECK (stopped IS NULL OR (stopped = 'balance_differs' OR stopped = 'asset_changed' OR stopped = 'chain_replaced' OR stopped = 'too_large'))
);
CREATE UNIQUE INDEX treasury_watches_by_row ON treasury_watches (rowid);
CREATE UNIQUE INDEX treasury_watches_by_wallet ON treasury_watches (chain_id, token, address);

CREATE TABLE deposits (
  position int8 NOT NULL,
  id text COLLATE "C" NOT NULL,
  account int8 NOT NULL,
  amount int8 NOT NULL,
  reference text COLLATE "C",
  created_at int8 NOT NULL,
  digest int8,
  PRIMARY KEY (position),
  CONSTRAINT deposits_amount CHECK (amount > 0)
);
CREATE UNIQUE INDEX deposits_id_unique ON deposits (id);
CREATE UNIQUE INDEX deposits_by_reference ON deposits (account, reference) WHERE reference IS NOT NULL;
CREATE INDEX deposits_by_account ON deposits (account, position);

CREATE TABLE chain_transfers (
  watch text COLLATE "C" NOT NULL,
  hash text COLLATE "C" NOT NULL,
  ordinal int8 NOT NULL,
  id text COLLATE "C" NOT NULL,
  status text COLLATE "C" NOT NULL,
  counterparty text COLLATE "C" NOT NULL,
  amount int8 NOT NULL,
  block int8,
  block_hash text COLLATE "C",
  deposit text COLLATE "C",
  created_at int8 NOT NULL,
  digest int8,
  rowid int8 NOT NULL,
  PRIMARY KEY (watch, hash, ordinal),
  FOREIGN KEY (watch) REFERENCES treasury_watches (id),
  FOREIGN KEY (deposit) REFERENCES deposits (id),
  CONSTRAINT chain_transfers_amount CHECK (amount > 0),
  CONSTRAINT chain_transfers_ordinal CHECK (ordinal >= 0),
  CONSTRAINT chain_transfers_status CHECK ((status = 'found' OR status = 'unassigned' OR status = 'credited' OR status = 'sent')),
  CONSTRAINT chain_transfers_block CHECK ((block IS NULL) = (block_hash IS NULL)),
  CONSTRAINT chain_transfers_credited CHECK ((status = 'credited') = (deposit IS NOT NULL))
);
CREATE UNIQUE INDEX chain_transfers_by_row ON chain_transfers (rowid);
CREATE UNIQUE INDEX chain_transfers_id_unique ON chain_transfers (id);
CREATE INDEX chain_transfers_by_block ON chain_transfers (watch, block, rowid);
CREATE INDEX chain_transfers_to_assign ON chain_transfers (watch, status, rowid) WHERE deposit IS NULL AND status <> 'sent';
CREATE UNIQUE INDEX chain_transfers_of_deposit ON chain_transfers (deposit) WHERE deposit IS NOT NULL;

CREATE TABLE checks (
  position int8 NOT NULL,
  id text COLLATE "C" NOT NULL,
  warrant int8 NOT NULL,
  source_url text COLLATE "C" NOT NULL,
  http_status int8,
  bytes int8 NOT NULL,
  duration_ms int8 NOT NULL,
  score int8 NOT NULL,
  passed int8 NOT NULL,
  reason_codes text COLLATE "C" NOT NULL,
  evidence_hash bytea NOT NULL,
  details text COLLATE "C" NOT NULL,
  outcome text COLLATE "C" NOT NULL,
  band_label text COLLATE "C",
  evaluated_at int8 NOT NULL,
  evaluator_version int8,
  signed_by text COLLATE "C",
  capsule_hash bytea,
  digest int8,
  PRIMARY KEY (position),
  CONSTRAINT checks_score CHECK (score BETWEEN 0 AND 10000)
);
CREATE UNIQUE INDEX checks_id_unique ON checks (id);
CREATE INDEX checks_of_warrant ON checks (warrant, position);

CREATE TABLE content_sums (
  scope int8 NOT NULL,
  bought int8 NOT NULL,
  bytes int8 NOT NULL,
  digest int8,
  rowid int8 NOT NULL,
  PRIMARY KEY (scope, bought),
  CONSTRAINT content_sums_not_negative CHECK (bytes >= 0)
);
CREATE UNIQUE INDEX content_sums_by_row ON content_sums (rowid);

CREATE TABLE contents (
  hash text COLLATE "C" NOT NULL,
  bytes bytea NOT NULL,
  rowid int8 NOT NULL,
  PRIMARY KEY (hash)
);
CREATE UNIQUE INDEX contents_by_row ON contents (rowid);

CREATE TABLE corrections (
  position int8 NOT NULL,
  id text COLLATE "C" NOT NULL,
  account int8 NOT NULL,
  deposit int8 NOT NULL,
  amount_before int8 NOT NULL,
  amount_after int8 NOT NULL,
  reason text COLLATE "C" NOT NULL,
  status text COLLATE "C" NOT NULL,
  proposed_by text COLLATE "C",
  decided_by text COLLATE "C",
  created_at int8 NOT NULL,
  decided_at int8,
  digest int8,
  PRIMARY KEY (position),
  CONSTRAINT corrections_status CHECK ((status = 'proposed' OR status = 'recorded' OR status = 'withdrawn')),
  CONSTRAINT corrections_amounts CHECK (amount_before >= 0 AND amount_after >= 0 AND amount_before <> amount_after),
  CONSTRAINT corrections_decided CHECK ((decided_at IS NULL) = (decided_by IS NULL) AND (status <> 'proposed' OR decided_at IS NULL) AND (status <> 'withdrawn' OR decided_at IS NOT NULL)),
  CONSTRAINT corrections_two_people CHECK (status <> 'recorded' OR decided_by IS DISTINCT FROM proposed_by OR decided_by IS NULL)
);
CREATE UNIQUE INDEX corrections_id_unique ON corrections (id);
CREATE INDEX corrections_by_account ON corrections (account, position);
CREATE INDEX corrections_of_deposit ON corrections (deposit, position);
CREATE UNIQUE INDEX corrections_one_proposed ON corrections (deposit) WHERE status = 'proposed';

CREATE TABLE cosignatures (
  size int8 NOT NULL,
  witness text COLLATE "C" NOT NULL,
  line text COLLATE "C" NOT NULL,
  digest int8,
  rowid int8 NOT NULL,
  PRIMARY KEY (size, witness)
);
CREATE UNIQUE INDEX cosignatures_by_row ON cosignatures (rowid);

CREATE TABLE deposit_senders (
  mode text COLLATE "C" NOT NULL,
  address text COLLATE "C" NOT NULL,
  organisation_id text COLLATE "C" NOT NULL,
  note text COLLATE "C",
  created_at int8 NOT NULL,
  digest int8,
  rowid int8 NOT NULL,
  PRIMARY KEY (mode, address),
  FOREIGN KEY (organisation_id) REFERENCES organisations (id),
  CONSTRAINT deposit_senders_address CHECK (length(address) = 42 AND address = lower(address)),
  CONSTRAINT deposit_senders_mode CHECK (mode = 'sandbox' OR mode = 'live')
);
CREATE UNIQUE INDEX deposit_senders_by_row ON deposit_senders (rowid);
CREATE INDEX deposit_senders_of_organisation ON deposit_senders (organisation_id, mode, address);

CREATE TABLE warrants (
  position int8 NOT NULL,
  id text COLLATE "C" NOT NULL,
  scope int8 NOT NULL,
  account int8 NOT NULL,
  state text COLLATE "C" NOT NULL,
  version int8 NOT NULL,
  amount int8 NOT NULL,
  released_bps int8,
  payee text COLLATE "C" NOT NULL,
  spec text COLLATE "C" NOT NULL,
  spec_hash bytea NOT NULL,
  agent int8,
  session int8,
  verifier int8,
  policy int8,
  rules_hash bytea,
  trace_head bytea NOT NULL,
  deadline int8 NOT NULL,
  opened_at int8 NOT NULL,
  verifying_since int8,
  settled_at int8,
  opened_by_agent int8,
  opened_by_user text COLLATE "C",
  grace_until int8,
  digest int8,
  PRIMARY KEY (position),
  CONSTRAINT warrants_state CHECK ((state = 'held' OR state = 'verifying' OR state = 'released' OR state = 'partially_released' OR state = 'escalated' OR state = 'refunded' OR state = 'expired' OR state = 'frozen' OR state = 'disputed')),
  CONSTRAINT warrants_amount CHECK (amount > 0),
  CONSTRAINT warrants_verifying_since CHECK ((state = 'verifying') = (verifying_since IS NOT NULL)),
  CONSTRAINT warrants_version CHECK (version >= 1),
  CONSTRAINT warrants_rules CHECK ((policy IS NULL) = (rules_hash IS NOT NULL)),
  CONSTRAINT warrants_share CHECK (CASE state WHEN 'released' THEN released_bps IS NOT DISTINCT FROM 10000 WHEN 'partially_released' THEN released_bps IS NOT NULL AND released_bps > 0 AND released_bps < 10000 ELSE released_bps IS NULL END),
  CONSTRAINT warrants_settled_at CHECK ((settled_at IS NOT NULL) = (state = 'released' OR state = 'partially_released' OR state = 'refunded' OR state = 'expired'))
);
CREATE UNIQUE INDEX warrants_id_unique ON warrants (id);
CREATE INDEX warrants_by_state ON warrants (scope, state, position);
CREATE INDEX warrants_by_deadline ON warrants (scope, state, deadline, position);
CREATE INDEX warrants_of_agent_by_state ON warrants (agent, state, position) WHERE agent IS NOT NULL;
CREATE INDEX warrants_of_agent_by_deadline ON warrants (agent, state, deadline, position) WHERE agent IS NOT NULL;
CREATE INDEX warrants_verifying ON warrants (verifying_since, position) WHERE state = 'verifying';
CREATE INDEX warrants_opened_by_agent ON warrants (opened_by_agent, state, deadline, position) WHERE opened_by_agent IS NOT NULL AND opened_by_agent IS DISTINCT FROM agent AND (state = 'held' OR state = 'frozen');
CREATE INDEX warrants_frozen_in_grace ON warrants (grace_until, position) WHERE state = 'frozen' AND grace_until IS NOT NULL;
CREATE INDEX warrants_overdue ON warrants ((CASE WHEN grace_until IS NULL THEN deadline ELSE grace_until END), position) WHERE state = 'held';

CREATE TABLE escalations (
  id text COLLATE "C" NOT NULL,
  organisation_id text COLLATE "C" NOT NULL,
  mode text COLLATE "C" NOT NULL,
  warrant_id text COLLATE "C" NOT NULL,
  check_id text COLLATE "C",
  score int8,
  reason_codes text COLLATE "C" NOT NULL,
  status text COLLATE "C" NOT NULL,
  decision text COLLATE "C",
  released_bps int8,
  note text COLLATE "C",
  raised_by text COLLATE "C",
  resolved_by text COLLATE "C",
  created_at int8 NOT NULL,
  resolved_at int8,
  digest int8,
  rowid int8 NOT NULL,
  PRIMARY KEY (id),
  FOREIGN KEY (organisation_id) REFERENCES organisations (id),
  FOREIGN KEY (warrant_id) REFERENCES warrants (id),
  CONSTRAINT escalations_resolved CHECK ((status = 'resolved') = (resolved_at IS NOT NULL))
);
CREATE UNIQUE INDEX escalations_by_row ON escalations (rowid);
CREATE INDEX escalations_by_status ON escalations (organisation_id, mode, status, id);
CREATE UNIQUE INDEX escalations_one_unresolved ON escalations (warrant_id) WHERE status <> 'resolved';
CREATE INDEX escalations_by_warrant ON escalations (warrant_id, id);
CREATE INDEX escalations_waiting ON escalations (created_at, id) WHERE status <> 'resolved';

CREATE TABLE idempotency_keys (
  position int8 NOT NULL,
  scope int8 NOT NULL,
  key text COLLATE "C" NOT NULL,
  fingerprint bytea NOT NULL,
  holder text COLLATE "C",
  status int8,
  body text COLLATE "C",
  warrant int8,
  version int8,
  encoding int8,
  content_hash text COLLATE "C",
  created_at int8 NOT NULL,
  digest int8,
  PRIMARY KEY (position),
  CONSTRAINT idempotency_keys_holder CHECK ((status IS NULL) = (holder IS NOT NULL)),
  CONSTRAINT idempotency_keys_outcome CHECK ((body IS NOT NULL)::int + (warrant IS NOT NULL)::int = (status IS NOT NULL)::int),
  CONSTRAINT idempotency_keys_warrant CHECK ((warrant IS NULL) = (version IS NULL) AND (warrant IS NULL) = (encoding IS NULL))
);
CREATE UNIQUE INDEX idempotency_keys_by_key ON idempotency_keys (scope, key);
CREATE INDEX idempotency_keys_by_creation ON idempotency_keys (created_at, position) WHERE content_hash IS NULL;
CREATE INDEX idempotency_keys_with_content ON idempotency_keys (created_at, position) WHERE content_hash IS NOT NULL;
CREATE UNIQUE INDEX idempotency_keys_in_flight ON idempotency_keys (holder) WHERE status IS NULL;

CREATE TABLE instances (
  id text COLLATE "C" NOT NULL,
  base_url text COLLATE "C",
  chain_ids text COLLATE "C" NOT NULL,
  version text COLLATE "C" NOT NULL,
  oldest_writer text COLLATE "C" NOT NULL,
  created_at int8 NOT NULL,
  restored_at int8,
  acknowledged_at int8,
  idempotency_days int8,
  retention_marks text COLLATE "C" NOT NULL DEFAULT '[]',
  restored_unverified_at int8,
  capsule_days int8,
  witness_key text COLLATE "C",
  lost_witness_keys text COLLATE "C" NOT NULL DEFAULT '[]',
  rowid int8 NOT NULL,
  PRIMARY KEY (id)
);
CREATE UNIQUE INDEX instances_by_row ON instances (rowid);

CREATE TABLE log_anchors (
  chain_id int8 NOT NULL,
  wallet text COLLATE "C" NOT NULL,
  nonce int8 NOT NULL,
  checkpoint int8 NOT NULL,
  size int8 NOT NULL,
  root bytea NOT NULL,
  digest int8,
  rowid int8 NOT NULL,
  PRIMARY KEY (chain_id, wallet, nonce)
);
CREATE UNIQUE INDEX log_anchors_by_row ON log_anchors (rowid);
CREATE INDEX log_anchors_by_size ON log_anchors (size, rowid);

CREATE TABLE log_checkpoints (
  number int8 NOT NULL,
  size int8 NOT NULL,
  root bytea NOT NULL,
  note text COLLATE "C" NOT NULL,
  digest int8,
  rowid int8 NOT NULL,
  PRIMARY KEY (number)
);
CREATE UNIQUE INDEX log_checkpoints_by_row ON log_checkpoints (rowid);
CREATE UNIQUE INDEX log_checkpoints_size_unique ON log_checkpoints (size);

CREATE TABLE log_tiles (
  level int8 NOT NULL,
  tile int8 NOT NULL,
  hashes bytea NOT NULL,
  rowid int8 NOT NULL,
  PRIMARY KEY (level, tile),
  CONSTRAINT log_tiles_place CHECK (level >= 0 AND tile >= 0),
  CONSTRAINT log_tiles_hashes CHECK (length(hashes) % 32 = 0 AND length(hashes) BETWEEN 32 AND 8192)
);
CREATE UNIQUE INDEX log_tiles_by_row ON log_tiles (rowid);

CREATE TABLE messaging_accounts (
  user_id text COLLATE "C" NOT NULL,
  organisation_id text COLLATE "C" NOT NULL,
  chat_id text COLLATE "C" NOT NULL,
  username text COLLATE "C",
  linked_at int8 NOT NULL,
  rowid int8 NOT NULL,
  PRIMARY KEY (user_id),
  FOREIGN KEY (user_id) REFERENCES users (id),
  FOREIGN KEY (organisation_id) REFERENCES organisations (id)
);
CREATE UNIQUE INDEX messaging_accounts_by_row ON messaging_accounts (rowid);
CREATE UNIQUE INDEX messaging_accounts_by_chat ON messaging_accounts (chat_id);

CREATE TABLE messaging_codes (
  user_id text COLLATE "C" NOT NULL,
  organisation_id text COLLATE "C" NOT NULL,
  code_hash text COLLATE "C" NOT NULL,
  expires_at int8 NOT NULL,
  rowid int8 NOT NULL,
  PRIMARY KEY (user_id),
  FOREIGN KEY (user_id) REFERENCES users (id),
  FOREIGN KEY (organisation_id) REFERENCES organisations (id)
);
CREATE UNIQUE INDEX messaging_codes_by_row ON messaging_codes (rowid);
CREATE UNIQUE INDEX messaging_codes_by_hash ON messaging_codes (code_hash);
CREATE INDEX messaging_codes_by_end ON messaging_codes (expires_at, rowid);

CREATE TABLE notice_settings (
  user_id text COLLATE "C" NOT NULL,
  organisation_id text COLLATE "C" NOT NULL,
  email int8 NOT NULL,
  sandbox int8 NOT NULL,
  from_minute int8,
  until_minute int8,
  time_zone text COLLATE "C" NOT NULL,
  messaging int8 NOT NULL DEFAULT 1,
  push int8 NOT NULL DEFAULT 1,
  rowid int8 NOT NULL,
  PRIMARY KEY (user_id),
  FOREIGN KEY (user_id) REFERENCES users (id),
  FOREIGN KEY (organisation_id) REFERENCES organisations (id)
);
CREATE UNIQUE INDEX notice_settings_by_row ON notice_settings (rowid);

CREATE TABLE notices (
  id text COLLATE "C" NOT NULL,
  organisation_id text COLLATE "C" NOT NULL,
  mode text COLLATE "C" NOT NULL,
  user_id text COLLATE "C" NOT NULL,
  channel text COLLATE "C" NOT NULL,
  subject text COLLATE "C" NOT NULL,
  about text COLLATE "C" NOT NULL,
  encrypted_link text COLLATE "C",
  status text COLLATE "C" NOT NULL,
  attempts int8 NOT NULL,
  answer text COLLATE "C",
  duration_ms int8,
  claimed_until int8,
  next_attempt_at int8,
  created_at int8 NOT NULL,
  rowid int8 NOT NULL,
  PRIMARY KEY (id),
  FOREIGN KEY (organisation_id) REFERENCES organisations (id),
  FOREIGN KEY (user_id) REFERENCES users (id),
  CONSTRAINT notices_mode CHECK ((mode = 'sandbox' OR mode = 'live')),
  CONSTRAINT notices_attempts CHECK (attempts BETWEEN 0 AND 6),
  CONSTRAINT notices_work CHECK ((status IN ('pending', 'failed')) = ((claimed_until IS NOT NULL)::int + (next_attempt_at IS NOT NULL)::int = 1))
);
CREATE UNIQUE INDEX notices_by_row ON notices (rowid);
CREATE INDEX notices_next ON notices (next_attempt_at, rowid) WHERE next_attempt_at IS NOT NULL;
CREATE INDEX notices_claimed ON notices (claimed_until, rowid) WHERE claimed_until IS NOT NULL;
CREATE INDEX notices_by_subject ON notices (organisation_id, subject, created_at, rowid);
CREATE INDEX notices_by_user ON notices (user_id, created_at, rowid);
CREATE INDEX notices_by_creation ON notices (created_at, rowid);
CREATE INDEX notices_due ON notices (organisation_id, mode, channel, next_attempt_at, rowid) WHERE next_attempt_at IS NOT NULL;

CREATE TABLE passkey_approvals (
  token_hash text COLLATE "C" NOT NULL,
  user_id text COLLATE "C" NOT NULL,
  passkey_id text COLLATE "C" NOT NULL,
  warrant_id text COLLATE "C" NOT NULL,
  version int8 NOT NULL,
  decision text COLLATE "C" NOT NULL,
  released_bps int8,
  assertion text COLLATE "C" NOT NULL,
  created_at int8 NOT NULL,
  expires_at int8 NOT NULL,
  used_at int8,
  rowid int8 NOT NULL,
  PRIMARY KEY (token_hash),
  FOREIGN KEY (user_id) REFERENCES users (id)
);
CREATE UNIQUE INDEX passkey_approvals_by_row ON passkey_approvals (rowid);

CREATE TABLE passkeys (
  id text COLLATE "C" NOT NULL,
  organisation_id text COLLATE "C" NOT NULL,
  user_id text COLLATE "C" NOT NULL,
  name text COLLATE "C" NOT NULL,
  public_key text COLLATE "C" NOT NULL,
  counter int8 NOT NULL,
  transports text COLLATE "C" NOT NULL,
  counts_for_threshold int8 NOT NULL,
  created_at int8 NOT NULL,
  last_used_at int8,
  rowid int8 NOT NULL,
  PRIMARY KEY (id),
  FOREIGN KEY (organisation_id) REFERENCES organisations (id),
  FOREIGN KEY (user_id) REFERENCES users (id)
);
CREATE UNIQUE INDEX passkeys_by_row ON passkeys (rowid);
CREATE INDEX passkeys_by_user ON passkeys (user_id, created_at, rowid);
CREATE INDEX passkeys_of_organisation ON passkeys (organisation_id, rowid) WHERE counts_for_threshold = 1;

CREATE TABLE password_resets (
  token_hash text COLLATE "C" NOT NULL,
  user_id text COLLATE "C" NOT NULL,
  created_at int8 NOT NULL,
  expires_at int8 NOT NULL,
  used_at int8,
  rowid int8 NOT NULL,
  PRIMARY KEY (token_hash),
  FOREIGN KEY (user_id) REFERENCES users (id)
);
CREATE UNIQUE INDEX password_resets_by_row ON password_resets (rowid);
CREATE INDEX password_resets_by_user ON password_resets (user_id, rowid);

CREATE TABLE payees (
  position int8 NOT NULL,
  account int8 NOT NULL,
  payee text COLLATE "C" NOT NULL,
  payable int8 NOT NULL,
  submitted int8 NOT NULL,
  paid_out int8 NOT NULL,
  PRIMARY KEY (position),
  CONSTRAINT payees_not_negative CHECK (payable >= 0 AND submitted >= 0 AND paid_out >= 0)
);
CREATE UNIQUE INDEX payees_by_name ON payees (account, payee);
CREATE INDEX payees_owed ON payees (account, position) WHERE payable > 0;
CREATE INDEX payees_owed_nothing ON payees (account, position) WHERE payable = 0;

CREATE TABLE payout_transactions (
  chain_id int8 NOT NULL,
  wallet text COLLATE "C" NOT NULL,
  nonce int8 NOT NULL,
  payout int8 NOT NULL,
  account int8 NOT NULL,
  rail text COLLATE "C" NOT NULL,
  token text COLLATE "C" NOT NULL,
  by_person int8 NOT NULL,
  judged int8 NOT NULL,
  problem text COLLATE "C",
  recorded_at int8 NOT NULL,
  digest int8,
  rowid int8 NOT NULL,
  PRIMARY KEY (chain_id, wallet, nonce),
  CONSTRAINT payout_transactions_rail CHECK ((rail = 'sandbox_evm' OR rail = 'live_evm')),
  CONSTRAINT payout_transactions_chain CHECK ((rail = 'sandbox_evm') = (chain_id IN (11155111, 11155420, 84532, 43113, 80002, 421614, 11142220, 11124, 1328, 51, 2201, 10143, 324705682, 1337, 31337))),
  CONSTRAINT payout_transactions_flags CHECK ((by_person = 0 OR by_person = 1) AND (judged = 0 OR judged = 1))
);
CREATE UNIQUE INDEX payout_transactions_by_row ON payout_transactions (rowid);
CREATE UNIQUE INDEX payout_transactions_payout_unique ON payout_transactions (payout);
CREATE INDEX payout_transactions_to_judge ON payout_transactions (chain_id, wallet, nonce) WHERE judged = 0;
CREATE INDEX payout_transactions_in_limits ON payout_transactions (account, recorded_at, rowid) WHERE by_person = 0;

CREATE TABLE payout_waits (
  payee int8 NOT NULL,
  code text COLLATE "C",
  detail text COLLATE "C",
  until int8,
  released int8,
  since int8 NOT NULL,
  digest int8,
  rowid int8 NOT NULL,
  PRIMARY KEY (payee),
  CONSTRAINT payout_waits_code CHECK (code IS NULL OR (code = 'above_payout_limit' OR code = 'above_day_limit' OR code = 'failed' OR code = 'token_refuses' OR code = 'no_money' OR code = 'released')),
  CONSTRAINT payout_waits_released CHECK (released IS NULL OR (released > 0))
);
CREATE UNIQUE INDEX payout_waits_by_row ON payout_waits (rowid);

CREATE TABLE payouts (
  position int8 NOT NULL,
  id text COLLATE "C" NOT NULL,
  account int8 NOT NULL,
  payee int8 NOT NULL,
  amount int8 NOT NULL,
  rail text COLLATE "C" NOT NULL,
  status text COLLATE "C" NOT NULL,
  version int8 NOT NULL,
  reference text COLLATE "C",
  reason text COLLATE "C",
  created_at int8 NOT NULL,
  ended_at int8,
  digest int8,
  PRIMARY KEY (position),
  CONSTRAINT payouts_amount CHECK (amount > 0),
  CONSTRAINT payouts_status CHECK ((status = 'owed' OR status = 'submitted' OR status = 'paid' OR status = 'failed')),
  CONSTRAINT payouts_version CHECK (version >= 1),
  CONSTRAINT payouts_ended CHECK ((status = 'submitted') = (ended_at IS NULL)),
  CONSTRAINT payouts_reference CHECK (status <> 'paid' OR reference IS NOT NULL),
  CONSTRAINT payouts_reason CHECK ((status = 'failed') = (reason IS NOT NULL))
);
CREATE UNIQUE INDEX payouts_id_unique ON payouts (id);
CREATE INDEX payouts_by_status ON payouts (account, status, position);
CREATE INDEX payouts_of_payee ON payouts (payee, status, position);

CREATE TABLE planned_notices (
  id text COLLATE "C" NOT NULL,
  organisation_id text COLLATE "C" NOT NULL,
  mode text COLLATE "C" NOT NULL,
  made int8 NOT NULL,
  due_at int8 NOT NULL,
  created_at int8 NOT NULL,
  rowid int8 NOT NULL,
  PRIMARY KEY (id),
  FOREIGN KEY (organisation_id) REFERENCES organisations (id),
  CONSTRAINT planned_notices_mode CHECK ((mode = 'sandbox' OR mode = 'live'))
);
CREATE UNIQUE INDEX planned_notices_by_row ON planned_notices (rowid);
CREATE INDEX planned_notices_due ON planned_notices (organisation_id, mode, due_at, rowid);
CREATE INDEX planned_notices_next ON planned_notices (due_at, rowid);

CREATE TABLE policies (
  position int8 NOT NULL,
  id text COLLATE "C" NOT NULL,
  organisation_id text COLLATE "C" NOT NULL,
  agent_id text COLLATE "C",
  name text COLLATE "C" NOT NULL,
  version int8 NOT NULL,
  rules text COLLATE "C" NOT NULL,
  rules_hash text COLLATE "C" NOT NULL,
  created_at int8 NOT NULL,
  digest int8,
  PRIMARY KEY (position),
  FOREIGN KEY (organisation_id) REFERENCES organisations (id),
  FOREIGN KEY (agent_id) REFERENCES agents (id)
);
CREATE UNIQUE INDEX policies_id_unique ON policies (id);
CREATE UNIQUE INDEX policies_of_organisation ON policies (organisation_id, name, version) WHERE agent_id IS NULL;
CREATE UNIQUE INDEX policies_of_agent ON policies (agent_id, name, version) WHERE agent_id IS NOT NULL;
CREATE INDEX policies_by_agent ON policies (organisation_id, agent_id, position);
CREATE INDEX policies_by_name ON policies (organisation_id, name, (CASE WHEN agent_id IS NULL THEN '' ELSE agent_id END), position);

CREATE TABLE postings (
  position int8 NOT NULL,
  account int8 NOT NULL,
  kind text COLLATE "C" NOT NULL,
  rail text COLLATE "C" NOT NULL,
  cause int8 NOT NULL,
  available int8 NOT NULL,
  held int8 NOT NULL,
  paid int8 NOT NULL,
  funding int8 NOT NULL,
  recorded_at int8 NOT NULL,
  payable int8 NOT NULL DEFAULT 0,
  submitted int8 NOT NULL DEFAULT 0,
  PRIMARY KEY (position),
  CONSTRAINT postings_sum_to_zero CHECK (available + held + paid + funding = 0),
  CONSTRAINT postings_integers CHECK (available > '-9223372036854775808'::int8 AND held > '-9223372036854775808'::int8 AND paid > '-9223372036854775808'::int8 AND funding > '-9223372036854775808'::int8)
);
CREATE UNIQUE INDEX postings_once ON postings (cause, kind);
CREATE INDEX postings_by_account ON postings (account, position);

CREATE TABLE purchases (
  id text COLLATE "C" NOT NULL,
  organisation_id text COLLATE "C" NOT NULL,
  mode text COLLATE "C" NOT NULL,
  agent_id text COLLATE "C",
  method text COLLATE "C" NOT NULL,
  url text COLLATE "C" NOT NULL,
  max_amount int8 NOT NULL,
  phase text COLLATE "C" NOT NULL,
  quoted_amount int8,
  quoted_asset text COLLATE "C",
  quoted_payee text COLLATE "C",
  timeout_seconds int8,
  pays text COLLATE "C",
  warrant_id text COLLATE "C",
  payer text COLLATE "C",
  chain_id int8,
  contract text COLLATE "C",
  nonce text COLLATE "C",
  valid_before int8,
  header text COLLATE "C",
  attempt text COLLATE "C",
  known text COLLATE "C",
  known_by text COLLATE "C",
  transaction_id text COLLATE "C",
  response_status int8,
  response_hash text COLLATE "C",
  response_last_modified_at int8,
  created_at int8 NOT NULL,
  answered_at int8,
  ended_at int8,
  next_check_at int8,
  chain_silent_since int8,
  chain_said text COLLATE "C",
  content_bytes int8 NOT NULL DEFAULT 0,
  acknowledged_at int8,
  digest int8,
  rowid int8 NOT NULL,
  PRIMARY KEY (id),
  FOREIGN KEY (organisation_id) REFERENCES organisations (id),
  CONSTRAINT purchases_mode CHECK ((mode = 'sandbox' OR mode = 'live')),
  CONSTRAINT purchases_network CHECK (chain_id IS NULL OR (mode = 'sandbox') = (chain_id IN (11155111, 11155420, 84532, 43113, 80002, 421614, 11142220, 11124, 1328, 51, 2201, 10143, 324705682, 1337, 31337))),
  CONSTRAINT purchases_phase CHECK ((phase = 'quoting' OR phase = 'held' OR phase = 'signed' OR phase = 'answered' OR phase = 'ended')),
  CONSTRAINT purchases_held CHECK (phase IN ('quoting', 'ended') OR warrant_id IS NOT NULL),
  CONSTRAINT purchases_signed CHECK (phase NOT IN ('signed', 'answered') OR header IS NOT NULL),
  CONSTRAINT purchases_ended CHECK ((phase = 'ended') = (ended_at IS NOT NULL))
);
CREATE UNIQUE INDEX purchases_by_row ON purchases (rowid);
CREATE INDEX purchases_by_organisation ON purchases (organisation_id, mode, id);
CREATE UNIQUE INDEX purchases_of_warrant ON purchases (warrant_id) WHERE warrant_id IS NOT NULL;
CREATE UNIQUE INDEX purchases_one_of_a_nonce ON purchases (payer, nonce) WHERE nonce IS NOT NULL;
CREATE INDEX purchases_unfinished ON purchases (id) WHERE phase <> 'ended';
CREATE INDEX purchases_to_check ON purchases (next_check_at, rowid) WHERE next_check_at IS NOT NULL;
CREATE INDEX purchases_open_of_wallet ON purchases (payer, chain_id, contract, rowid) WHERE payer IS NOT NULL AND known IS DISTINCT FROM 'paid' AND known IS DISTINCT FROM 'unpaid';
CREATE INDEX purchases_paid_of_wallet ON purchases (payer, chain_id, contract, answered_at, rowid) WHERE payer IS NOT NULL AND known = 'paid';
CREATE INDEX purchases_that_chains_confirm ON purchases (chain_said, known, rowid) WHERE chain_said IS NOT NULL;
CREATE INDEX purchases_that_keep_content ON purchases (response_hash, rowid) WHERE content_bytes > 0;
CREATE INDEX purchases_with_bought_content ON purchases (created_at, rowid) WHERE content_bytes > 0 AND warrant_id IS NOT NULL AND phase = 'ended';
CREATE INDEX purchases_with_free_content ON purchases (ended_at, rowid) WHERE content_bytes > 0 AND warrant_id IS NULL;
CREATE INDEX purchases_with_free_content_of_scope ON purchases (organisation_id, mode, rowid) WHERE content_bytes > 0 AND warrant_id IS NULL;

CREATE TABLE push_subscriptions (
  id text COLLATE "C" NOT NULL,
  organisation_id text COLLATE "C" NOT NULL,
  user_id text COLLATE "C" NOT NULL,
  endpoint text COLLATE "C" NOT NULL,
  p256dh text COLLATE "C" NOT NULL,
  encrypted_auth text COLLATE "C" NOT NULL,
  name text COLLATE "C" NOT NULL,
  created_at int8 NOT NULL,
  delivered_at int8,
  rowid int8 NOT NULL,
  PRIMARY KEY (id),
  FOREIGN KEY (organisation_id) REFERENCES organisations (id),
  FOREIGN KEY (user_id) REFERENCES users (id)
);
CREATE UNIQUE INDEX push_subscriptions_by_row ON push_subscriptions (rowid);
CREATE UNIQUE INDEX push_subscriptions_endpoint ON push_subscriptions (endpoint);
CREATE INDEX push_subscriptions_by_user ON push_subscriptions (user_id, created_at, rowid);

CREATE TABLE rail_states (
  mode text COLLATE "C" NOT NULL,
  asset text COLLATE "C" NOT NULL,
  chain_id int8 NOT NULL,
  wallet text COLLATE "C" NOT NULL,
  token text COLLATE "C" NOT NULL,
  accepted_nonce int8,
  seen_nonce int8,
  code text COLLATE "C",
  detail text COLLATE "C",
  since int8,
  digest int8,
  rowid int8 NOT NULL,
  PRIMARY KEY (mode, asset),
  CONSTRAINT rail_states_code CHECK (code IS NULL OR (code = 'away' OR code = 'no_gas' OR code = 'fees' OR code = 'refused' OR code = 'unknown_transactions' OR code = 'other_amount' OR code = 'no_treasury')),
  CONSTRAINT rail_states_since CHECK ((code IS NULL) = (since IS NULL)),
  CONSTRAINT rail_states_chain CHECK ((mode = 'sandbox') = (chain_id IN (11155111, 11155420, 84532, 43113, 80002, 421614, 11142220, 11124, 1328, 51, 2201, 10143, 324705682, 1337, 31337)))
);
CREATE UNIQUE INDEX rail_states_by_row ON rail_states (rowid);

CREATE TABLE schemas (
  id text COLLATE "C" NOT NULL,
  organisation_id text COLLATE "C" NOT NULL,
  name text COLLATE "C" NOT NULL,
  schema text COLLATE "C" NOT NULL,
  schema_hash text COLLATE "C" NOT NULL,
  created_at int8 NOT NULL,
  digest int8,
  rowid int8 NOT NULL,
  PRIMARY KEY (id),
  FOREIGN KEY (organisation_id) REFERENCES organisations (id)
);
CREATE UNIQUE INDEX schemas_by_row ON schemas (rowid);
CREATE UNIQUE INDEX schemas_by_name ON schemas (organisation_id, name);

CREATE TABLE scopes (
  position int8 NOT NULL,
  organisation_id text COLLATE "C" NOT NULL,
  mode text COLLATE "C" NOT NULL,
  recorded_at int8 NOT NULL DEFAULT 0,
  revision int8 NOT NULL DEFAULT 0,
  PRIMARY KEY (position),
  FOREIGN KEY (organisation_id) REFERENCES organisations (id),
  CONSTRAINT scopes_mode CHECK ((mode = 'sandbox' OR mode = 'live'))
) WITH (fillfactor = 50);
CREATE UNIQUE INDEX scopes_by_organisation ON scopes (organisation_id, mode);

CREATE TABLE session_totals (
  session int8 NOT NULL,
  held_at int8 NOT NULL,
  total int8 NOT NULL,
  digest int8,
  rowid int8 NOT NULL,
  PRIMARY KEY (session, held_at),
  CONSTRAINT session_totals_total CHECK (total >= 0)
);
CREATE UNIQUE INDEX session_totals_by_row ON session_totals (rowid);

CREATE TABLE solvency_statements (
  number int8 NOT NULL,
  note text COLLATE "C" NOT NULL,
  seed bytea NOT NULL,
  entry_hash bytea NOT NULL,
  leaf_index int8,
  digest int8,
  rowid int8 NOT NULL,
  PRIMARY KEY (number)
);
CREATE UNIQUE INDEX solvency_statements_by_row ON solvency_statements (rowid);
CREATE UNIQUE INDEX solvency_statements_by_leaf ON solvency_statements (leaf_index) WHERE leaf_index IS NOT NULL;
CREATE INDEX solvency_statements_without_leaf ON solvency_statements (number) WHERE leaf_index IS NULL;

CREATE TABLE source_keys (
  id text COLLATE "C" NOT NULL,
  organisation_id text COLLATE "C" NOT NULL,
  origin text COLLATE "C" NOT NULL,
  signer text COLLATE "C" NOT NULL,
  created_at int8 NOT NULL,
  removed_at int8,
  digest int8,
  rowid int8 NOT NULL,
  PRIMARY KEY (id),
  FOREIGN KEY (organisation_id) REFERENCES organisations (id)
);
CREATE UNIQUE INDEX source_keys_by_row ON source_keys (rowid);
CREATE INDEX source_keys_by_origin ON source_keys (organisation_id, origin, rowid) WHERE removed_at IS NULL;

CREATE TABLE spend_sessions (
  position int8 NOT NULL,
  id text COLLATE "C" NOT NULL,
  agent_id text COLLATE "C" NOT NULL,
  amount_ceiling int8 NOT NULL,
  amount_spent int8 NOT NULL,
  warrant_limit int8,
  warrant_count int8 NOT NULL,
  failure_budget int8 NOT NULL,
  failure_count int8 NOT NULL,
  expires_at int8 NOT NULL,
  revoked_at int8,
  created_at int8 NOT NULL,
  amount_held int8 NOT NULL DEFAULT 0,
  held_at int8,
  per_warrant_max int8,
  hourly_max int8,
  daily_max int8,
  payees text COLLATE "C",
  source_origins text COLLATE "C",
  digest int8,
  PRIMARY KEY (position),
  FOREIGN KEY (agent_id) REFERENCES agents (id),
  CONSTRAINT spend_sessions_spent CHECK (amount_spent BETWEEN 0 AND amount_ceiling),
  CONSTRAINT spend_sessions_count CHECK (warrant_limit IS NULL OR warrant_count <= warrant_limit)
);
CREATE UNIQUE INDEX spend_sessions_id_unique ON spend_sessions (id);
CREATE INDEX spend_sessions_by_agent ON spend_sessions (agent_id, position);

CREATE TABLE trace (
  position int8 NOT NULL,
  warrant int8 NOT NULL,
  sequence int8 NOT NULL,
  from_state text COLLATE "C",
  to_state text COLLATE "C" NOT NULL,
  actor_kind text COLLATE "C" NOT NULL,
  actor_id text COLLATE "C",
  recorded_at int8 NOT NULL,
  encoding int8 NOT NULL,
  schema_hashes text COLLATE "C",
  check_id text COLLATE "C",
  entry_hash bytea NOT NULL,
  event_id text COLLATE "C",
  leaf_index int8,
  digest int8,
  PRIMARY KEY (position),
  CONSTRAINT trace_actor CHECK ((actor_kind = 'system') = (actor_id IS NULL)),
  CONSTRAINT trace_opening CHECK ((sequence = 0) = (from_state IS NULL)),
  CONSTRAINT trace_schemas CHECK (schema_hashes IS NULL OR sequence = 0),
  CONSTRAINT trace_check CHECK (check_id IS NULL OR from_state IS NOT DISTINCT FROM 'verifying')
);
CREATE UNIQUE INDEX trace_by_warrant ON trace (warrant, sequence);
CREATE UNIQUE INDEX trace_by_leaf ON trace (leaf_index) WHERE leaf_index IS NOT NULL;
CREATE INDEX trace_without_leaf ON trace (position) WHERE leaf_index IS NULL;

CREATE TABLE verifiers (
  position int8 NOT NULL,
  id text COLLATE "C" NOT NULL,
  organisation_id text COLLATE "C" NOT NULL,
  type text COLLATE "C" NOT NULL,
  name text COLLATE "C" NOT NULL,
  config text COLLATE "C" NOT NULL,
  created_at int8 NOT NULL,
  digest int8,
  PRIMARY KEY (position),
  FOREIGN KEY (organisation_id) REFERENCES organisations (id)
);
CREATE UNIQUE INDEX verifiers_id_unique ON verifiers (id);
CREATE INDEX verifiers_by_organisation ON verifiers (organisation_id, id, position);

CREATE TABLE warrant_counts (
  scope int8 NOT NULL,
  agent int8 NOT NULL,
  state text COLLATE "C" NOT NULL,
  count int8 NOT NULL,
  digest int8,
  rowid int8 NOT NULL,
  PRIMARY KEY (scope, agent, state),
  CONSTRAINT warrant_counts_not_negative CHECK (count >= 0)
) WITH (fillfactor = 50);
CREATE UNIQUE INDEX warrant_counts_by_row ON warrant_counts (rowid);

CREATE TABLE webhooks (
  id text COLLATE "C" NOT NULL,
  organisation_id text COLLATE "C" NOT NULL,
  mode text COLLATE "C" NOT NULL,
  url text COLLATE "C" NOT NULL,
  events text COLLATE "C" NOT NULL,
  encrypted_secret text COLLATE "C" NOT NULL,
  disabled int8 NOT NULL,
  created_at int8 NOT NULL,
  rowid int8 NOT NULL,
  PRIMARY KEY (id),
  FOREIGN KEY (organisation_id) REFERENCES organisations (id),
  CONSTRAINT webhooks_mode CHECK ((mode = 'sandbox' OR mode = 'live'))
);
CREATE UNIQUE INDEX webhooks_by_row ON webhooks (rowid);
CREATE INDEX webhooks_by_organisation ON webhooks (organisation_id, mode, id);

CREATE TABLE webhook_deliveries (
  id text COLLATE "C" NOT NULL,
  webhook_id text COLLATE "C" NOT NULL,
  organisation_id text COLLATE "C" NOT NULL,
  mode text COLLATE "C" NOT NULL,
  event text COLLATE "C" NOT NULL,
  event_id text COLLATE "C" NOT NULL,
  warrant_id text COLLATE "C",
  sequence int8,
  status text COLLATE "C" NOT NULL,
  attempts int8 NOT NULL,
  response_code int8,
  response_start text COLLATE "C",
  duration_ms int8,
  claimed_until int8,
  next_attempt_at int8,
  created_at int8 NOT NULL,
  rowid int8 NOT NULL,
  PRIMARY KEY (id),
  FOREIGN KEY (webhook_id) REFERENCES webhooks (id),
  FOREIGN KEY (organisation_id) REFERENCES organisations (id),
  CONSTRAINT webhook_deliveries_mode CHECK ((mode = 'sandbox' OR mode = 'live')),
  CONSTRAINT webhook_deliveries_attempts CHECK (attempts BETWEEN 0 AND 4),
  CONSTRAINT webhook_deliveries_of_an_entry CHECK ((warrant_id IS NULL) = (sequence IS NULL)),
  CONSTRAINT webhook_deliveries_work CHECK ((status IN ('pending', 'failed')) = ((claimed_until IS NOT NULL)::int + (next_attempt_at IS NOT NULL)::int = 1)),
  CONSTRAINT webhook_deliveries_delivered CHECK (status <> 'delivered' OR response_code BETWEEN 200 AND 299)
);
CREATE UNIQUE INDEX webhook_deliveries_by_row ON webhook_deliveries (rowid);
CREATE INDEX webhook_deliveries_by_organisation ON webhook_deliveries (organisation_id, mode, created_at, rowid);
CREATE INDEX webhook_deliveries_due ON webhook_deliveries (webhook_id, next_attempt_at, rowid) WHERE next_attempt_at IS NOT NULL;
CREATE INDEX webhook_deliveries_next ON webhook_deliveries (next_attempt_at, rowid) WHERE next_attempt_at IS NOT NULL;
CREATE INDEX webhook_deliveries_claimed ON webhook_deliveries (claimed_until, rowid) WHERE claimed_until IS NOT NULL;
CREATE INDEX webhook_deliveries_first ON webhook_deliveries (webhook_id, warrant_id, sequence, rowid) WHERE attempts < 2 AND (next_attempt_at IS NOT NULL OR claimed_until IS NOT NULL);
CREATE INDEX webhook_deliveries_by_creation ON webhook_deliveries (created_at, rowid);

CREATE TABLE witnessed_logs (
  origin text COLLATE "C" NOT NULL,
  note text COLLATE "C" NOT NULL,
  cosigned_at int8 NOT NULL,
  digest int8,
  rowid int8 NOT NULL,
  PRIMARY KEY (origin)
);
CREATE UNIQUE INDEX witnessed_logs_by_row ON witnessed_logs (rowid);
