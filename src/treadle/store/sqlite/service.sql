-- The statements of what a server keeps, by name, as in queries.sql.

-- name: add_note
INSERT OR IGNORE INTO notes (key, at, body) VALUES (?, ?, ?);

-- name: read_note
SELECT at, body FROM notes WHERE key = ?;

-- name: drop_note
DELETE FROM notes WHERE key = ?;

-- name: drop_notes
DELETE FROM notes WHERE at < ?;

-- name: drop_marked
DELETE FROM requests WHERE fingerprint IS NOT NULL AND at < ? AND answer IS NOT NULL;

-- name: drop_document
DELETE FROM documents WHERE kind = ? AND name = ?;

-- name: read_head
SELECT count, hash, pruned, pruned_hash FROM log_heads WHERE log = ?;

-- The entries may be ahead of the head of a log that is not chained: they came from another store.
-- name: last_entry
SELECT max(id) FROM log_entries WHERE log = ?;

-- name: write_head
INSERT OR REPLACE INTO log_heads (log, count, hash, pruned, pruned_hash) VALUES (?, ?, ?, ?, ?);

-- name: append_entry
INSERT INTO log_entries (log, id, subject, at, body, hash) VALUES (?, ?, ?, ?, ?, ?);

-- name: revise_entry
UPDATE log_entries SET body = ? WHERE log = ? AND id = ?;

-- name: read_entry
SELECT subject, at FROM log_entries WHERE log = ? AND id = ?;

-- name: newest_entries
SELECT id, subject, at, body, hash FROM log_entries WHERE log = :log AND id < :before ORDER BY id DESC;

-- name: newest_entries_about
SELECT id, subject, at, body, hash FROM log_entries WHERE log = :log AND subject = :subject AND id < :before
ORDER BY id DESC;

-- name: next_entries
SELECT id, subject, at, body, hash FROM log_entries WHERE log = :log AND id > :after AND id < :before ORDER BY id;

-- name: next_entries_about
SELECT id, subject, at, body, hash FROM log_entries
WHERE log = :log AND subject = :subject AND id > :after AND id < :before ORDER BY id;

-- The first entry that stays because it is not old enough.
-- name: first_young_entry
SELECT id FROM log_entries WHERE log = ? AND at >= ? ORDER BY id LIMIT 1;

-- The first of the newest entries that stay anyway.
-- name: first_kept_entry
SELECT min(id) FROM (SELECT id FROM log_entries WHERE log = ? ORDER BY id DESC LIMIT ?);

-- name: last_entry_before
SELECT id, hash FROM log_entries WHERE log = ? AND id < ? ORDER BY id DESC LIMIT 1;

-- name: drop_entries
DELETE FROM log_entries WHERE log = ? AND id < ?;

-- The index runs_workflow has all that is counted.
-- name: count_runs
SELECT workflow, status, count(*) FROM runs
 WHERE (:workflow IS NULL OR workflow = :workflow) AND (:since IS NULL OR started >= :since)
 GROUP BY workflow, status ORDER BY workflow, status;

-- name: count_gates
SELECT workflow, node, count(*), count(*) FILTER (WHERE due < ?), min(opened) FROM gates JOIN runs ON runs.id = gates.run
 GROUP BY workflow, node ORDER BY workflow, node;

-- A commit appends one block for each run it is about, so blocks end where decisions end.
-- name: decisions
SELECT seq FROM history WHERE run = (SELECT id FROM runs WHERE run = ?) AND seq > ? ORDER BY seq LIMIT ?;
