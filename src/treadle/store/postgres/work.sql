-- The statements of queue work, by name, as in queries.sql. Those of workers turn off waiting for the disk, each for its
-- own transaction: a claim that is lost in a crash of the server is an offer again, and every later write of its worker
-- makes the claim durable with it. None of them waits for a row that a decision has locked.

-- Offered again, a row keeps its place in the line and the number of its last claim.
-- name: offer_work
INSERT INTO work (run, token, shard, queue, priority, key, offered, attempt, recovery, room, effect, held)
SELECT new.run, new.token, new.shard, new.queue, new.priority, new.key,
    (extract(epoch FROM clock_timestamp()) * 1000)::bigint, new.attempt, new.recovery, new.room, new.effect, new.held
FROM unnest($1::text[], $2::bigint[], $3::integer[], $4::text[], $5::integer[], $6::text[], $7::bigint[],
    $8::integer[], $9::integer[], $10::bytea[], $11::boolean[]) WITH ORDINALITY
    AS new (run, token, shard, queue, priority, key, attempt, recovery, room, effect, held, nth)
ORDER BY new.nth
ON CONFLICT (run, token) DO UPDATE SET queue = excluded.queue, priority = excluded.priority, key = excluded.key,
    attempt = excluded.attempt, recovery = excluded.recovery, room = excluded.room, effect = excluded.effect,
    held = excluded.held, worker = NULL, until = NULL;

-- name: withdraw_work
DELETE FROM work USING unnest($1::text[], $2::bigint[]) AS gone (run, token)
WHERE work.run = gone.run AND work.token = gone.token;

-- name: hold_work
UPDATE work SET held = new.held FROM unnest($1::text[], $2::boolean[]) AS new (run, held) WHERE work.run = new.run;

-- name: drop_work
DELETE FROM work WHERE run = ANY($1::text[]);

-- The lanes behind ($2, $3) that have something ready, best first, at most $4 of them: from lane to lane in steps of one
-- look into the index, however long the lanes are. How much is ready is counted as far as $5. Positions before $6 are
-- skipped: rows that were claimed long ago stay in the index while any transaction is older than their claim.
-- "The next key of this priority, else the next priority" is asked in two questions and not by comparing rows, because
-- then the server can step over them (a skip scan, from 18 on): 1 ms instead of 35 beside 100,000 of them.
-- What is claimed of a key is counted as far as its own limit or $7, of the queue as far as $8; buckets, if $9: as they
-- are now, which is no promise. `best` is the first priority of all.
-- name: look_at_lanes
WITH RECURSIVE walk (priority, key, room, position, nth) AS (
    (SELECT priority, key, room, position, 1 FROM work
    WHERE queue = $1 AND worker IS NULL AND NOT held AND (priority, key) > ($2::integer, $3::text)
    AND position >= $6::bigint
    ORDER BY priority, key, position LIMIT 1)
    UNION ALL
    SELECT coalesce(same.priority, later.priority), coalesce(same.key, later.key),
        CASE WHEN same.key IS NULL THEN later.room ELSE same.room END, coalesce(same.position, later.position),
        walk.nth + 1
    FROM walk LEFT JOIN LATERAL (
        SELECT work.priority, work.key, work.room, work.position FROM work
        WHERE queue = $1 AND worker IS NULL AND NOT held AND work.priority = walk.priority AND work.key > walk.key
        AND work.position >= $6 ORDER BY work.key, work.position LIMIT 1) AS same ON true
    LEFT JOIN LATERAL (
        SELECT work.priority, work.key, work.room, work.position FROM work
        WHERE same.key IS NULL AND queue = $1 AND worker IS NULL AND NOT held AND work.priority > walk.priority
        AND work.position >= $6 ORDER BY work.priority, work.key, work.position LIMIT 1) AS later ON true
    WHERE walk.nth < $4 AND (same.key IS NOT NULL OR later.key IS NOT NULL))
