-- The statements of the verbs, by name; those of migrating, forgetting and looking after are in upkeep.sql. `queries.py`
-- reads both; a statement reaches to the next name. Rows of a batch arrive as one array per column.

-- Holds the shard until the end of the transaction: whoever takes the lease over waits for it, and commits of one shard
-- follow each other. One holder at a time makes no multixacts, as FOR SHARE would.
-- name: check_fence
SELECT 1 FROM leases WHERE shard = $1 AND owner = $2 AND epoch = $3 FOR NO KEY UPDATE;

-- name: read_lease
SELECT owner, epoch FROM leases WHERE shard = $1;

-- Takes, renews or inherits a shard; no row while somebody else holds it.
-- name: take_lease
INSERT INTO leases (shard, owner, epoch, until) VALUES ($1, $2, 1, $3::bigint + $4::bigint)
ON CONFLICT (shard) DO UPDATE SET owner = excluded.owner, until = excluded.until,
    epoch = leases.epoch + CASE WHEN leases.until <= $3 OR $5::boolean THEN 1 ELSE 0 END
WHERE leases.until <= $3 OR $5 OR leases.owner = excluded.owner
RETURNING epoch;

-- Changes nothing and writes.
-- name: touch_lease
UPDATE leases SET until = until WHERE shard = $1;

-- name: release_lease
UPDATE leases SET until = 0 WHERE shard = $1 AND owner = $2 AND epoch = $3;

-- name: create_runs
INSERT INTO runs (run, shard, workflow, version, status, busy, seq, started, changed, idempotency_key, entity, parent,
    tags)
SELECT new.run, $1, new.workflow, new.version, new.status, new.busy, new.seq, new.started, new.changed, new.key,
    new.entity, new.parent, new.tags
FROM unnest($2::text[], $3::text[], $4::bigint[], $5::text[], $6::boolean[], $7::bigint[], $8::bigint[], $9::bigint[],
    $10::text[], $11::text[], $12::text[], $13::text[]) WITH ORDINALITY
    AS new (run, workflow, version, status, busy, seq, started, changed, key, entity, parent, tags, place)
ORDER BY new.place
ON CONFLICT (run) DO NOTHING;

-- In the order of the keys, so that two engines wait for each other and do not lock each other out.
-- name: claim_keys
INSERT INTO run_keys (workflow, idempotency_key, run)
SELECT new.workflow, new.key, new.run FROM unnest($1::text[], $2::text[], $3::text[]) AS new (workflow, key, run)
ORDER BY new.workflow, new.key
ON CONFLICT (workflow, idempotency_key) DO NOTHING;

-- name: tag_runs
INSERT INTO tags (run, tag) SELECT new.run, new.tag FROM unnest($1::text[], $2::text[]) AS new (run, tag)
ON CONFLICT (run, tag) DO NOTHING;

-- Guarded by the sequence number each decision saw.
-- name: move_runs
UPDATE runs SET seq = moved.last, changed = coalesce(moved.changed, runs.changed), status = moved.status,
    busy = moved.busy
FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::bigint[], $5::text[], $6::boolean[])
    AS moved (run, expected, last, changed, status, busy)
WHERE runs.run = moved.run AND runs.seq = moved.expected;

-- The commonest batch, steps and nothing else, as one statement that is its own transaction: 1 round trip instead of 5.
-- Whatever does not fit divides by zero, which undoes it; the long way then says what it was.
-- name: step_runs
WITH fence AS MATERIALIZED (
    SELECT shard FROM leases WHERE shard = $1 AND owner = $2 AND epoch = $3 FOR NO KEY UPDATE
), stepped AS (
    UPDATE runs SET seq = moved.last, changed = coalesce(moved.changed, runs.changed), status = moved.status,
        busy = moved.busy
    FROM fence, unnest($4::text[], $5::bigint[], $6::bigint[], $7::bigint[], $8::text[], $9::boolean[])
        AS moved (run, expected, last, changed, status, busy)
    WHERE runs.run = moved.run AND runs.seq = moved.expected
    RETURNING runs.run
), written AS (
    INSERT INTO history (run, seq, block)
    SELECT new.run, new.seq, new.block
    FROM fence, unnest($10::text[], $11::bigint[], $12::bytea[]) AS new (run, seq, block)
)
SELECT 1 / CASE WHEN (SELECT count(*) FROM stepped) = cardinality($4::text[]) THEN 1 ELSE 0 END;

