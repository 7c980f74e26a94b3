-- By what a process knows how late a replica is: a row of its own, whose number rises, and which replicas copy after all that was
-- committed before it. It is not of the ledger: it is not digested, audited or copied.
CREATE TABLE heartbeats (
  process text COLLATE "C" NOT NULL,
  number int8 NOT NULL,
  at timestamptz NOT NULL,
  PRIMARY KEY (process)
);
