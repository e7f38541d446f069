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

-- name: newest_start
SELECT max(started) FROM runs;

-- name: note_late
UPDATE run_times SET late_ms = :late WHERE late_ms < :late;

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

-- name: note_version
UPDATE runs SET version = ? WHERE run = ?;

-- name: append_history
INSERT INTO history (run, seq, block) VALUES ((SELECT id FROM runs WHERE run = ?), ?, ?);

-- name: log_last
SELECT last FROM event_log;

-- The first block after the newest ones were forgotten: their numbers are not used again.
-- name: append_behind
INSERT INTO history (id, run, seq, block)
VALUES ((SELECT last + 1 FROM event_log), (SELECT id FROM runs WHERE run = ?), ?, ?);

-- name: clear_log_last
UPDATE event_log SET last = NULL;

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
INSERT OR REPLACE INTO gates (
    run, token, node, opened, title, assign, due, claimed_by, escalated, reminded, commented, answered, people, words
) VALUES ((SELECT id FROM runs WHERE run = ?), ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: note_gate
UPDATE gates SET claimed_by = ?, escalated = ?, reminded = ?, commented = ?, answered = ? WHERE run = (SELECT id FROM runs WHERE run = ?) AND token = ?;

-- name: close_gate
DELETE FROM gates WHERE run = (SELECT id FROM runs WHERE run = ?) AND token = ?;

-- name: close_gates
DELETE FROM gates WHERE run = (SELECT id FROM runs WHERE run = ?);

-- Only the first answer counts.
-- name: answer_request
UPDATE requests SET answer = ? WHERE request = ? AND answer IS NULL;

-- name: keep_request
INSERT OR IGNORE INTO requests (request, run, workflow, at, command, fingerprint) VALUES (?, ?, ?, ?, ?, ?);

-- A request that never was in the inbox, or came into it meanwhile, with its answer.
-- name: keep_answered
INSERT INTO requests (request, run, workflow, at, command, fingerprint, answer) VALUES (?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (request) DO UPDATE SET answer = excluded.answer WHERE answer IS NULL;

-- name: read_answer
SELECT run, answer, fingerprint FROM requests WHERE request = ?;

-- name: waiting_requests
SELECT request, run, workflow, at, command, fingerprint FROM requests WHERE answer IS NULL ORDER BY id;

-- Ids of kept requests begin with `kept-` and a time: the unique index has them in order.
-- name: kept_requests
SELECT request, run, workflow, at, command, answer, fingerprint FROM requests
WHERE request >= 'kept-' AND request < 'kept.' ORDER BY request DESC LIMIT ?;

-- name: kept_requests_of_run
SELECT request, run, workflow, at, command, answer, fingerprint FROM requests
WHERE run = ? AND request >= 'kept-' AND request < 'kept.' ORDER BY request DESC LIMIT ?;

-- name: one_request
SELECT request, run, workflow, at, command, answer, fingerprint FROM requests WHERE request = ? LIMIT ?;

-- name: where_run_stands
SELECT seq FROM runs WHERE run = ?;

-- name: run_with_key
SELECT run FROM runs WHERE workflow = ? AND idempotency_key = ?;

-- name: item_with_key
SELECT run FROM batch_items WHERE workflow = ? AND idempotency_key = ?;

-- name: has_item_with_key
SELECT EXISTS (SELECT 1 FROM batch_items WHERE idempotency_key = ?);

-- A start that is an item of some batch already stays there.
-- name: note_item
INSERT INTO batch_items (start, run, workflow, idempotency_key) VALUES (?, (SELECT id FROM runs WHERE run = ?), ?, ?)
ON CONFLICT (start) DO NOTHING;

-- name: read_history
SELECT seq, block FROM history WHERE run = (SELECT id FROM runs WHERE run = ?) AND seq > ? ORDER BY seq;

-- name: find_runs
SELECT run, workflow, version, status, seq, idempotency_key, started, changed, busy, entity, tags, parent, id FROM runs

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
-- name: if_key_of_item
id IN (SELECT id FROM runs WHERE idempotency_key = :idempotency_key
    UNION SELECT batch_items.run FROM batch_items WHERE batch_items.idempotency_key = :idempotency_key)
-- name: if_item
id = (SELECT batch_items.run FROM batch_items WHERE start = :item)
-- name: if_status
status = :status
-- name: if_statuses
status IN (SELECT value FROM json_each(:statuses))
-- name: if_version
version = :version
-- name: if_tags
NOT EXISTS (SELECT 1 FROM json_each(:tags) AS wanted
    WHERE NOT EXISTS (SELECT 1 FROM tags WHERE tags.tag = wanted.value AND tags.run = runs.id))
-- name: if_text
(instr(lower(run), :text) OR instr(lower(coalesce(idempotency_key, '')), :text) OR instr(lower(coalesce(entity, '')), :text)
    OR EXISTS (SELECT 1 FROM json_each(tags) AS one WHERE instr(lower(one.value), :text)))
-- The same for a text beyond ASCII, whose letters SQLite's own `lower` leaves as they are; it takes longer.
-- name: if_text_beyond_ascii
(instr(lower(run), :text) OR instr(lowered(coalesce(idempotency_key, '')), :text) OR instr(lowered(coalesce(entity, '')), :text)
    OR EXISTS (SELECT 1 FROM json_each(tags) AS one WHERE instr(lowered(one.value), :text)))
-- name: count_tagged
SELECT count(*) FROM (SELECT 1 FROM tags WHERE tag = ? LIMIT ?);
-- name: if_beyond
id > :beyond
-- name: if_not_beyond
id < :beyond
-- Where nothing else is asked: the newest of a common tag are found without the others.
-- name: if_newest_tagged
id IN (SELECT tags.run FROM tags WHERE tag = :tag AND tags.run < :beyond ORDER BY tags.run DESC LIMIT :limit)
-- name: if_tag
id IN (SELECT tags.run FROM tags WHERE tag = :tag)
-- name: if_entity
entity IN (:entity, :entity_id)
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
-- Where nothing else with an index is asked: the list begins and ends near the runs of that time (`run_times` in
-- schema.sql). The plus keeps the planner from sorting all of them.
-- name: if_from_bounded
+started >= :started_from AND id > coalesce((SELECT early.id FROM runs AS early
    WHERE early.started < :started_from - (SELECT late_ms FROM run_times) ORDER BY early.started DESC LIMIT 1), 0)
-- name: if_until_bounded
+started < :started_until AND id < coalesce((SELECT late.id FROM runs AS late
    WHERE late.started >= :started_until + (SELECT late_ms FROM run_times) ORDER BY late.started LIMIT 1), 9223372036854775807)
-- name: if_down_to
id >= :down_to
-- name: if_after
id > (SELECT id FROM runs WHERE run = :after)
-- name: if_before
id < (SELECT id FROM runs WHERE run = :after)

-- Read row by row, as many as are wanted: the columns only narrow the rows down, and a damaged row is left out. Rows
-- from before there were `people` and `words` are not narrowed down by them.
-- name: find_gates
SELECT runs.run, token, node, workflow, opened, title, assign, due, claimed_by, escalated, reminded, commented, answered
FROM gates JOIN runs ON runs.id = gates.run
-- name: if_gate_run
runs.run = :run
-- name: if_gate_token
token = :token
-- name: if_gate_workflow
workflow = :workflow
-- name: if_gate_node
node = :node
-- name: if_gate_overdue
due < :overdue_at
-- name: if_gate_text
(words IS NULL OR instr(words, :text))
-- name: if_gate_people
(people IS NULL OR EXISTS (
    SELECT 1 FROM json_each(:names)
    WHERE instr(people, value) OR instr(escalated, value) OR json_quote(claimed_by) = value
))
-- name: if_gate_after
(opened, runs.run, token) > (:opened, :after_run, :after_token)

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
DELETE FROM requests WHERE run = ? AND answer IS NOT NULL AND fingerprint IS NULL;

-- name: first_block
SELECT seq, block, id FROM history WHERE run = ? ORDER BY seq LIMIT 1;

-- name: last_block
SELECT seq, block, id FROM history WHERE run = ? ORDER BY seq DESC LIMIT 1;

-- name: drop_history
DELETE FROM history WHERE run = ?;

-- name: put_block
INSERT INTO history (id, run, seq, block) VALUES (?, ?, ?, ?);

-- name: drop_run
DELETE FROM runs WHERE id = ?;

-- A run's row and its history must agree, or a commit was torn apart.
-- name: runs_out_of_step
SELECT run, seq, (SELECT max(history.seq) FROM history WHERE history.run = runs.id) AS last FROM runs
WHERE last IS NOT seq;

-- A position must be the last move of its entity in its workflow (invariant 2 of store/entities.py).
-- name: positions_astray
SELECT entity, workflow FROM positions
WHERE NOT EXISTS (SELECT 1 FROM moves WHERE moves.entity = positions.entity AND moves.workflow = positions.workflow
    AND (moves.at, moves.run, moves.seq) = (positions.at, positions.run, positions.seq)
    AND (moves.kind, moves.place) = (positions.kind, positions.place))
OR EXISTS (SELECT 1 FROM moves WHERE moves.entity = positions.entity AND moves.workflow = positions.workflow
    AND (moves.at, moves.run, moves.seq) > (positions.at, positions.run, positions.seq));

-- Objects that SQLite makes by itself have no text; statistics and the triggers of a move come and go.
-- name: descriptions
SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite\_%' ESCAPE '\'
AND name NOT LIKE 'sealed\_%' ESCAPE '\';
