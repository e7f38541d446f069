-- Runs may be queued (6.7).
ALTER TABLE runs DROP CONSTRAINT runs_status_check;
ALTER TABLE runs ADD CONSTRAINT runs_status_check CHECK (status IN ('created', 'queued', 'running', 'paused',
    'completed', 'failed', 'cancelled', 'timed_out', 'compensating', 'compensated', 'compensation_failed'));

DROP INDEX runs_open;
CREATE INDEX runs_open ON runs (shard) WHERE status IN ('created', 'queued', 'running', 'paused', 'compensating');
