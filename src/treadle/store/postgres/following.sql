-- The statements of the log of all events, by name, as in queries.sql.

-- The log and a page of its blocks, as of one moment. Only partitions from the day $5 on are opened: it is written into the
-- statement, since a plan for any day would open hundreds. Blocks outside the run's days are of one that was forgotten.
-- name: read_log
SELECT calendar.log, calendar.forgets, (SELECT max(last) FROM forgets WHERE forgets.number > $3) AS dropped, calendar.day AS today,
    found.position, found.run, found.workflow, found.entity, found.seq, found.block, found.day
FROM calendar LEFT JOIN LATERAL (
    SELECT blocks.position, blocks.run, workflow, entity, blocks.seq, blocks.block, blocks.day
    FROM (SELECT position, run, seq, block, day FROM history WHERE position >= $1 AND position <= $4::bigint AND day >= $5
        ORDER BY position LIMIT $2) AS blocks
    LEFT JOIN runs ON runs.run = blocks.run AND blocks.day >= runs.first_day AND blocks.day <= runs.last_day
) AS found ON true ORDER BY found.position;

-- The greatest position that was given so far. Read before the leases are held.
-- name: greatest_position
SELECT last_value, is_called FROM history_positions;

-- A commit holds the leases of its shards while it gives positions: when all were held for a moment, every position that
-- was given before is committed or never will be.
-- name: hold_leases
SELECT shard FROM leases ORDER BY shard FOR NO KEY UPDATE;

-- name: where_log_stands
SELECT log, forgets, day FROM calendar;
