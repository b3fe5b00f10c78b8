-- Order-free: equal for equal rows in any order, different counts included.
SELECT count(*)::BIGINT, coalesce(sum(hash(t)::HUGEINT), 0)::VARCHAR FROM %s t
