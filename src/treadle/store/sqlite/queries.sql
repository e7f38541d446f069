-- Every statement of the store, by name. `queries.py` reads this file; a statement reaches to the next name.

-- name: check_fence
SELECT 1 FROM leases WHERE shard = ? AND owner = ? AND epoch = ?;

-- name: read_lease
SELECT owner, epoch, until FROM leases WHERE shard = ?;

-- name: take_lease
INSERT INTO leases (shard, owner, epoch, until) VALUES (?, ?, ?, ?)
ON CONFLICT (shard) DO UPDATE SET owner = excluded.owner, epoch = excluded.epoch, until = excluded.until;

-- Changes nothing and writes a page.
-- name: touch_lease
UPDATE leases SET until = until WHERE shard = ?;

-- name: release_lease
UPDATE leases SET until = 0 WHERE shard = ? AND owner = ? AND epoch = ?;

-- name: create_run
INSERT INTO runs (run, workflow, version, status, busy, seq, started, changed, idempotency_key, entity, parent, tags)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: tag_run
INSERT OR IGNORE INTO tags (tag, run) SELECT ?, id FROM runs WHERE run = ?;

-- A step that changes neither status nor busy, which are indexed: SQLite rewrites an index entry whenever its column is
-- named in SET, equal or not.
-- name: step_run
UPDATE runs SET seq = :last, changed = coalesce(:changed, changed)
WHERE run = :run AND seq = :expected AND status = :status AND busy = :busy;

-- The other case. Together they match every run that is at the number its decision saw, exactly once.
-- name: turn_run
UPDATE runs SET seq = :last, changed = coalesce(:changed, changed), status = :status, busy = :busy
WHERE run = :run AND seq = :expected AND (status <> :status OR busy <> :busy);

-- name: append_history
INSERT INTO history (run, seq, block) VALUES ((SELECT id FROM runs WHERE run = ?), ?, ?);

-- name: add_effect
INSERT INTO outbox (run, effect) VALUES ((SELECT id FROM runs WHERE run = ?), ?) RETURNING id;

-- name: effect_done
DELETE FROM outbox WHERE id = ?;

-- name: park_effect
UPDATE outbox SET parked = ? WHERE id = ?;

-- name: set_timer
INSERT INTO timers (run, timer, due) VALUES ((SELECT id FROM runs WHERE run = ?), ?, ?)
ON CONFLICT (run, timer) DO UPDATE SET due = excluded.due;

-- name: clear_timer
DELETE FROM timers WHERE run = (SELECT id FROM runs WHERE run = ?) AND timer = ?;

-- name: open_gate
INSERT OR REPLACE INTO gates (run, token, node, opened, title, assign, due, claimed_by)
VALUES ((SELECT id FROM runs WHERE run = ?), ?, ?, ?, ?, ?, ?, ?);

-- name: note_claim
UPDATE gates SET claimed_by = ? WHERE run = (SELECT id FROM runs WHERE run = ?) AND token = ?;

-- name: close_gate
DELETE FROM gates WHERE run = (SELECT id FROM runs WHERE run = ?) AND token = ?;

-- name: close_gates
DELETE FROM gates WHERE run = (SELECT id FROM runs WHERE run = ?);

-- Only the first answer counts.
-- name: answer_request
UPDATE requests SET answer = ? WHERE request = ? AND answer IS NULL;

-- name: keep_request
INSERT OR IGNORE INTO requests (request, run, workflow, at, command) VALUES (?, ?, ?, ?, ?);

-- name: read_answer
SELECT run, answer FROM requests WHERE request = ?;

-- name: waiting_requests
SELECT request, run, workflow, at, command FROM requests WHERE answer IS NULL ORDER BY id;

-- name: where_run_stands
SELECT seq FROM runs WHERE run = ?;

-- name: run_with_key
SELECT run FROM runs WHERE workflow = ? AND idempotency_key = ?;

-- name: read_history
SELECT seq, block FROM history WHERE run = (SELECT id FROM runs WHERE run = ?) AND seq > ? ORDER BY seq;

-- name: find_runs
SELECT run, workflow, version, status, seq, idempotency_key, started, changed, busy, entity, tags, parent FROM runs

-- The conditions of a query, joined by AND: each names its parameter, so that only those that are set are there and the
-- planner sees an index for what is asked.
-- name: if_run
run = :run
-- name: if_run_ending
substr(run, -length(:run_ending)) = :run_ending
-- name: if_workflow
workflow = :workflow
-- name: if_idempotency_key
idempotency_key = :idempotency_key
-- name: if_statuses
status IN (SELECT value FROM json_each(:statuses))
-- name: if_tag
id IN (SELECT tags.run FROM tags WHERE tag = :tag)
-- name: if_entity
entity = :entity
-- name: if_parents
parent IN (SELECT value FROM json_each(:parents))
-- name: if_parent
parent = :parent
-- A literal: a partial index is not considered for a parameter.
-- name: if_busy
busy = 1
-- name: if_idle
busy = 0
-- name: if_started_from
started >= :started_from
-- name: if_started_until
started < :started_until
-- name: if_after
id > (SELECT id FROM runs WHERE run = :after)
-- name: if_before
id < (SELECT id FROM runs WHERE run = :after)