-- name: append_history
INSERT INTO history (run, seq, block)
SELECT new.run, new.seq, new.block FROM unnest($1::text[], $2::bigint[], $3::bytea[]) AS new (run, seq, block);

-- name: add_effects
INSERT INTO outbox (shard, run, effect)
SELECT $1, new.run, new.effect FROM unnest($2::text[], $3::bytea[]) WITH ORDINALITY AS new (run, effect, place)
ORDER BY new.place
RETURNING id;

-- name: effects_done
DELETE FROM outbox WHERE shard = $1 AND id = ANY($2::bigint[]);

-- name: park_effects
UPDATE outbox SET parked = given.reason FROM unnest($2::bigint[], $3::text[]) AS given (id, reason)
WHERE outbox.shard = $1 AND outbox.id = given.id;

-- name: set_timers
INSERT INTO timers (shard, run, timer, due)
SELECT $1, new.run, new.timer, new.due
FROM unnest($2::text[], $3::bigint[], $4::bigint[]) AS new (run, timer, due)
ON CONFLICT (run, timer) DO UPDATE SET due = excluded.due;

-- name: clear_timers
DELETE FROM timers USING unnest($1::text[], $2::bigint[]) AS gone (run, timer)
WHERE timers.run = gone.run AND timers.timer = gone.timer;

-- name: open_gates
INSERT INTO gates (run, token, node, opened, title, assign, due)
SELECT new.run, new.token, new.node, new.opened, new.title, new.assign, new.due
FROM unnest($1::text[], $2::bigint[], $3::text[], $4::bigint[], $5::text[], $6::bytea[], $7::bigint[])
    AS new (run, token, node, opened, title, assign, due)
ON CONFLICT (run, token) DO UPDATE SET node = excluded.node, opened = excluded.opened, title = excluded.title,
    assign = excluded.assign, due = excluded.due;

-- name: close_gates
DELETE FROM gates USING unnest($1::text[], $2::bigint[]) AS gone (run, token)
WHERE gates.run = gone.run AND gates.token = gone.token;

-- Only the first answer counts.
-- name: answer_requests
UPDATE requests SET answer = given.answer FROM unnest($2::text[], $3::bytea[]) AS given (request, answer)
WHERE requests.shard = $1 AND requests.request = given.request AND requests.answer IS NULL;

-- name: keep_request
INSERT INTO requests (run, request, shard, workflow, at, command) VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT (run, request) DO NOTHING;

-- name: read_answer
SELECT answer FROM requests WHERE run = $1 AND request = $2;

-- name: waiting_requests
SELECT request, run, workflow, at, command FROM requests WHERE shard = $1 AND answer IS NULL ORDER BY arrived LIMIT $2;

-- name: where_runs_stand
SELECT run, seq FROM runs WHERE run = ANY($1::text[]);

-- name: keys_taken
SELECT run_keys.workflow, run_keys.idempotency_key FROM run_keys
JOIN unnest($1::text[], $2::text[]) AS wanted (workflow, key)
    ON run_keys.workflow = wanted.workflow AND run_keys.idempotency_key = wanted.key
LIMIT 1;

-- name: read_history
SELECT block FROM history WHERE run = $1 AND seq > $2 ORDER BY seq;

-- As many blocks as can be needed: every block has at least one event.
-- name: read_some_history
SELECT block FROM history WHERE run = $1 AND seq > $2 ORDER BY seq LIMIT $3;

