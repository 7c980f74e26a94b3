-- What the last audit of the ledger found, for every instance that serves it: one row at most. It is not of the ledger: it is not
-- digested, audited or copied.
CREATE TABLE last_audit (
  one int8 NOT NULL DEFAULT 1,
  disagreements int8 NOT NULL,
  -- Milliseconds of the database's clock.
  ended_at int8 NOT NULL,
  duration_ms int8 NOT NULL,
  PRIMARY KEY (one),
  CONSTRAINT last_audit_is_one CHECK (one = 1)
);