-- name: find_gates
SELECT runs.run, token, node, workflow, opened, title, assign, due, claimed_by FROM gates JOIN runs ON runs.id = gates.run
ORDER BY opened, gates.run, token LIMIT ?;

-- name: find_gates_of_run
SELECT runs.run, token, node, workflow, opened, title, assign, due, claimed_by FROM runs JOIN gates ON runs.id = gates.run
WHERE runs.run = ? ORDER BY opened, token LIMIT ?;

-- Read row by row, as many as are wanted: a damaged one is left out, and one more is read. CROSS JOIN keeps the order.
-- name: read_outbox
SELECT outbox.id, runs.run, effect, parked FROM outbox CROSS JOIN runs ON runs.id = outbox.run
WHERE outbox.id > ? AND parked IS NULL ORDER BY outbox.id;

-- name: read_parked
SELECT outbox.id, runs.run, effect, parked FROM outbox CROSS JOIN runs ON runs.id = outbox.run
WHERE outbox.id > ? AND parked IS NOT NULL ORDER BY outbox.id;

-- The timers of a paused run stand still. CROSS JOIN keeps the order of due times as the outer loop.
-- name: read_timers
SELECT runs.run, timer, due FROM timers CROSS JOIN runs ON runs.id = timers.run
WHERE due <= ? AND status <> 'paused' ORDER BY due LIMIT ?;

-- name: newest_document
SELECT version, hash, body FROM documents WHERE kind = ? AND name = ? ORDER BY version DESC LIMIT 1;

-- name: put_document
INSERT INTO documents (kind, name, version, hash, body) VALUES (?, ?, ?, ?, ?);

-- Drops older versions of an engine's own notes (`_…`).
-- name: drop_older_documents
DELETE FROM documents WHERE kind = ? AND name = ? AND version < ?;

-- name: newest_documents
SELECT kind, name, max(version), hash, body FROM documents WHERE kind = ? GROUP BY name ORDER BY name;

-- name: document_version
SELECT kind, name, version, hash, body FROM documents WHERE kind = ? AND name = ? AND version = ?;

-- name: documents_of_version
SELECT kind, name, version, hash, body FROM documents WHERE kind = ? AND version = ? ORDER BY name;

-- name: put_blob
INSERT OR IGNORE INTO blobs (digest, content) VALUES (?, ?);

-- name: own_blob
INSERT OR IGNORE INTO blobs_of_runs (run, digest) VALUES (?, ?);

-- name: get_blob
SELECT content FROM blobs WHERE digest = ?;

-- name: finished_run
SELECT id FROM runs WHERE run = ?
AND status IN ('completed', 'failed', 'cancelled', 'timed_out', 'compensated', 'compensation_failed');

-- name: blobs_of_run
SELECT digest FROM blobs_of_runs WHERE run = ?;

-- name: disown_blob
DELETE FROM blobs_of_runs WHERE run = ? AND digest = ?;

-- name: drop_blob
DELETE FROM blobs WHERE digest = ?1 AND NOT EXISTS (SELECT 1 FROM blobs_of_runs WHERE digest = ?1);

-- name: drop_effects
DELETE FROM outbox WHERE run = ?;

-- name: drop_timers
DELETE FROM timers WHERE run = ?;

-- name: drop_gates
DELETE FROM gates WHERE run = ?;

-- Unanswered requests stay: their senders are told that there is no such run.
-- name: drop_requests
DELETE FROM requests WHERE run = ? AND answer IS NOT NULL;

-- name: first_block
SELECT seq, block FROM history WHERE run = ? ORDER BY seq LIMIT 1;

-- name: last_block
SELECT seq, block FROM history WHERE run = ? ORDER BY seq DESC LIMIT 1;

-- name: drop_history
DELETE FROM history WHERE run = ?;

-- name: put_block
INSERT INTO history (run, seq, block) VALUES (?, ?, ?);

-- name: drop_run
DELETE FROM runs WHERE id = ?;

-- A run's row and its history must agree, or a commit was torn apart.
-- name: runs_out_of_step
SELECT run, seq, (SELECT max(history.seq) FROM history WHERE history.run = runs.id) AS last FROM runs
WHERE last IS NOT seq;

-- Objects that SQLite makes by itself have no text; statistics and the triggers of a move come and go.
-- name: descriptions
SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite\_%' ESCAPE '\'
AND name NOT LIKE 'sealed\_%' ESCAPE '\';
