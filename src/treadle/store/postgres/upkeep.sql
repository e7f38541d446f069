-- The statements of migrating, forgetting and looking after, by name, as in queries.sql.

-- One row holds the version of the schema and the number of shards. A process that migrates locks it.
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

-- name: read_version
SELECT version FROM treadle_schema;

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

-- Unanswered requests stay: their senders are told that there is no such run.
-- name: drop_requests
DELETE FROM requests WHERE run = ANY($1::text[]) AND answer IS NOT NULL AND fingerprint IS NULL;

-- name: drop_blobs
DELETE FROM blobs WHERE run = ANY($1::text[]);

-- name: drop_other_blobs
DELETE FROM blobs WHERE run = $1 AND NOT digest = ANY($2::bytea[]);

-- name: drop_tags
DELETE FROM tags WHERE run = ANY($1::text[]);

-- name: drop_keys
DELETE FROM run_keys USING runs WHERE runs.run = ANY($1::text[]) AND run_keys.workflow = runs.workflow
AND run_keys.idempotency_key = runs.idempotency_key AND run_keys.run = runs.run;

-- name: drop_item_keys
DELETE FROM run_keys USING batch_items AS item WHERE item.run = ANY($1::text[]) AND run_keys.workflow = item.workflow
AND run_keys.idempotency_key = item.idempotency_key AND run_keys.run = item.run;

-- name: drop_items
DELETE FROM batch_items WHERE run = ANY($1::text[]);

-- The greatest position of these runs' blocks; NULL before there were positions.
-- name: last_position_of
SELECT max(ends.position) FROM runs CROSS JOIN LATERAL (
    SELECT position FROM history WHERE history.run = runs.run AND day >= runs.first_day AND day <= runs.last_day
    ORDER BY seq DESC LIMIT 1) AS ends
WHERE runs.run = ANY($1::text[]);

-- The row is locked until the commit: numbers of forgettings come in the order of their commits.
-- name: count_forgetting
UPDATE calendar SET forgets = forgets + 1 RETURNING forgets;

-- name: drop_lesser_forgets
DELETE FROM forgets WHERE last <= $1;

-- name: note_forgetting
INSERT INTO forgets (number, last) VALUES ($1, $2);

-- name: first_blocks
SELECT runs.run, ends.seq, ends.block, ends.position FROM runs CROSS JOIN LATERAL (
    SELECT seq, block, position FROM history WHERE history.run = runs.run AND day >= runs.first_day AND day <= runs.last_day
    ORDER BY seq LIMIT 1) AS ends
WHERE runs.run = ANY($1::text[]);

-- name: last_blocks
SELECT runs.run, ends.seq, ends.block, ends.position FROM runs CROSS JOIN LATERAL (
    SELECT seq, block, position FROM history WHERE history.run = runs.run AND day >= runs.first_day AND day <= runs.last_day
    ORDER BY seq DESC LIMIT 1) AS ends
WHERE runs.run = ANY($1::text[]);

-- Blocks of earlier days go with their partitions.
-- name: drop_history
DELETE FROM history WHERE run = ANY($1::text[]) AND day >= $2;

-- name: keep_ends
INSERT INTO history (run, seq, day, block, position)
SELECT new.run, new.seq, $5, new.block, new.position
FROM unnest($1::text[], $2::bigint[], $3::bytea[], $4::bigint[]) AS new (run, seq, block, position);

-- name: note_shortened
UPDATE runs SET first_day = $2, last_day = $2 WHERE run = ANY($1::text[]);

-- name: drop_runs
DELETE FROM runs WHERE run = ANY($1::text[]);

-- name: read_day
SELECT day FROM calendar;

-- name: is_another_day
SELECT day < (now() AT TIME ZONE 'UTC')::date FROM calendar;

-- name: begin_day
WITH held AS MATERIALIZED (
    SELECT one FROM calendar WHERE day < (now() AT TIME ZONE 'UTC')::date FOR UPDATE SKIP LOCKED
)
UPDATE calendar SET day = (now() AT TIME ZONE 'UTC')::date FROM held WHERE calendar.one = held.one
RETURNING calendar.day;

