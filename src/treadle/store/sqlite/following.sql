-- The statements of the log of all events, by name, as in queries.sql.

-- name: read_log
SELECT log, forgets, (SELECT max(last) FROM forgets WHERE number > ?) FROM event_log;

-- CROSS JOIN keeps the order of the log.
-- name: read_blocks
SELECT history.id, runs.run, workflow, entity, history.seq, block FROM history CROSS JOIN runs ON runs.id = history.run
WHERE history.id >= ? ORDER BY history.id;

-- name: newest_block
SELECT max(id) FROM history;

-- name: newest_block_of_run
SELECT max(id) FROM history WHERE run = ?;

-- name: count_forgetting
UPDATE event_log SET forgets = forgets + 1, last = CASE WHEN :newest > coalesce((SELECT max(id) FROM history), 0)
    THEN max(:newest, coalesce(last, 0)) ELSE last END;

-- name: drop_lesser_forgets
DELETE FROM forgets WHERE last <= ?;

-- name: note_forgetting
INSERT INTO forgets (number, last) VALUES ((SELECT forgets FROM event_log), ?);

-- name: begin_log
UPDATE event_log SET log = lower(hex(randomblob(4))), last = NULL;
