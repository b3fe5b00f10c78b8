-- What retrofill sets on each connection of its own, so that the bare run
-- meets the same engine.
SET "TimeZone" = 'UTC';
