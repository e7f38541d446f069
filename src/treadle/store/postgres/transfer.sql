-- The statements of moving, by name, as in queries.sql. A query for a page returns each row's position, then the row; its
-- last two parameters are how many rows and how many bytes it may have (the last row may exceed them). The order is that
-- of an index, in the database's collation: both ends have an order of their own.

-- name: out_documents
SELECT kind, name, version, kind, name, version, hash, body FROM (
    SELECT *, sum(octet_length(body)) OVER (ORDER BY kind, name, version) - octet_length(body) AS before FROM (
        SELECT kind, name, version, hash, body FROM documents
        WHERE (kind, name, version) > ($1, $2, $3) AND kind <> '_move' ORDER BY kind, name, version LIMIT $4) AS found
    ) AS page WHERE coalesce(before, 0) < $5 ORDER BY kind, name, version;

-- Claims of queue work are not moved: the run becomes busy, so that its new owner looks after it.
-- name: out_runs
SELECT created, run, workflow, version, status,
    busy OR EXISTS (SELECT 1 FROM work WHERE work.run = runs.run AND worker IS NOT NULL) AS busy, seq, started, changed,
    idempotency_key, entity, parent, tags
FROM runs WHERE created > $1 AND $3::bigint > 0 ORDER BY created LIMIT $2;

-- name: out_batch_items
SELECT start, run, start, workflow, idempotency_key FROM batch_items WHERE start > $1 AND $3::bigint > 0
ORDER BY start LIMIT $2;

-- name: out_history
SELECT run, seq, run, seq, block FROM (
    SELECT *, sum(octet_length(block)) OVER (ORDER BY run, seq) - octet_length(block) AS before FROM (
        SELECT run, history.seq, block FROM history JOIN runs USING (run)
        WHERE (run, history.seq) > ($1, $2) AND day >= first_day AND day <= last_day
        ORDER BY run, history.seq LIMIT $3) AS found
    ) AS page WHERE before < $4 ORDER BY run, seq;

-- A number of the outbox without its shard is unique, and the same in every store.
-- name: out_outbox
SELECT run, id, run, id / 1024 AS number, effect, parked FROM (
    SELECT *, sum(octet_length(effect)) OVER (ORDER BY run, id) - octet_length(effect) AS before FROM (
        SELECT run, id, effect, parked FROM outbox WHERE (run, id) > ($1, $2) ORDER BY run, id LIMIT $3) AS found
    ) AS page WHERE before < $4 ORDER BY run, id;

-- Queue work is a row of the outbox in other stores; its number comes after all that were given.
-- name: out_work
SELECT run, token, run, position + $5 AS number, effect, NULL AS parked FROM (
    SELECT *, sum(octet_length(effect)) OVER (ORDER BY run, token) - octet_length(effect) AS before FROM (
        SELECT run, token, position, effect FROM work WHERE (run, token) > ($1, $2) ORDER BY run, token LIMIT $3
        ) AS found
    ) AS page WHERE before < $4 ORDER BY run, token;

-- name: out_timers
SELECT run, timer, run, timer, due FROM timers WHERE (run, timer) > ($1, $2) AND $4::bigint > 0
ORDER BY run, timer LIMIT $3;

-- name: out_gates
SELECT run, token, run, token, node, opened, title, assign, due,
    claimed_by, escalated, reminded, commented, answered, people, words FROM gates
WHERE (run, token) > ($1, $2) AND $4::bigint > 0 ORDER BY run, token LIMIT $3;

-- name: out_requests
SELECT arrived, run, request, workflow, at, command, answer, fingerprint FROM (
    SELECT *, sum(bytes) OVER (ORDER BY arrived) - bytes AS before FROM (
        SELECT arrived, run, request, workflow, at, command, answer, fingerprint,
            octet_length(command) + coalesce(octet_length(answer), 0) AS bytes
        FROM requests WHERE arrived > $1 ORDER BY arrived LIMIT $2) AS found
    ) AS page WHERE before < $3 ORDER BY arrived;

