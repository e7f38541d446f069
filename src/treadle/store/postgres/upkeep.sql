-- The statements of migrating, forgetting and looking after, by name, as in queries.sql.

-- One row says which migrations a database has seen and over how many shards its runs are spread. Whoever migrates
-- holds it.
-- name: make_state
CREATE TABLE IF NOT EXISTS treadle_schema (
    one boolean PRIMARY KEY DEFAULT true CHECK (one),
    version integer NOT NULL,
    shards integer NOT NULL CHECK (shards >= 1)
);

-- name: begin_state
INSERT INTO treadle_schema (version, shards) VALUES (0, $1) ON CONFLICT (one) DO NOTHING;

-- name: hold_state
SELECT version FROM treadle_schema FOR UPDATE;

-- name: read_state
SELECT version, shards FROM treadle_schema;

-- name: advance_state
UPDATE treadle_schema SET version = $1;

-- name: finished_runs
SELECT run FROM runs WHERE run = ANY($1::text[])
AND status IN ('completed', 'failed', 'cancelled', 'timed_out', 'compensated', 'compensation_failed')
ORDER BY run FOR UPDATE;

-- name: drop_effects
DELETE FROM outbox WHERE run = ANY($1::text[]);

-- name: drop_timers
DELETE FROM timers WHERE run = ANY($1::text[]);

-- Unanswered requests stay: their senders learn that there is no such run.
-- name: drop_requests
DELETE FROM requests WHERE run = ANY($1::text[]) AND answer IS NOT NULL;

-- name: drop_blobs
DELETE FROM blobs WHERE run = ANY($1::text[]);

-- name: drop_other_blobs
DELETE FROM blobs WHERE run = $1 AND NOT digest = ANY($2::bytea[]);

-- name: drop_tags
DELETE FROM tags WHERE run = ANY($1::text[]);

-- name: drop_keys
DELETE FROM run_keys USING runs WHERE runs.run = ANY($1::text[]) AND run_keys.workflow = runs.workflow
AND run_keys.idempotency_key = runs.idempotency_key AND run_keys.run = runs.run;

-- name: first_blocks
SELECT DISTINCT ON (run) run, block FROM history WHERE run = ANY($1::text[]) ORDER BY run, seq;

-- name: last_blocks
SELECT DISTINCT ON (run) run, block FROM history WHERE run = ANY($1::text[]) ORDER BY run, seq DESC;

-- name: drop_history
DELETE FROM history WHERE run = ANY($1::text[]);

-- name: drop_runs
DELETE FROM runs WHERE run = ANY($1::text[]);

-- A run's row and its history must agree, or a commit was torn apart.
-- name: runs_out_of_step
SELECT run, seq, (SELECT max(history.seq) FROM history WHERE history.run = runs.run) AS last FROM runs
WHERE seq IS DISTINCT FROM (SELECT max(history.seq) FROM history WHERE history.run = runs.run) LIMIT $1;

-- name: rows_without_run
SELECT 'outbox' AS "table", run FROM outbox WHERE NOT EXISTS (SELECT 1 FROM runs WHERE runs.run = outbox.run)
UNION ALL SELECT 'timers', run FROM timers WHERE NOT EXISTS (SELECT 1 FROM runs WHERE runs.run = timers.run)
UNION ALL SELECT 'gates', run FROM gates WHERE NOT EXISTS (SELECT 1 FROM runs WHERE runs.run = gates.run)
UNION ALL SELECT 'tags', run FROM tags WHERE NOT EXISTS (SELECT 1 FROM runs WHERE runs.run = tags.run)
UNION ALL SELECT 'history', run FROM history WHERE NOT EXISTS (SELECT 1 FROM runs WHERE runs.run = history.run)
UNION ALL SELECT 'run_keys', run FROM run_keys WHERE NOT EXISTS (SELECT 1 FROM runs WHERE runs.run = run_keys.run)
LIMIT $1;

-- name: size_of_database
SELECT pg_database_size(current_database());

-- Advice for the planner; nothing but speed hangs on it, so that a pooler may lose it. A statement that was planned while
-- its table was empty would go on reading all of it until the server analyses the table, minutes later: a step among
-- 50,000 fresh runs took 6.5 ms instead of 1.
-- name: advise_planner
SELECT set_config('enable_seqscan', 'off', false), set_config('jit', 'off', false);
