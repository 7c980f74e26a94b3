-- What the instances that serve one ledger agree on. None of it is of the ledger: it is not digested, audited or copied, and rows come
-- and go. Every time is the database's own.

-- A row for each instance that runs. Once seen_until has passed, it is dead, and never comes back under this id.
CREATE TABLE instances_running (
  id text COLLATE "C" NOT NULL,
  started_at timestamptz NOT NULL,
  seen_until timestamptz NOT NULL,
  -- JSON: the settings that all have in common. A key stands as a hash.
  settings text COLLATE "C" NOT NULL,
  PRIMARY KEY (id)
);

-- Who does a job, until when. The token rises each time the lease is taken.
CREATE TABLE leases (
  name text COLLATE "C" NOT NULL,
  instance text COLLATE "C" NOT NULL,
  token int8 NOT NULL,
  until timestamptz NOT NULL,
  PRIMARY KEY (name)
);

-- What an instance works on between two commits. With the instance its claims are gone.
CREATE TABLE claims (
  id text COLLATE "C" NOT NULL,
  instance text COLLATE "C" NOT NULL,
  PRIMARY KEY (id, instance),
  CONSTRAINT claims_of_instance FOREIGN KEY (instance) REFERENCES instances_running (id) ON DELETE CASCADE
);
CREATE INDEX claims_by_instance ON claims (instance);