-- name: partitions
SELECT child.relname, pg_get_expr(child.relpartbound, child.oid), child.reltuples
FROM pg_inherits JOIN pg_class AS child ON child.oid = pg_inherits.inhrelid
WHERE pg_inherits.inhparent = 'history'::regclass;

-- Blocks of a partition, whose name is put for `history`, that are of runs that are kept.
-- name: kept_blocks
SELECT blocks.run FROM history AS blocks WHERE EXISTS (
    SELECT 1 FROM runs WHERE runs.run = blocks.run AND runs.first_day <= blocks.day AND runs.last_day >= blocks.day)
LIMIT $1;

-- name: hold_runs
SELECT run FROM runs WHERE run = ANY($1::text[]) ORDER BY run FOR UPDATE;

-- Reads the runs again, which are locked by now: blocks of runs that were forgotten or shortened meanwhile are not moved.
-- name: move_blocks
UPDATE history SET day = $4 FROM runs
WHERE runs.run = ANY($1::text[]) AND history.run = runs.run AND history.day >= $2 AND history.day < $3
AND history.day >= runs.first_day AND history.day <= runs.last_day;

-- name: note_moved
UPDATE runs SET last_day = greatest(last_day, $2), first_day = (
    SELECT min(day) FROM history WHERE history.run = runs.run AND day >= runs.first_day)
WHERE run = ANY($1::text[]);

-- A run's row and its history must agree, or a commit was torn apart.
-- name: runs_out_of_step
SELECT runs.run, runs.seq, ends.seq FROM runs LEFT JOIN LATERAL (
    SELECT history.seq FROM history WHERE history.run = runs.run AND day >= runs.first_day AND day <= runs.last_day
    ORDER BY history.seq DESC LIMIT 1) AS ends ON true
WHERE runs.seq IS DISTINCT FROM ends.seq LIMIT $1;

-- A position must be the last move of its entity in its workflow (invariant 2 of store/entities.py).
-- name: positions_astray
SELECT entity, workflow FROM positions
WHERE NOT EXISTS (SELECT 1 FROM moves WHERE moves.entity = positions.entity AND moves.workflow = positions.workflow
    AND (moves.at, moves.run, moves.seq) = (positions.at, positions.run, positions.seq)
    AND (moves.kind, moves.place) = (positions.kind, positions.place))
OR EXISTS (SELECT 1 FROM moves WHERE moves.entity = positions.entity AND moves.workflow = positions.workflow
    AND (moves.at, moves.run, moves.seq) > (positions.at, positions.run, positions.seq))
LIMIT $1;

-- Blocks of earlier days may be of runs that were forgotten.
-- name: rows_without_run
SELECT 'outbox' AS "table", run FROM outbox WHERE NOT EXISTS (SELECT 1 FROM runs WHERE runs.run = outbox.run)
UNION ALL SELECT 'timers', run FROM timers WHERE NOT EXISTS (SELECT 1 FROM runs WHERE runs.run = timers.run)
UNION ALL SELECT 'gates', run FROM gates WHERE NOT EXISTS (SELECT 1 FROM runs WHERE runs.run = gates.run)
UNION ALL SELECT 'tags', run FROM tags WHERE NOT EXISTS (SELECT 1 FROM runs WHERE runs.run = tags.run)
UNION ALL SELECT 'work', run FROM work WHERE NOT EXISTS (SELECT 1 FROM runs WHERE runs.run = work.run)
UNION ALL SELECT 'history', run FROM history WHERE day >= (SELECT day FROM calendar)
    AND NOT EXISTS (SELECT 1 FROM runs WHERE runs.run = history.run)
