-- The statements of moving, by name, as in queries.sql. A query for a page returns each row's position, then the row.

-- name: out_documents
SELECT kind, name, version, kind, name, version, hash, body FROM documents
WHERE (kind, name, version) > (?, ?, ?) AND kind <> '_move' ORDER BY kind, name, version;

-- Claims of queue work are not moved: the run becomes busy, so that its new owner looks after it.
-- name: out_runs
SELECT id, run, workflow, version, status,
    busy OR EXISTS (SELECT 1 FROM work WHERE work.run = runs.id AND worker IS NOT NULL), seq, started, changed, idempotency_key, entity, parent, tags FROM runs
WHERE id > ? ORDER BY id;

-- name: out_batch_items
SELECT start, runs.run, start, batch_items.workflow, batch_items.idempotency_key FROM batch_items
CROSS JOIN runs ON runs.id = batch_items.run WHERE start > ? ORDER BY start;

-- In the order of the log: neighbours in the file.
-- name: out_history
SELECT history.id, runs.run, history.seq, block FROM history CROSS JOIN runs ON runs.id = history.run
WHERE history.id > ? ORDER BY history.id;

-- name: out_outbox
SELECT outbox.id, runs.run, outbox.id, effect, parked FROM outbox CROSS JOIN runs ON runs.id = outbox.run
WHERE outbox.id > ? ORDER BY outbox.id;

-- Queue work is moved as rows of the outbox; their numbers come after all that were given.
-- name: out_work
SELECT position, runs.run, position + coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'outbox'), 0), effect, NULL
FROM work CROSS JOIN runs ON runs.id = work.run WHERE position > ? ORDER BY position;

-- name: out_timers
SELECT timers.run, timer, runs.run, timer, due FROM timers CROSS JOIN runs ON runs.id = timers.run
WHERE (timers.run, timer) > (?, ?) ORDER BY timers.run, timer;

-- name: out_gates
SELECT gates.run, token, runs.run, token, node, opened, title, assign, due,
    claimed_by, escalated, reminded, commented, answered, people, words FROM gates
CROSS JOIN runs ON runs.id = gates.run
WHERE (gates.run, token) > (?, ?) ORDER BY gates.run, token;

-- name: out_requests
SELECT id, run, request, workflow, at, command, answer, fingerprint FROM requests WHERE id > ? ORDER BY id;

-- name: out_blobs
SELECT run, blobs_of_runs.digest, run, blobs_of_runs.digest, content FROM blobs_of_runs
CROSS JOIN blobs ON blobs.digest = blobs_of_runs.digest
WHERE (run, blobs_of_runs.digest) > (?, ?) ORDER BY run, blobs_of_runs.digest;

-- name: out_log_entries
SELECT log, id, log, id, subject, at, body, hash FROM log_entries WHERE (log, id) > (?, ?) ORDER BY log, id;

-- name: out_log_heads
SELECT log, log, count, hash, pruned, pruned_hash FROM log_heads WHERE log > ? ORDER BY log;

-- name: out_notes
SELECT key, key, at, body FROM notes WHERE key > ? ORDER BY key;

-- name: in_log_entries
INSERT INTO log_entries (log, id, subject, at, body, hash) VALUES (?, ?, ?, ?, ?, ?);

-- name: in_log_heads
INSERT INTO log_heads (log, count, hash, pruned, pruned_hash) VALUES (?, ?, ?, ?, ?);

-- name: in_notes
INSERT INTO notes (key, at, body) VALUES (?, ?, ?);

-- name: out_entities
SELECT number, entity, type, id, name, email, attributes, created, changed, search FROM entities
WHERE number > ? ORDER BY number;

-- name: out_addresses
SELECT type, id, type, id, entity FROM addresses WHERE (type, id) > (?, ?) ORDER BY type, id;

-- name: out_moves
SELECT entity, at, run, seq, entity, workflow, at, run, seq, event, kind, place, progress, completed_as, set_type, moved_by,
    reason
FROM moves WHERE (entity, at, run, seq) > (?, ?, ?, ?) ORDER BY entity, at, run, seq;

-- name: out_positions
SELECT entity, workflow, entity, workflow, at, run, seq, kind, place FROM positions
WHERE (entity, workflow) > (?, ?) ORDER BY entity, workflow;

-- name: in_documents
INSERT INTO documents (kind, name, version, hash, body) VALUES (?, ?, ?, ?, ?);

-- name: in_runs
INSERT INTO runs (run, workflow, version, status, busy, seq, started, changed, idempotency_key, entity, parent, tags)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: in_batch_items
INSERT INTO batch_items (run, start, workflow, idempotency_key) VALUES ((SELECT id FROM runs WHERE run = ?), ?, ?, ?);