-- name: out_blobs
SELECT run, digest, run, digest, content FROM (
    SELECT *, sum(octet_length(content)) OVER (ORDER BY run, digest) - octet_length(content) AS before FROM (
        SELECT run, digest, content FROM blobs WHERE (run, digest) > ($1, $2) ORDER BY run, digest LIMIT $3) AS found
    ) AS page WHERE before < $4 ORDER BY run, digest;

-- name: out_log_entries
SELECT log, id, log, id, subject, at, body, hash FROM (
    SELECT *, sum(octet_length(body)) OVER (ORDER BY log, id) - octet_length(body) AS before FROM (
        SELECT log, id, subject, at, body, hash FROM log_entries
        WHERE (log, id) > ($1, $2) ORDER BY log, id LIMIT $3) AS found
    ) AS page WHERE before < $4 ORDER BY log, id;

-- name: out_log_heads
SELECT log, log, count, hash, pruned, pruned_hash FROM log_heads WHERE log > $1 AND $3::bigint > 0 ORDER BY log LIMIT $2;

-- name: out_notes
SELECT key, key, at, body FROM (
    SELECT *, sum(octet_length(body)) OVER (ORDER BY key) - octet_length(body) AS before FROM (
        SELECT key, at, body FROM notes WHERE key > $1 ORDER BY key LIMIT $2) AS found
    ) AS page WHERE before < $3 ORDER BY key;

-- name: in_log_entries
INSERT INTO log_entries (log, id, subject, at, body, hash)
SELECT new.log, new.id, new.subject, new.at, new.body, new.hash
FROM unnest($1::text[], $2::bigint[], $3::text[], $4::bigint[], $5::bytea[], $6::bytea[])
    AS new (log, id, subject, at, body, hash);

-- name: in_log_heads
INSERT INTO log_heads (log, count, hash, pruned, pruned_hash)
SELECT new.log, new.count, new.hash, new.pruned, new.pruned_hash
FROM unnest($1::text[], $2::bigint[], $3::bytea[], $4::bigint[], $5::bytea[])
    AS new (log, count, hash, pruned, pruned_hash);

-- name: in_notes
INSERT INTO notes (key, at, body)
SELECT new.key, new.at, new.body FROM unnest($1::text[], $2::bigint[], $3::bytea[]) AS new (key, at, body);

-- The next number of a log that is not chained is greater than all that were given.
-- name: move_entry_ids
SELECT setval('entry_ids', greatest((SELECT max(id) FROM log_entries), (SELECT max(count) FROM log_heads), 1));

-- name: out_entities
SELECT number, entity, type, id, name, email, attributes, created, changed, search FROM (
    SELECT *, sum(octet_length(attributes)) OVER (ORDER BY number) - octet_length(attributes) AS before FROM (
        SELECT * FROM entities WHERE number > $1 ORDER BY number LIMIT $2) AS found
    ) AS page WHERE before < $3 ORDER BY number;

-- name: out_addresses
SELECT type, id, type, id, entity FROM addresses WHERE (type, id) > ($1, $2) AND $4::bigint > 0
ORDER BY type, id LIMIT $3;

-- name: out_moves
SELECT entity, at, run, seq, entity, workflow, at, run, seq, event, kind, place, progress, completed_as, set_type, moved_by,
    reason
FROM moves WHERE (entity, at, run, seq) > ($1, $2, $3, $4) AND $6::bigint > 0 ORDER BY entity, at, run, seq LIMIT $5;

-- name: out_positions
SELECT entity, workflow, entity, workflow, at, run, seq, kind, place FROM positions
WHERE (entity, workflow) > ($1, $2) AND $4::bigint > 0 ORDER BY entity, workflow LIMIT $3;

-- name: in_documents
INSERT INTO documents (kind, name, version, hash, body)
SELECT new.kind, new.name, new.version, new.hash, new.body
FROM unnest($1::text[], $2::text[], $3::bigint[], $4::text[], $5::bytea[]) AS new (kind, name, version, hash, body);

-- name: in_runs
INSERT INTO runs (shard, run, workflow, version, status, busy, seq, started, changed, idempotency_key, entity, parent,
    tags, first_day, last_day)
