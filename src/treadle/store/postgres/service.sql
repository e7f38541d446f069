-- The statements of what a server keeps, by name, as in queries.sql.

-- name: add_note
INSERT INTO notes (key, at, body) VALUES ($1, $2, $3) ON CONFLICT (key) DO NOTHING;

-- name: read_note
SELECT at, body FROM notes WHERE key = $1;

-- name: forget_notes
DELETE FROM notes WHERE key = ANY($1::text[]);

-- name: drop_notes
DELETE FROM notes WHERE at < $1;

-- name: drop_marked
DELETE FROM requests WHERE fingerprint IS NOT NULL AND at < $1 AND answer IS NOT NULL;

-- name: drop_document
DELETE FROM documents WHERE kind = $1 AND name = $2;

-- name: begin_head
INSERT INTO log_heads (log, count, hash, pruned, pruned_hash) VALUES ($1, 0, $2, 0, $2) ON CONFLICT (log) DO NOTHING;

-- A transaction that appends to a chained log waits here for the one before it.
-- name: hold_head
SELECT count, hash, pruned, pruned_hash FROM log_heads WHERE log = $1 FOR UPDATE;

-- name: read_head
SELECT count, hash, pruned, pruned_hash FROM log_heads WHERE log = $1;

-- name: write_head
UPDATE log_heads SET count = $2, hash = $3, pruned = $4, pruned_hash = $5 WHERE log = $1;

-- name: next_entry_ids
SELECT nextval('entry_ids') FROM generate_series(1, $1::bigint);

-- name: append_entries
INSERT INTO log_entries (log, id, subject, at, body, hash)
SELECT new.log, new.id, new.subject, new.at, new.body, new.hash
FROM unnest($1::text[], $2::bigint[], $3::text[], $4::bigint[], $5::bytea[], $6::bytea[])
    AS new (log, id, subject, at, body, hash);

-- name: read_entry
SELECT subject, at FROM log_entries WHERE log = $1 AND id = $2;

-- name: revise_entry
UPDATE log_entries SET body = $3 WHERE log = $1 AND id = $2;

-- name: newest_entries
SELECT id, subject, at, body, hash FROM log_entries WHERE log = $1 AND id < $2 ORDER BY id DESC LIMIT $3;

-- name: newest_entries_about
SELECT id, subject, at, body, hash FROM log_entries WHERE log = $1 AND id < $2 AND subject = $4
ORDER BY id DESC LIMIT $3;

-- name: next_entries
SELECT id, subject, at, body, hash FROM log_entries WHERE log = $1 AND id < $2 AND id > $4 ORDER BY id LIMIT $3;

-- name: next_entries_about
SELECT id, subject, at, body, hash FROM log_entries WHERE log = $1 AND id < $2 AND id > $4 AND subject = $5
ORDER BY id LIMIT $3;

-- The first entry that stays because it is not old enough.
-- name: first_young_entry
SELECT id FROM log_entries WHERE log = $1 AND at >= $2 ORDER BY id LIMIT 1;

-- The first of the newest entries that stay anyway.
-- name: first_kept_entry
SELECT min(id) FROM (SELECT id FROM log_entries WHERE log = $1 ORDER BY id DESC LIMIT $2) AS kept;

-- name: last_entry_before
SELECT id, hash FROM log_entries WHERE log = $1 AND id < $2 ORDER BY id DESC LIMIT 1;

-- name: drop_entries
DELETE FROM log_entries WHERE log = $1 AND id < $2;

-- name: count_runs
SELECT workflow, status, count(*) FROM runs
 WHERE ($1::text IS NULL OR workflow = $1) AND ($2::bigint IS NULL OR started >= $2)
 GROUP BY workflow, status ORDER BY workflow, status;

-- name: count_gates
SELECT workflow, node, count(*), count(*) FILTER (WHERE due < $1), min(opened) FROM gates JOIN runs ON runs.run = gates.run
 GROUP BY workflow, node ORDER BY workflow COLLATE "C", node COLLATE "C";

-- A commit appends one block for each run it is about, so blocks end where decisions end.
-- name: decisions
SELECT history.seq FROM runs JOIN history ON history.run = runs.run AND history.day >= runs.first_day
AND history.day <= runs.last_day WHERE runs.run = $1 AND history.seq > $2 ORDER BY history.seq LIMIT $3;