-- name: find_runs
SELECT run, workflow, version, status, seq, idempotency_key, started, changed, busy, entity, tags, parent FROM runs

-- The conditions of a query, joined by AND; each has its own parameter, numbered anew when they are joined.
-- name: if_run
run = $1
-- name: if_workflow
workflow = $1
-- name: if_idempotency_key
idempotency_key = $1
-- name: if_statuses
status = ANY($1::text[])
-- name: if_tag
run IN (SELECT tags.run FROM tags WHERE tag = $1)
-- name: if_entity
entity = $1
-- name: if_parent
parent = $1
-- name: if_shard
shard = $1
-- name: if_busy
busy
-- name: if_idle
NOT busy
-- name: if_started_from
started >= $1
-- name: if_started_until
started < $1
-- name: if_after
created > (SELECT behind.created FROM runs AS behind WHERE behind.run = $1)
-- name: if_before
created < (SELECT behind.created FROM runs AS behind WHERE behind.run = $1)

-- One step into one index instead of the conditions above.
-- name: if_key
run = (SELECT run_keys.run FROM run_keys WHERE run_keys.workflow = $1 AND run_keys.idempotency_key = $2)

-- name: find_gates
SELECT gates.run, token, node, workflow, opened, title, assign, due FROM gates JOIN runs ON runs.run = gates.run
ORDER BY opened, created, token LIMIT $1;

-- name: find_gates_of_run
SELECT gates.run, token, node, workflow, opened, title, assign, due FROM gates JOIN runs ON runs.run = gates.run
WHERE gates.run = $1 ORDER BY opened, token LIMIT $2;

-- name: read_outbox
SELECT id, run, effect, parked FROM outbox WHERE shard = $1 AND id > $2 AND parked IS NULL ORDER BY id LIMIT $3;

-- name: read_parked
SELECT id, run, effect, parked FROM outbox WHERE shard = $1 AND id > $2 AND parked IS NOT NULL ORDER BY id LIMIT $3;

-- The timers of a paused run stand still.
-- name: read_timers
SELECT timers.run, timer, due FROM timers JOIN runs ON runs.run = timers.run
WHERE timers.shard = $1 AND due <= $2 AND status <> 'paused' ORDER BY due LIMIT $3;

-- name: newest_document
SELECT kind, name, version, hash, body FROM documents WHERE kind = $1 AND name = $2 ORDER BY version DESC LIMIT 1;

-- name: put_document
INSERT INTO documents (kind, name, version, hash, body) VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (kind, name, version) DO NOTHING;

-- Of what an engine only remembers.
-- name: drop_older_documents
DELETE FROM documents WHERE kind = $1 AND name = $2 AND version < $3;

-- name: newest_documents
SELECT kind, name, version, hash, body FROM (
    SELECT DISTINCT ON (name) kind, name, version, hash, body FROM documents WHERE kind = $1
    ORDER BY name, version DESC) AS newest
ORDER BY name COLLATE "C";

-- name: document_version
SELECT kind, name, version, hash, body FROM documents WHERE kind = $1 AND name = $2 AND version = $3;

-- name: documents_of_version
SELECT kind, name, version, hash, body FROM documents WHERE kind = $1 AND version = $2 ORDER BY name COLLATE "C";

-- name: put_blobs
INSERT INTO blobs (run, digest, content)
SELECT new.run, new.digest, new.content FROM unnest($1::text[], $2::bytea[], $3::bytea[]) AS new (run, digest, content)
ON CONFLICT (run, digest) DO NOTHING;

-- name: get_blob
SELECT content FROM blobs WHERE digest = $1 LIMIT 1;

-- What records of runs refer to.
-- name: blobs_of_runs
SELECT DISTINCT ON (digest) digest, content FROM blobs
WHERE run = ANY($1::text[]) AND digest = ANY($2::bytea[]) ORDER BY digest;

-- name: drop_gates
DELETE FROM gates WHERE run = ANY($1::text[]);