SELECT new.shard, new.run, new.workflow, new.version, new.status, new.busy, new.seq, new.started, new.changed, new.key,
    new.entity, new.parent, new.tags, today.day, today.day
FROM calendar AS today, unnest($1::integer[], $2::text[], $3::text[], $4::bigint[], $5::text[], $6::boolean[],
    $7::bigint[], $8::bigint[], $9::bigint[], $10::text[], $11::text[], $12::text[], $13::text[]) WITH ORDINALITY
    AS new (shard, run, workflow, version, status, busy, seq, started, changed, key, entity, parent, tags, place)
ORDER BY new.place;

-- name: in_batch_items
INSERT INTO batch_items (run, start, workflow, idempotency_key)
SELECT new.run, new.start, new.workflow, new.key
FROM unnest($1::text[], $2::text[], $3::text[], $4::text[]) AS new (run, start, workflow, key);

-- name: in_history
INSERT INTO history (run, seq, day, block, position)
SELECT new.run, new.seq, runs.last_day, new.block, nextval('history_positions')
FROM runs JOIN unnest($1::text[], $2::bigint[], $3::bytea[]) AS new (run, seq, block)
    ON runs.run = new.run;

-- Numbers are kept: a person who has seen the number of a dead letter can still use it.
-- name: in_outbox
INSERT INTO outbox (shard, run, id, effect, parked)
SELECT new.shard, new.run, new.id, new.effect, new.parked
FROM unnest($1::integer[], $2::text[], $3::bigint[], $4::bytea[], $5::text[]) AS new (shard, run, id, effect, parked);

-- name: in_timers
INSERT INTO timers (shard, run, timer, due)
SELECT new.shard, new.run, new.timer, new.due
FROM unnest($1::integer[], $2::text[], $3::bigint[], $4::bigint[]) AS new (shard, run, timer, due);

-- name: in_gates
INSERT INTO gates (run, token, node, opened, title, assign, due, claimed_by, escalated, reminded, commented, answered, people, words)
SELECT new.run, new.token, new.node, new.opened, new.title, new.assign, new.due, new.claimed_by, new.escalated,
    new.reminded, new.commented, new.answered, new.people, new.words
FROM unnest($1::text[], $2::bigint[], $3::text[], $4::bigint[], $5::text[], $6::bytea[], $7::bigint[], $8::text[],
    $9::text[], $10::integer[], $11::integer[], $12::integer[], $13::text[], $14::text[]) AS new (
    run, token, node, opened, title, assign, due, claimed_by, escalated, reminded, commented, answered, people, words
);

-- name: in_requests
INSERT INTO requests (shard, run, request, workflow, at, command, answer, fingerprint)
SELECT new.shard, new.run, new.request, new.workflow, new.at, new.command, new.answer, new.fingerprint
FROM unnest($1::integer[], $2::text[], $3::text[], $4::text[], $5::bigint[], $6::bytea[], $7::bytea[], $8::text[])
    WITH ORDINALITY AS new (shard, run, request, workflow, at, command, answer, fingerprint, place)
ORDER BY new.place;

-- name: in_blobs
INSERT INTO blobs (run, digest, content)
SELECT new.run, new.digest, new.content
FROM unnest($1::text[], $2::bytea[], $3::bytea[]) AS new (run, digest, content);

-- name: in_entities
INSERT INTO entities (entity, type, id, name, email, attributes, created, changed, search)
SELECT new.entity, new.type, new.id, new.name, new.email, new.attributes, new.created, new.changed, new.search
FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::bytea[], $7::bigint[], $8::bigint[],
    $9::text[]) WITH ORDINALITY AS new (entity, type, id, name, email, attributes, created, changed, search, place)
ORDER BY new.place;

-- name: in_addresses
INSERT INTO addresses (type, id, entity)
SELECT new.type, new.id, new.entity FROM unnest($1::text[], $2::text[], $3::text[]) AS new (type, id, entity);

-- name: in_moves
INSERT INTO moves (entity, workflow, at, run, seq, event, kind, place, progress, completed_as, set_type, moved_by, reason)
SELECT new.entity, new.workflow, new.at, new.run, new.seq, new.event, new.kind, new.place, new.progress,
    new.completed_as, new.set_type, new.moved_by, new.reason
