-- The statements of membership, by name, as in queries.sql. The time is the database's: nodes share no other.

-- A lease that has run out is not renewed: another node may be about to take it. Leases are locked in the order of their
-- numbers, as a commit locks them. The rest of the statement sees the rows as they were before it, so the rows it wrote
-- are merged with them by hand.
-- name: beat
WITH clock AS MATERIALIZED (
    SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now
), mine AS MATERIALIZED (
    SELECT leases.shard FROM leases, clock WHERE leases.owner = $1 AND leases.until > clock.now
    ORDER BY leases.shard FOR NO KEY UPDATE OF leases
), renewed AS (
    UPDATE leases SET until = clock.now + $2::bigint FROM mine, clock WHERE leases.shard = mine.shard
    RETURNING leases.shard, leases.owner, leases.epoch, leases.until
), buried AS (
    DELETE FROM nodes USING clock WHERE nodes.until < clock.now - 10 * $2::bigint AND nodes.owner <> $1
), kept AS (
    INSERT INTO nodes (owner, name, coordinates, queues, started, beat, until, behind, lacks, process)
    SELECT $1, $3, $4, $5::text[], clock.now, clock.now, clock.now + $2::bigint, $6, $7::jsonb, $8 FROM clock
    ON CONFLICT (owner) DO UPDATE SET name = excluded.name, coordinates = excluded.coordinates,
        queues = excluded.queues, beat = excluded.beat, until = excluded.until, behind = excluded.behind,
        lacks = excluded.lacks, process = excluded.process
    RETURNING owner, name, coordinates, queues, started, beat, behind, lacks, process
), alive AS (
    SELECT owner, name, coordinates, queues, started, beat, behind, lacks, process FROM nodes, clock
    WHERE until > clock.now AND owner <> $1
    UNION ALL SELECT owner, name, coordinates, queues, started, beat, behind, lacks, process FROM kept
), held AS (
    SELECT shard, owner, epoch, until FROM leases, clock
    WHERE until > clock.now AND shard NOT IN (SELECT renewed.shard FROM renewed) AND owner <> $1
    UNION ALL SELECT shard, owner, epoch, until FROM renewed
)
SELECT clock.now,
    (SELECT coalesce(json_agg(alive ORDER BY owner), '[]') FROM alive)::text,
    (SELECT coalesce(json_agg(held ORDER BY shard), '[]') FROM held)::text
FROM clock;

-- name: standing
WITH clock AS MATERIALIZED (
    SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now
), alive AS (
    SELECT owner, name, coordinates, queues, started, beat, behind, lacks, process FROM nodes, clock WHERE until > clock.now
), held AS (
    SELECT shard, owner, epoch, until FROM leases, clock WHERE until > clock.now
)
SELECT clock.now,
    (SELECT coalesce(json_agg(alive ORDER BY owner), '[]') FROM alive)::text,
    (SELECT coalesce(json_agg(held ORDER BY shard), '[]') FROM held)::text
FROM clock;

-- name: leave
DELETE FROM nodes WHERE owner = $1;

-- The node's process is dead. Leases first and in the order of their numbers, then claims, as a commit locks them; a
-- claim that another transaction has locked is left to run out.
-- name: bury
WITH held AS MATERIALIZED (
    SELECT shard FROM leases WHERE owner = $1 AND until > 0 ORDER BY shard FOR NO KEY UPDATE
), ended AS (
    UPDATE leases SET until = 0 FROM held WHERE leases.shard = held.shard
), claimed AS MATERIALIZED (
    SELECT run, token FROM work WHERE worker = $1 FOR UPDATE SKIP LOCKED
), freed AS (
    UPDATE work SET until = 0 FROM claimed WHERE work.run = claimed.run AND work.token = claimed.token
)
DELETE FROM nodes WHERE owner = $1;

-- A paused run's timers stand still and are not late.
-- name: backlog
WITH clock AS MATERIALIZED (
    SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now
), asked AS (
    SELECT shard, count(*) AS many, min(at) AS oldest FROM requests WHERE answer IS NULL GROUP BY shard
), due AS (
    SELECT timers.shard, count(*) AS many, min(due) AS oldest FROM clock, timers JOIN runs ON runs.run = timers.run
    WHERE timers.due <= clock.now AND runs.status <> 'paused' GROUP BY timers.shard
)
SELECT coalesce(asked.shard, due.shard) AS shard,
    coalesce(asked.many, 0), coalesce(greatest(clock.now - asked.oldest, 0), 0),
    coalesce(due.many, 0), coalesce(clock.now - due.oldest, 0)
FROM clock, asked FULL JOIN due ON due.shard = asked.shard ORDER BY 1;
