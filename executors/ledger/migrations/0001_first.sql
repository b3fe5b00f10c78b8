-- Version 1. Times are microseconds since 1970 (UTC), 0 = not yet. Dates are
-- days since 1970. A slot is '' for a daily one (its date says all).

CREATE TABLE counters (
  name  TEXT PRIMARY KEY,
  value INTEGER NOT NULL
) WITHOUT ROWID;
INSERT INTO counters VALUES ('seq', 0), ('token', 0);

CREATE TABLE backfills (
  id           INTEGER PRIMARY KEY,
  name         TEXT NOT NULL UNIQUE,
  project      TEXT NOT NULL,
  environment  TEXT NOT NULL,
  status       TEXT NOT NULL,
  note         TEXT NOT NULL DEFAULT '',
  created_at   INTEGER NOT NULL,
  started_at   INTEGER NOT NULL DEFAULT 0,
  finished_at  INTEGER NOT NULL DEFAULT 0,
  instances    INTEGER NOT NULL,
  request      TEXT NOT NULL,
  plan         BLOB NOT NULL, -- deflated JSON document
  plan_digest  TEXT NOT NULL,
  owner_host   TEXT NOT NULL DEFAULT '',
  owner_pid    INTEGER NOT NULL DEFAULT 0,
  heartbeat_at INTEGER NOT NULL DEFAULT 0,
  token        INTEGER NOT NULL DEFAULT 0,
  signal       TEXT NOT NULL DEFAULT ''
);

CREATE TABLE backfill_nodes (
  backfill  INTEGER NOT NULL,
  node      INTEGER NOT NULL, -- index in the plan
  name      TEXT NOT NULL,
  kind      TEXT NOT NULL,
  level     INTEGER NOT NULL,
  instances INTEGER NOT NULL,
  PRIMARY KEY (backfill, node)
) WITHOUT ROWID;

-- Instances that have not left pending exist only as these ranges.
CREATE TABLE instance_ranges (
  backfill  INTEGER NOT NULL,
  node      INTEGER NOT NULL,
  date_from INTEGER NOT NULL,
  date_to   INTEGER NOT NULL,
  step      TEXT NOT NULL,
  PRIMARY KEY (backfill, node, date_from)
) WITHOUT ROWID;

CREATE TABLE instances (
  backfill    INTEGER NOT NULL,
  node        INTEGER NOT NULL,
  date        INTEGER NOT NULL,
  slot        TEXT NOT NULL,
  status      TEXT NOT NULL,
  paused      INTEGER NOT NULL DEFAULT 0,
  attempt     INTEGER NOT NULL DEFAULT 0,
  rows        INTEGER NOT NULL DEFAULT 0, -- -1 = not known
  started_at  INTEGER NOT NULL DEFAULT 0,
  finished_at INTEGER NOT NULL DEFAULT 0,
  reason      TEXT NOT NULL DEFAULT '',
  error       TEXT NOT NULL DEFAULT '',
  PRIMARY KEY (backfill, node, date, slot)
) WITHOUT ROWID;

CREATE TABLE attempts (
  backfill    INTEGER NOT NULL,
  node        INTEGER NOT NULL,
  date        INTEGER NOT NULL,
  slot        TEXT NOT NULL,
  attempt     INTEGER NOT NULL,
  token       INTEGER NOT NULL,
  began       INTEGER NOT NULL, -- number drawn before the engine was asked
  status      TEXT NOT NULL,
  started_at  INTEGER NOT NULL,
  finished_at INTEGER NOT NULL DEFAULT 0,
  error       TEXT NOT NULL DEFAULT '',
  facts       TEXT NOT NULL DEFAULT '', -- JSON object of numbers
  PRIMARY KEY (backfill, node, date, slot, attempt)
) WITHOUT ROWID;

CREATE TABLE log_chunks (
  backfill INTEGER NOT NULL,
  node     INTEGER NOT NULL,
  date     INTEGER NOT NULL,
  slot     TEXT NOT NULL,
  attempt  INTEGER NOT NULL,
  seq      INTEGER NOT NULL,
  at       INTEGER NOT NULL,
  text     TEXT NOT NULL,
  PRIMARY KEY (backfill, node, date, slot, attempt, seq)
) WITHOUT ROWID;

CREATE TABLE definitions (
  id           INTEGER PRIMARY KEY,
  digest       TEXT NOT NULL UNIQUE, -- the id that plans use
  tbl          TEXT NOT NULL,
  text         TEXT NOT NULL,
  fingerprints TEXT NOT NULL         -- JSON
);

CREATE TABLE targets (
  id          INTEGER PRIMARY KEY,
  environment TEXT NOT NULL,
  node        TEXT NOT NULL,
  UNIQUE (environment, node)
);

CREATE TABLE field_sets (
  id     INTEGER PRIMARY KEY,
  fields TEXT NOT NULL UNIQUE -- sorted JSON array
);

-- What built a slot of a materialization node. fields 0 = every field.
CREATE TABLE built (
  target     INTEGER NOT NULL,
  date       INTEGER NOT NULL,
  slot       TEXT NOT NULL,
  build      INTEGER NOT NULL, -- drawn when the commit was recorded
  began      INTEGER NOT NULL, -- drawn before the inputs were read
  definition INTEGER NOT NULL, -- 0 = none
  fields     INTEGER NOT NULL,
  backfill   INTEGER NOT NULL,
  rows       INTEGER NOT NULL,
  built_at   INTEGER NOT NULL,
  PRIMARY KEY (target, date, slot, build)
) WITHOUT ROWID;

CREATE TABLE param_values (
  environment TEXT NOT NULL,
  node        TEXT NOT NULL,
  param       TEXT NOT NULL,
  date        INTEGER NOT NULL,
  seq         INTEGER NOT NULL, -- rising: the last one of a date counts
  value       TEXT NOT NULL,
  backfill    INTEGER NOT NULL,
  finished_at INTEGER NOT NULL,
  PRIMARY KEY (environment, node, param, date, seq)
) WITHOUT ROWID;

CREATE TABLE leases (
  target      INTEGER NOT NULL,
  date_from   INTEGER NOT NULL,
  date_to     INTEGER NOT NULL,
  minute_from INTEGER NOT NULL, -- of the day, both included
  minute_to   INTEGER NOT NULL,
  fields      INTEGER NOT NULL, -- 0 = every field
  backfill    INTEGER NOT NULL
);
CREATE INDEX leases_by_target ON leases (target, date_from);
CREATE INDEX leases_by_backfill ON leases (backfill);

CREATE TABLE paused_nodes (
  project   TEXT NOT NULL,
  node      TEXT NOT NULL,
  since     INTEGER NOT NULL,
  by_whom   TEXT NOT NULL,
  reason    TEXT NOT NULL,
  PRIMARY KEY (project, node)
) WITHOUT ROWID;

CREATE TABLE operations (
  id       INTEGER PRIMARY KEY,
  at       INTEGER NOT NULL,
  by_whom  TEXT NOT NULL,
  op       TEXT NOT NULL,
  backfill TEXT NOT NULL,
  target   TEXT NOT NULL, -- instance id, node, or ''
  reason   TEXT NOT NULL,
  detail   TEXT NOT NULL
);

CREATE TABLE catalog_cache (
  environment TEXT PRIMARY KEY,
  at          INTEGER NOT NULL,
  tables      TEXT NOT NULL -- JSON
) WITHOUT ROWID;