FROM unnest($1::text[], $2::text[], $3::bigint[], $4::text[], $5::bigint[], $6::text[], $7::text[], $8::text[],
    $9::double precision[], $10::text[], $11::text[], $12::text[], $13::text[])
    AS new (entity, workflow, at, run, seq, event, kind, place, progress, completed_as, set_type, moved_by, reason);

-- name: in_positions
INSERT INTO positions (entity, workflow, at, run, seq, kind, place)
SELECT new.entity, new.workflow, new.at, new.run, new.seq, new.kind, new.place
FROM unnest($1::text[], $2::text[], $3::bigint[], $4::text[], $5::bigint[], $6::text[], $7::text[])
    AS new (entity, workflow, at, run, seq, kind, place);

-- An engine's own notes (`_…`) do not count as content.
-- name: has_something
SELECT EXISTS (SELECT 1 FROM runs) OR EXISTS (SELECT 1 FROM requests) OR EXISTS (SELECT 1 FROM blobs)
    OR EXISTS (SELECT 1 FROM log_entries) OR EXISTS (SELECT 1 FROM entities)
    OR EXISTS (SELECT 1 FROM documents WHERE left(kind, 1) <> '_');

-- name: is_ours
SELECT to_regclass('treadle_schema') IS NOT NULL;

-- name: read_mark
SELECT body FROM documents WHERE kind = '_move';

-- name: hold_mark
SELECT body FROM documents WHERE kind = '_move' FOR UPDATE;

-- name: write_mark
INSERT INTO documents (kind, name, version, hash, body) VALUES ('_move', 'move', 1, '', $1)
ON CONFLICT (kind, name, version) DO UPDATE SET body = excluded.body;

-- name: drop_mark
DELETE FROM documents WHERE kind = '_move';

-- name: outbox_last
SELECT coalesce(pg_sequence_last_value('outbox_ids'), 0) / 1024, coalesce((SELECT max(position) FROM work), 0);

-- name: move_outbox_last
SELECT setval('outbox_ids', $1::bigint * 1024);

-- Positions of the source mean nothing here.
-- name: begin_log
UPDATE calendar SET log = DEFAULT;

-- Lets the move through its own seal.
-- name: pass_seal
SELECT set_config('treadle.move', $1, true);

-- Owners whose leases have not run out by the database's own clock.
-- name: holders
WITH clock AS MATERIALIZED (
    SELECT extract(epoch FROM clock_timestamp()) * 1000 AS now
), owners AS (
    SELECT owner, count(*) AS shards FROM leases, clock WHERE until > clock.now GROUP BY owner
), alive AS (
    SELECT owner, name FROM nodes, clock WHERE until > clock.now
)
SELECT coalesce(alive.name, owner), coalesce(shards, 0) FROM owners FULL JOIN alive USING (owner) ORDER BY 1;

-- Makes every fence that was ever given out of date.
-- name: end_leases
UPDATE leases SET epoch = epoch + 1;

-- name: sealed_tables
SELECT conrelid::regclass::text FROM pg_constraint
WHERE conname = 'treadle_sealed' AND connamespace = current_schema()::regnamespace AND conislocal AND coninhcount = 0;

-- name: count_outbox
SELECT (SELECT count(*) FROM outbox) + (SELECT count(*) FROM work);

-- name: count_documents
SELECT count(*) FROM documents WHERE kind <> '_move';

-- name: items_of_runs
SELECT run, start, idempotency_key FROM batch_items WHERE run = ANY($1::text[]);

-- name: timers_of_runs
SELECT run, timer, due FROM timers WHERE run = ANY($1::text[]);

-- name: gates_of_runs
SELECT run, token, claimed_by, escalated, reminded, commented, answered FROM gates WHERE run = ANY($1::text[]);

-- name: outbox_of_runs
SELECT id, run, effect, parked FROM outbox WHERE run = ANY($1::text[])
UNION ALL SELECT position, run, effect, NULL FROM work WHERE run = ANY($1::text[]);
