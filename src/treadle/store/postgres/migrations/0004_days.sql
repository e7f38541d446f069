-- History by day. What its tables mean is written in schema.sql; a migration is never changed. Blocks that are there
-- become the first partition: nothing is copied.

CREATE TABLE calendar (
    one boolean PRIMARY KEY DEFAULT true CHECK (one),
    day date NOT NULL
);
INSERT INTO calendar (day) VALUES ((now() AT TIME ZONE 'UTC')::date);

ALTER TABLE runs ADD COLUMN first_day date NOT NULL DEFAULT (now() AT TIME ZONE 'UTC')::date;
ALTER TABLE runs ADD COLUMN last_day date NOT NULL DEFAULT (now() AT TIME ZONE 'UTC')::date;
ALTER TABLE runs ALTER COLUMN first_day DROP DEFAULT;
ALTER TABLE runs ALTER COLUMN last_day DROP DEFAULT;

ALTER TABLE history RENAME TO history_first;
ALTER TABLE history_first ADD COLUMN day date NOT NULL DEFAULT (now() AT TIME ZONE 'UTC')::date;
ALTER TABLE history_first ALTER COLUMN day DROP DEFAULT;
ALTER TABLE history_first DROP CONSTRAINT history_pkey;
ALTER TABLE history_first ADD CONSTRAINT history_first_pkey PRIMARY KEY (run, seq, day);
CREATE TABLE history (
    run text NOT NULL,
    seq bigint NOT NULL,
    block bytea NOT NULL,
    day date NOT NULL,
    PRIMARY KEY (run, seq, day)
) PARTITION BY RANGE (day);
ALTER TABLE history ATTACH PARTITION history_first
    FOR VALUES FROM (MINVALUE) TO ((now() AT TIME ZONE 'UTC')::date + 1);

DROP INDEX runs_status, runs_shard;
CREATE INDEX runs_ended ON runs (status, started)
    WHERE status IN ('completed', 'failed', 'cancelled', 'timed_out', 'compensated', 'compensation_failed');
CREATE INDEX runs_open ON runs (shard) WHERE status IN ('created', 'running', 'paused', 'compensating');

ALTER TABLE outbox SET (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);
ALTER TABLE timers SET (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);
ALTER TABLE requests SET (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);
ALTER TABLE runs SET (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.02);
ALTER TABLE leases SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);
ALTER TABLE nodes SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);
