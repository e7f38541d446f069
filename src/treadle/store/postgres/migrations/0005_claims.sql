-- Claims under limits were counted by reading all that is claimed, of any queue: planned on a small table, either index
-- would do, and a plan stays with its connection. The index of shards now says "claimed" in words that only
-- `expired_claims` uses.

DROP INDEX work_at_work;
CREATE INDEX work_at_work ON work (shard) WHERE worker >= '';