UNION ALL SELECT 'run_keys', run FROM run_keys WHERE NOT EXISTS (SELECT 1 FROM runs WHERE runs.run = run_keys.run)
UNION ALL SELECT 'batch_items', run FROM batch_items
    WHERE NOT EXISTS (SELECT 1 FROM runs WHERE runs.run = batch_items.run)
LIMIT $1;

-- The primary key of history has to end with the day, so it does not make numbers unique: the guard of `move_runs` does.
-- name: blocks_twice
SELECT history.run, history.seq FROM history JOIN runs ON runs.run = history.run
WHERE day >= first_day AND day <= last_day GROUP BY history.run, history.seq HAVING count(*) > 1 LIMIT $1;

-- name: keys_astray
SELECT runs.run, runs.idempotency_key FROM runs LEFT JOIN run_keys
    ON run_keys.workflow = runs.workflow AND run_keys.idempotency_key = runs.idempotency_key
WHERE runs.idempotency_key IS NOT NULL AND run_keys.run IS DISTINCT FROM runs.run
UNION ALL SELECT item.run, item.idempotency_key FROM batch_items AS item LEFT JOIN run_keys
    ON run_keys.workflow = item.workflow AND run_keys.idempotency_key = item.idempotency_key
WHERE item.idempotency_key IS NOT NULL AND run_keys.run IS DISTINCT FROM item.run LIMIT $1;

-- The shard of a run is computed by the writer in Python, so it is checked in Python, page by page.
-- name: page_of_runs
SELECT run, shard FROM runs WHERE run > $1 ORDER BY run LIMIT $2;

-- name: rows_in_another_shard
SELECT 'outbox' AS "table", outbox.run FROM outbox JOIN runs ON runs.run = outbox.run
    WHERE outbox.shard <> runs.shard OR outbox.shard <> outbox.id % 1024
UNION ALL SELECT 'timers', timers.run FROM timers JOIN runs ON runs.run = timers.run WHERE timers.shard <> runs.shard
UNION ALL SELECT 'requests', requests.run FROM requests JOIN runs ON runs.run = requests.run
    WHERE requests.shard <> runs.shard
UNION ALL SELECT 'work', work.run FROM work JOIN runs ON runs.run = work.run WHERE work.shard <> runs.shard
LIMIT $1;

-- name: count_partitions
SELECT count(*) FROM pg_inherits WHERE inhparent = 'history'::regclass;

-- name: size_of_database
SELECT pg_database_size(current_database());

-- Advice for the planner; only speed depends on it, so that a pooler may lose it. A statement that was planned while
-- its tables were empty would go on reading all of them until the server analyses them, minutes later: a step among
-- 50,000 fresh runs took 6.5 ms instead of 1. So every row is reached by a step into an index: what we ask for is few
-- rows of many. A statement is planned once for a connection: planning a commit anew for its values took 400 µs of the
-- server for a lone step, and carrying it out 130.
-- name: advise_planner
SELECT set_config('enable_seqscan', 'off', false), set_config('enable_hashjoin', 'off', false),
    set_config('enable_mergejoin', 'off', false), set_config('jit', 'off', false),
    set_config('plan_cache_mode', 'force_generic_plan', false);

-- The process that answers: behind a pooler another one than the pooler has promised.
-- name: who_answers
SELECT pg_backend_pid(), NOT pg_is_in_recovery();

-- The same, and which cluster this is, on which timeline, how far its log is safely written (see witness.py). The name of a log file
-- begins with the timeline. A standby has the timeline of the server it follows, and tells it to users with the right.
-- name: look
SELECT pg_backend_pid(), NOT pg_is_in_recovery(), (SELECT system_identifier FROM pg_control_system()),
    CASE WHEN pg_is_in_recovery() THEN (SELECT received_tli FROM pg_stat_get_wal_receiver())
        ELSE ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::integer END,
    CASE WHEN NOT pg_is_in_recovery() THEN (pg_current_wal_flush_lsn() - '0/0')::bigint END;

-- name: add_epochs
SELECT coalesce(sum(epoch), 0)::bigint FROM leases;
