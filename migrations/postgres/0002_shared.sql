-- What many instances remember together, beside the ledger (src/store/shared-memory.ts). Nothing here is digested, audited or copied:
-- it all ends within hours. Times are milliseconds of the database's clock. Tokens and keys are SHA-256 hashes.

-- Tokens that were used, until they could not be used any more.
CREATE TABLE used_tokens (
  token_hash bytea NOT NULL,
  ends_at int8 NOT NULL,
  PRIMARY KEY (token_hash)
);
CREATE INDEX used_tokens_by_end ON used_tokens (ends_at);

-- Values that wait for whoever has their token.
CREATE TABLE kept_values (
  token_hash bytea NOT NULL,
  owner_hash bytea NOT NULL,
  value text COLLATE "C" NOT NULL,
  ends_at int8 NOT NULL,
  PRIMARY KEY (token_hash)
);
CREATE INDEX kept_values_by_owner ON kept_values (owner_hash, ends_at);
CREATE INDEX kept_values_by_end ON kept_values (ends_at);

-- Failures of attempts, and the attempts that may still fail.
CREATE TABLE attempts (
  key_hash bytea NOT NULL,
  failures int8 NOT NULL,
  under_way int8 NOT NULL,
  under_way_until int8 NOT NULL,
  ends_at int8 NOT NULL,
  PRIMARY KEY (key_hash),
  CONSTRAINT attempts_not_negative CHECK (failures >= 0 AND under_way >= 0)
) WITH (fillfactor = 50);
CREATE INDEX attempts_by_end ON attempts (ends_at);

-- What each instance has counted of a caller in a window of 60 seconds. The caller '' is the instance itself: it is there.
CREATE TABLE rate_counts (
  window_number int8 NOT NULL,
  instance text COLLATE "C" NOT NULL,
  caller text COLLATE "C" NOT NULL,
  used int8 NOT NULL,
  PRIMARY KEY (window_number, caller, instance)
) WITH (fillfactor = 50);
