-- Older logic that is accepted before a date (forward-only). It holds as long
-- as the logic is still that of the definition.
CREATE TABLE acceptances (
  id          INTEGER PRIMARY KEY,
  environment TEXT NOT NULL,
  tbl         TEXT NOT NULL,
  fields      TEXT NOT NULL,    -- sorted JSON array, '' = every field and the row set
  before      INTEGER NOT NULL, -- business date, not included
  definition  INTEGER NOT NULL, -- what was current
  at          INTEGER NOT NULL,
  by_whom     TEXT NOT NULL
);
CREATE INDEX acceptances_by_table ON acceptances (environment, tbl);