-- name: in_history
INSERT INTO history (run, seq, block) VALUES ((SELECT id FROM runs WHERE run = ?), ?, ?);

-- name: in_outbox
INSERT INTO outbox (run, id, effect, parked) VALUES ((SELECT id FROM runs WHERE run = ?), ?, ?, ?);

-- name: in_timers
INSERT INTO timers (run, timer, due) VALUES ((SELECT id FROM runs WHERE run = ?), ?, ?);

-- name: in_gates
INSERT INTO gates (
    run, token, node, opened, title, assign, due, claimed_by, escalated, reminded, commented, answered, people, words
) VALUES ((SELECT id FROM runs WHERE run = ?), ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: in_requests
INSERT INTO requests (run, request, workflow, at, command, answer, fingerprint) VALUES (?, ?, ?, ?, ?, ?, ?);

-- name: in_entities
INSERT INTO entities (entity, type, id, name, email, attributes, created, changed, search)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: in_addresses
INSERT INTO addresses (type, id, entity) VALUES (?, ?, ?);

-- name: in_moves
INSERT INTO moves (entity, workflow, at, run, seq, event, kind, place, progress, completed_as, set_type, moved_by, reason)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: in_positions
INSERT INTO positions (entity, workflow, at, run, seq, kind, place) VALUES (?, ?, ?, ?, ?, ?, ?);

-- name: in_tags
INSERT OR IGNORE INTO tags (tag, run) SELECT value, runs.id FROM runs, json_each(tags) WHERE runs.run = ? AND tags NOT NULL;

-- name: count_outbox
SELECT (SELECT count(*) FROM outbox) + (SELECT count(*) FROM work);

-- name: count_documents
SELECT count(*) FROM documents WHERE kind <> '_move';

-- name: count_blobs
SELECT count(*) FROM blobs_of_runs;

-- An engine's own notes (`_…`) do not count as content.
-- name: has_something
SELECT EXISTS (SELECT 1 FROM runs) OR EXISTS (SELECT 1 FROM requests) OR EXISTS (SELECT 1 FROM blobs_of_runs)
    OR EXISTS (SELECT 1 FROM log_entries) OR EXISTS (SELECT 1 FROM entities)
    OR EXISTS (SELECT 1 FROM documents WHERE kind NOT LIKE '\_%' ESCAPE '\');

-- name: read_mark
SELECT body FROM documents WHERE kind = '_move';

-- name: write_mark
INSERT OR REPLACE INTO documents (kind, name, version, hash, body) VALUES ('_move', 'move', 1, '', ?);

-- name: drop_key
DELETE FROM documents WHERE kind = '_callback_key';

-- name: drop_mark
DELETE FROM documents WHERE kind = '_move';

-- The greatest number given so far. SQLite keeps it for a table with AUTOINCREMENT that had a row.
-- name: outbox_last
SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'outbox'), 0)
    + coalesce((SELECT max(position) FROM work), 0);

-- name: move_outbox_last
UPDATE sqlite_sequence SET seq = max(seq, ?) WHERE name = 'outbox';

-- name: begin_outbox_last
INSERT INTO sqlite_sequence (name, seq) VALUES ('outbox', ?);

-- Makes every fence that was ever given out of date.
-- name: end_leases
UPDATE leases SET epoch = epoch + 1;

-- name: seals
SELECT name FROM sqlite_master WHERE type = 'trigger' AND name LIKE 'sealed\_%' ESCAPE '\';

-- name: items_of_runs
SELECT runs.run, start, batch_items.idempotency_key FROM json_each(?) AS wanted CROSS JOIN runs ON runs.run = wanted.value
CROSS JOIN batch_items ON batch_items.run = runs.id;

-- name: timers_of_runs
SELECT runs.run, timer, due FROM json_each(?) AS wanted CROSS JOIN runs ON runs.run = wanted.value
CROSS JOIN timers ON timers.run = runs.id;

-- name: gates_of_runs
SELECT runs.run, token, claimed_by, escalated, reminded, commented, answered
FROM json_each(?) AS wanted CROSS JOIN runs ON runs.run = wanted.value
CROSS JOIN gates ON gates.run = runs.id;

-- name: work_of_runs
SELECT position, runs.run, effect, NULL FROM json_each(?) AS wanted CROSS JOIN runs ON runs.run = wanted.value
CROSS JOIN work ON work.run = runs.id ORDER BY position;

-- The outbox has no index by run, and is short.
-- name: outbox_of_runs
SELECT outbox.id, runs.run, effect, parked FROM outbox CROSS JOIN runs ON runs.id = outbox.run
WHERE runs.run IN (SELECT value FROM json_each(?)) ORDER BY outbox.id;
