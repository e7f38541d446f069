-- Lists by time and by key alone. Runs without a key pay for the first only.

-- In blocks of 4,096 runs: one look per block finds the runs that started before an instant, however long ago, and a list
-- is still read in the order of creation (`started_blocks`).
CREATE INDEX runs_started ON runs ((created >> 12), started);

CREATE INDEX run_keys_key ON run_keys (idempotency_key);