SELECT walk.priority, walk.key, walk.room, walk.position,
    CASE WHEN $5::integer > 1 THEN (SELECT count(*) FROM (SELECT 1 FROM work AS head
        WHERE head.queue = $1 AND head.priority = walk.priority AND head.key = walk.key AND head.worker IS NULL
        AND NOT head.held AND head.position >= walk.position LIMIT $5) AS counted) ELSE 1 END AS count,
    CASE WHEN coalesce($7::integer, walk.room) IS NOT NULL THEN (SELECT count(*) FROM (
        SELECT 1 FROM work AS taken WHERE taken.queue = $1 AND taken.key = walk.key AND taken.worker IS NOT NULL
        LIMIT least($7, walk.room)) AS counted) ELSE 0 END AS at_work,
    CASE WHEN $8::integer IS NOT NULL THEN (SELECT count(*) FROM (
        SELECT 1 FROM work AS taken WHERE taken.queue = $1 AND taken.worker IS NOT NULL LIMIT $8) AS counted)
        ELSE 0 END AS claimed,
    CASE WHEN $9 THEN (SELECT tokens FROM meters WHERE meters.queue = $1 AND meters.key = walk.key) END AS tokens,
    CASE WHEN $9 THEN (SELECT touched FROM meters WHERE meters.queue = $1 AND meters.key = walk.key) END AS touched,
    CASE WHEN $9 THEN (SELECT tokens FROM meters WHERE meters.queue = $1 AND meters.key = '') END AS queue_tokens,
    CASE WHEN $9 THEN (SELECT touched FROM meters WHERE meters.queue = $1 AND meters.key = '') END AS queue_touched,
    (extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now,
    (SELECT first.priority FROM work AS first
        WHERE first.queue = $1 AND first.worker IS NULL AND NOT first.held AND first.position >= $6
        ORDER BY first.priority LIMIT 1) AS best
FROM walk ORDER BY walk.nth;

-- Takes some rows of each lane, from a position on; none at all if work before priority $11 is ready, from $12 on: then
-- the claim has not looked. Of a key with a `cap` as many as may be under way, of the queue $13, less the rows before it
-- in the same list: exact for a claim that has locked the queue. Rows with a limit of their own are left to claims that
-- have counted up to it.
-- name: take_work
WITH quick AS MATERIALIZED (SELECT set_config('synchronous_commit', 'off', true)),
clock AS MATERIALIZED (SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now FROM quick),
picked AS MATERIALIZED (
    SELECT head.run, head.token
    FROM unnest($4::integer[], $5::text[], $6::integer[], $7::bigint[], $8::integer[], $9::integer[], $10::integer[])
    AS wanted (priority, key, count, start, cap, before, ahead) CROSS JOIN LATERAL (
        SELECT run, token FROM work
        WHERE queue = $1 AND priority = wanted.priority AND key = wanted.key AND worker IS NULL AND NOT held
        AND position >= wanted.start AND (room IS NULL OR room >= wanted.cap)
        ORDER BY position
        LIMIT greatest(0, least(wanted.count,
            CASE WHEN wanted.cap IS NOT NULL THEN wanted.cap - wanted.before - (SELECT count(*) FROM (
                SELECT 1 FROM work AS taken WHERE taken.queue = $1 AND taken.key = wanted.key
                AND taken.worker IS NOT NULL LIMIT wanted.cap) AS counted) END,
            CASE WHEN $13::integer IS NOT NULL THEN $13 - wanted.ahead - (SELECT count(*) FROM (
                SELECT 1 FROM work AS taken WHERE taken.queue = $1 AND taken.worker IS NOT NULL LIMIT $13)
                AS counted) END))
        FOR UPDATE SKIP LOCKED) AS head
    WHERE NOT EXISTS (SELECT 1 FROM work AS better WHERE better.queue = $1 AND better.priority < $11::integer
        AND better.worker IS NULL AND NOT better.held AND better.position >= $12::bigint))
UPDATE work SET worker = $2, number = number + 1, until = clock.now + $3::bigint FROM picked, clock
WHERE work.run = picked.run AND work.token = picked.token
RETURNING work.run, work.token, work.priority, work.key, work.position, work.number, work.effect;

-- Claims of a queue with limits follow each other: they lock this row.
-- name: hold_queue
SELECT tokens, touched, (extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now FROM meters
WHERE queue = $1 AND key = '' FOR UPDATE;

-- name: make_meter
INSERT INTO meters (queue, key, tokens, touched) VALUES ($1, '', NULL, 0) ON CONFLICT (queue, key) DO NOTHING;

-- name: read_meters
SELECT key, tokens, touched FROM meters WHERE queue = $1 AND key = ANY($2::text[]);

-- name: write_meters
INSERT INTO meters (queue, key, tokens, touched)
SELECT $1, new.key, new.tokens, $4 FROM unnest($2::text[], $3::float8[]) AS new (key, tokens)
ON CONFLICT (queue, key) DO UPDATE SET tokens = excluded.tokens, touched = excluded.touched;

-- Which claims are lost. A row that a decision has locked is left for the next time.
-- name: renew_claims
WITH quick AS MATERIALIZED (SELECT set_config('synchronous_commit', 'off', true)),
asked AS MATERIALIZED (SELECT * FROM quick, unnest($2::text[], $3::bigint[], $4::bigint[]) AS one (run, token, number)),
mine AS MATERIALIZED (
    SELECT work.run, work.token FROM asked JOIN work ON work.run = asked.run AND work.token = asked.token
    WHERE work.worker = $1 AND work.number = asked.number FOR UPDATE OF work SKIP LOCKED),
renewed AS (
    UPDATE work SET until = (extract(epoch FROM clock_timestamp()) * 1000)::bigint + $5::bigint FROM mine
    WHERE work.run = mine.run AND work.token = mine.token)
SELECT asked.run, asked.token, asked.number FROM asked WHERE NOT EXISTS (SELECT 1 FROM work
    WHERE work.run = asked.run AND work.token = asked.token AND work.number = asked.number AND work.worker = $1);

-- name: give_back_claims
WITH mine AS MATERIALIZED (
    SELECT work.run, work.token
    FROM unnest($1::text[], $2::bigint[], $3::bigint[]) AS asked (run, token, number)
    JOIN work ON work.run = asked.run AND work.token = asked.token
    WHERE work.number = asked.number AND worker IS NOT NULL FOR UPDATE OF work SKIP LOCKED)
UPDATE work SET worker = NULL, until = NULL FROM mine WHERE work.run = mine.run AND work.token = mine.token;

-- name: give_back_strays
WITH strays AS MATERIALIZED (
    SELECT work.run, work.token FROM work
    WHERE worker = $1 AND NOT EXISTS (SELECT 1 FROM unnest($2::text[], $3::bigint[], $4::bigint[])
        AS held (run, token, number)
        WHERE held.run = work.run AND held.token = work.token AND held.number = work.number)
    FOR UPDATE OF work SKIP LOCKED)
UPDATE work SET worker = NULL, until = NULL FROM strays WHERE work.run = strays.run AND work.token = strays.token;

-- name: drop_offers
WITH mine AS MATERIALIZED (
    SELECT work.run, work.token
    FROM unnest($1::text[], $2::bigint[], $3::bigint[]) AS asked (run, token, number)
    JOIN work ON work.run = asked.run AND work.token = asked.token
    WHERE work.number = asked.number AND worker IS NOT NULL FOR UPDATE OF work SKIP LOCKED)
DELETE FROM work USING mine WHERE work.run = mine.run AND work.token = mine.token;

-- `worker >= ''` is the condition for "claimed" of the index of shards. Statements that count claims use another one, so
-- that the planner cannot choose this index for them.
-- name: expired_claims
SELECT run, token, number, attempt, recovery, worker FROM work
WHERE shard = ANY($1::integer[]) AND worker >= ''
AND until <= (extract(epoch FROM clock_timestamp()) * 1000)::bigint ORDER BY until LIMIT $2;

-- A bucket that was not used for a week is full, as a new one is. A bucket that a claim has locked is left.
-- name: forget_meters
WITH idle AS MATERIALIZED (
    SELECT queue, key FROM meters
    WHERE key <> '' AND touched < (extract(epoch FROM clock_timestamp()) * 1000)::bigint - 604800000
    ORDER BY touched LIMIT $1 FOR UPDATE SKIP LOCKED)
DELETE FROM meters USING idle WHERE meters.queue = idle.queue AND meters.key = idle.key;

-- From queue to queue in steps of one look into the index.
-- name: waiting_queues
WITH RECURSIVE walk (queue) AS (
    (SELECT queue FROM work WHERE worker IS NULL AND NOT held ORDER BY queue LIMIT 1)
    UNION ALL
    SELECT next.queue FROM walk CROSS JOIN LATERAL (
        SELECT work.queue FROM work WHERE worker IS NULL AND NOT held AND work.queue > walk.queue
        ORDER BY work.queue LIMIT 1) AS next)
SELECT queue FROM walk;

-- name: queue_rows
SELECT queue, count(*) FILTER (WHERE worker IS NULL AND NOT held) AS waiting,
    count(*) FILTER (WHERE worker IS NOT NULL) AS claimed, count(*) FILTER (WHERE worker IS NULL AND held) AS held,
    greatest(0, (extract(epoch FROM clock_timestamp()) * 1000)::bigint
        - coalesce(min(offered) FILTER (WHERE worker IS NULL AND NOT held), 9223372036854775807)) AS oldest,
    coalesce(array_agg(DISTINCT worker ORDER BY worker) FILTER (WHERE worker IS NOT NULL), '{}') AS workers
FROM work GROUP BY queue ORDER BY queue;
