-- The statements of queue work, by name, as in queries.sql.

-- Offered again, a row keeps its place in the line and the number of its last claim.
-- name: offer_work
INSERT INTO work (run, token, queue, priority, key, offered, attempt, recovery, room, effect, held)
VALUES ((SELECT id FROM runs WHERE run = ?), ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (run, token) DO UPDATE SET queue = excluded.queue, priority = excluded.priority, key = excluded.key,
    attempt = excluded.attempt, recovery = excluded.recovery, room = excluded.room, effect = excluded.effect,
    held = excluded.held, worker = NULL, until = NULL;

-- name: withdraw_work
DELETE FROM work WHERE run = (SELECT id FROM runs WHERE run = ?) AND token = ?;

-- name: hold_work
UPDATE work SET held = ? WHERE run = (SELECT id FROM runs WHERE run = ?);

-- name: drop_work
DELETE FROM work WHERE run = ?;

-- The next lane behind a priority and key: one step into the index, however long the lanes are.
-- name: next_lane
SELECT priority, key, room FROM work WHERE queue = ? AND worker IS NULL AND held = 0 AND (priority, key) > (?, ?)
ORDER BY priority, key, position LIMIT 1;

-- Counted as far as it is needed.
-- name: count_ready
SELECT count(*) FROM (SELECT 1 FROM work
    WHERE queue = ? AND priority = ? AND key = ? AND worker IS NULL AND held = 0 LIMIT ?);

-- name: count_claimed
SELECT count(*) FROM (SELECT 1 FROM work WHERE queue = ? AND worker IS NOT NULL LIMIT ?);

-- name: count_claimed_of_key
SELECT count(*) FROM work WHERE queue = ? AND key = ? AND worker IS NOT NULL;

-- name: ready_of_lane
SELECT position, runs.run, number, room, effect FROM work CROSS JOIN runs ON runs.id = work.run
WHERE queue = ? AND priority = ? AND key = ? AND worker IS NULL AND held = 0 ORDER BY position LIMIT ?;

-- name: take_work
UPDATE work SET worker = ?, number = number + 1, until = ? WHERE position = ?;

-- name: read_meter
SELECT tokens, touched FROM meters WHERE queue = ? AND key = ?;

-- name: write_meter
INSERT INTO meters (queue, key, tokens, touched) VALUES (?, ?, ?, ?)
ON CONFLICT (queue, key) DO UPDATE SET tokens = excluded.tokens, touched = excluded.touched;

-- A bucket that was not used for a week is full, as a new one is.
-- name: forget_meters
DELETE FROM meters WHERE key <> '' AND touched < ?;

-- name: renew_claim
UPDATE work SET until = ? WHERE run = (SELECT id FROM runs WHERE run = ?) AND token = ? AND number = ? AND worker = ?;

-- name: give_back_claim
UPDATE work SET worker = NULL, until = NULL
WHERE run = (SELECT id FROM runs WHERE run = ?) AND token = ? AND number = ? AND worker IS NOT NULL;

-- name: claims_of_worker
SELECT runs.run, token, number FROM work CROSS JOIN runs ON runs.id = work.run WHERE worker = ?;

-- name: end_claims
UPDATE work SET until = 0 WHERE worker = ?;

-- name: drop_offer
DELETE FROM work WHERE run = (SELECT id FROM runs WHERE run = ?) AND token = ? AND number = ? AND worker IS NOT NULL;

-- name: expired_claims
SELECT runs.run, token, number, attempt, recovery, worker FROM work CROSS JOIN runs ON runs.id = work.run
WHERE worker IS NOT NULL AND until <= ? ORDER BY until LIMIT ?;

-- name: next_waiting_queue
SELECT queue FROM work WHERE worker IS NULL AND held = 0 AND queue > ? ORDER BY queue LIMIT 1;

-- The first one: a queue may have the empty name.
-- name: first_waiting_queue
SELECT queue FROM work WHERE worker IS NULL AND held = 0 ORDER BY queue LIMIT 1;

-- name: queue_rows
SELECT queue, sum(worker IS NULL AND held = 0), sum(worker IS NOT NULL), sum(worker IS NULL AND held = 1),
    min(CASE WHEN worker IS NULL AND held = 0 THEN offered END), json_group_array(DISTINCT worker)
FROM work GROUP BY queue ORDER BY queue;
