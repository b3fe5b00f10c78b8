-- Version 3: backfills are steered from other processes, and commit markers
-- carry an identity that a recreated ledger does not share.

CREATE TABLE identity (
  id TEXT NOT NULL
);
INSERT INTO identity SELECT lower(hex(randomblob(6)));

-- What commit markers call the backfill. Those made before keep their name,
-- because their markers are in the target already.
ALTER TABLE backfills ADD COLUMN marker TEXT NOT NULL DEFAULT '';
UPDATE backfills SET marker = name;
ALTER TABLE backfills ADD COLUMN steered INTEGER NOT NULL DEFAULT 0; -- rises with each operation
ALTER TABLE backfills ADD COLUMN paused INTEGER NOT NULL DEFAULT 0;
ALTER TABLE backfills ADD COLUMN run_at INTEGER NOT NULL DEFAULT 0;

ALTER TABLE instances ADD COLUMN forced INTEGER NOT NULL DEFAULT 0; -- runs whatever its upstream
ALTER TABLE instances ADD COLUMN halted INTEGER NOT NULL DEFAULT 0; -- a user wants it stopped

-- Dependencies that a user removed for one instance. up_date is the business
-- date of the upstream instances.
CREATE TABLE removed_dependencies (
  backfill INTEGER NOT NULL,
  node     INTEGER NOT NULL,
  date     INTEGER NOT NULL,
  slot     TEXT NOT NULL,
  up_node  INTEGER NOT NULL,
  up_date  INTEGER NOT NULL,
  PRIMARY KEY (backfill, node, date, slot, up_node, up_date)
) WITHOUT ROWID;
