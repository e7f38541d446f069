-- The statements about entities, by name, as in queries.sql. A record is named by its key (`entity`), the first address
-- it had. Locks are taken in one order: addresses, records, positions, each by its key.

-- name: read_addresses
SELECT addresses.type, addresses.id, addresses.entity FROM addresses
JOIN unnest($1::text[], $2::text[]) AS wanted (type, id) ON addresses.type = wanted.type AND addresses.id = wanted.id;

-- The first entity that asks for an address has it. Waits for another transaction that is about to have it.
-- name: add_addresses
INSERT INTO addresses (type, id, entity)
SELECT new.type, new.id, new.entity FROM unnest($1::text[], $2::text[], $3::text[]) AS new (type, id, entity)
ORDER BY new.type, new.id
ON CONFLICT (type, id) DO NOTHING;

-- name: lock_entities
SELECT number, entity, type, id, name, email, attributes, created, changed FROM entities WHERE entity = ANY($1::text[])
ORDER BY entity FOR UPDATE;

-- name: read_entity_at
SELECT number, entities.entity, entities.type, entities.id, name, email, attributes, created, changed
FROM addresses JOIN entities ON entities.entity = addresses.entity WHERE addresses.type = $1 AND addresses.id = $2;

-- name: lock_entity_at
SELECT number, entities.entity, entities.type, entities.id, name, email, attributes, created, changed
FROM addresses JOIN entities ON entities.entity = addresses.entity WHERE addresses.type = $1 AND addresses.id = $2
FOR UPDATE OF entities;

-- name: put_entities
INSERT INTO entities (entity, type, id, name, email, attributes, created, changed, search)
SELECT new.entity, new.type, new.id, new.name, new.email, new.attributes, new.created, new.changed, new.search
FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::bytea[], $7::bigint[], $8::bigint[],
    $9::text[]) AS new (entity, type, id, name, email, attributes, created, changed, search)
ON CONFLICT (entity) DO UPDATE SET type = excluded.type, id = excluded.id, name = excluded.name, email = excluded.email,
    attributes = excluded.attributes, changed = excluded.changed, search = excluded.search;

-- A run id that is used again after its run was forgotten may meet its old self.
-- name: add_moves
INSERT INTO moves (entity, workflow, at, run, seq, event, kind, place, progress, completed_as, set_type, moved_by, reason)
SELECT new.entity, new.workflow, new.at, new.run, new.seq, new.event, new.kind, new.place, new.progress,
    new.completed_as, new.set_type, new.moved_by, new.reason
FROM unnest($1::text[], $2::text[], $3::bigint[], $4::text[], $5::bigint[], $6::text[], $7::text[], $8::text[],
    $9::double precision[], $10::text[], $11::text[], $12::text[], $13::text[])
    AS new (entity, workflow, at, run, seq, event, kind, place, progress, completed_as, set_type, moved_by, reason)
ON CONFLICT (entity, at, run, seq) DO NOTHING;

-- A position is the last move in the order of (at, run, seq), whatever order they are written in: the row is compared
-- again when another transaction has just changed it.
-- name: put_positions
INSERT INTO positions (entity, workflow, at, run, seq, kind, place)
SELECT new.entity, new.workflow, new.at, new.run, new.seq, new.kind, new.place
FROM unnest($1::text[], $2::text[], $3::bigint[], $4::text[], $5::bigint[], $6::text[], $7::text[])
    AS new (entity, workflow, at, run, seq, kind, place)
ORDER BY new.entity COLLATE "C", new.workflow COLLATE "C"
ON CONFLICT (entity, workflow) DO UPDATE SET at = excluded.at, run = excluded.run, seq = excluded.seq,
    kind = excluded.kind, place = excluded.place
WHERE (excluded.at, excluded.run, excluded.seq) > (positions.at, positions.run, positions.seq);

-- Numbers of moves by hand are those of their entity, whose record is locked.
-- name: last_by_hand
SELECT coalesce(max(seq), 0) FROM moves WHERE entity = $1 AND run = '';

-- name: drop_entity
DELETE FROM entities WHERE entity = $1;
-- name: drop_addresses
DELETE FROM addresses WHERE entity = $1;
-- name: drop_moves
DELETE FROM moves WHERE entity = $1;
-- name: drop_positions
DELETE FROM positions WHERE entity = $1;

-- name: live_runs
SELECT DISTINCT moves.run FROM moves JOIN runs ON runs.run = moves.run
WHERE moves.entity = $1 AND ($2::text IS NULL OR moves.workflow = $2)
AND runs.status IN ('created', 'queued', 'running', 'paused', 'compensating') ORDER BY moves.run;

-- name: find_entities
SELECT number, entity, type, id, name, email, attributes, created, changed FROM entities

-- The conditions of a query; each has its own parameter, numbered anew when they are joined.
-- name: if_type
type = $1
-- name: if_text
strpos(search, $1) > 0
-- name: if_before
number < $1
-- name: if_workflow
entity IN (SELECT positions.entity FROM positions WHERE positions.workflow = $1)
-- name: if_section
entity IN (SELECT positions.entity FROM positions WHERE positions.kind = 'section' AND positions.place = $1)
-- name: if_section_of_workflow
entity IN (SELECT positions.entity FROM positions
    WHERE positions.workflow = $1 AND positions.kind = 'section' AND positions.place = $2)

-- name: journey
SELECT entity, workflow, at, run, seq, event, kind, place, progress, completed_as, set_type, moved_by, reason FROM moves
WHERE entity = $1 AND (at, run, seq) > ($2, $3, $4) ORDER BY at, run, seq LIMIT $5;

-- name: moves_of_runs
SELECT entity, workflow, at, run, seq, event, kind, place, progress, completed_as, set_type, moved_by, reason FROM moves
WHERE run = ANY($1::text[]) AND run <> '' ORDER BY run, at, seq;

-- name: positions_of
SELECT moves.entity, moves.workflow, at, run, seq, event, moves.kind, moves.place, progress, completed_as, set_type,
    moved_by, reason
FROM positions JOIN moves USING (entity, at, run, seq)
WHERE positions.entity = ANY($1::text[]) ORDER BY at DESC, run DESC, seq DESC;

-- The page is chosen first: only its rows are looked up among the moves.
-- name: positions
SELECT number, page.entity, type, id, name, email, attributes, page.created, page.changed,
    moves.entity, moves.workflow, moves.at, moves.run, moves.seq, event, moves.kind, moves.place, progress,
    completed_as, set_type, moved_by, reason, runs.status,
    moves.kind = 'node' AND EXISTS (SELECT 1 FROM gates WHERE gates.run = moves.run AND gates.node = moves.place)
FROM (
    SELECT entities.*, positions.at, positions.run, positions.seq
    FROM positions JOIN entities ON entities.entity = positions.entity
    WHERE positions.workflow = $1 AND ($2::text IS NULL OR (positions.kind = $2 AND positions.place = $3)) AND number < $4
    ORDER BY number DESC LIMIT $5) AS page
JOIN moves ON moves.entity = page.entity AND moves.at = page.at AND moves.run = page.run AND moves.seq = page.seq
LEFT JOIN runs ON runs.run = moves.run
ORDER BY number DESC;

-- name: crowds
SELECT kind, place, status, asks, completed_as, count(*) FROM (
    SELECT moves.kind, moves.place, runs.status, completed_as, moves.kind = 'node'
        AND EXISTS (SELECT 1 FROM gates WHERE gates.run = moves.run AND gates.node = moves.place) AS asks
    FROM positions JOIN moves USING (entity, at, run, seq) LEFT JOIN runs ON runs.run = moves.run
    WHERE positions.workflow = $1) AS here
GROUP BY kind, place, status, asks, completed_as
ORDER BY kind COLLATE "C", place COLLATE "C", status COLLATE "C" NULLS FIRST, asks, completed_as COLLATE "C" NULLS FIRST;

-- Entries into places since an instant. `chain`: every move with the place before it; the first one of the time looks
-- further back. `entries`: moves to another place, with the time of the next. The index `moves_chain` has all columns, in
-- the order of the windows.
-- name: conversion
WITH held AS MATERIALIZED (
    SELECT * FROM unnest($3::text[], $4::text[]) AS held (spot, section)
), located AS NOT MATERIALIZED (
    SELECT entity, at, run, seq, completed_as, CASE WHEN section IS NULL THEN kind ELSE 'section' END AS kind,
        coalesce(section, place) AS place
    FROM moves LEFT JOIN held ON spot = kind || ':' || place WHERE workflow = $1
), chain AS (
    SELECT entity, at, run, seq, kind, place, lag(kind || ':' || place) OVER entity_order AS was,
        bool_or(completed_as IS NOT DISTINCT FROM 'success') OVER (PARTITION BY entity ORDER BY at, run, seq
            ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING) AS converted
    FROM located WHERE at >= $2
    WINDOW entity_order AS (PARTITION BY entity ORDER BY at, run, seq)
), entries AS (
    SELECT kind, place, at, converted,
        lead(at) OVER (PARTITION BY entity ORDER BY at, run, seq) - at AS spent
    FROM chain
    WHERE kind || ':' || place IS DISTINCT FROM coalesce(was, (
        SELECT earlier.kind || ':' || earlier.place FROM located AS earlier
        WHERE earlier.entity = chain.entity AND earlier.at < $2 AND $2::bigint > 0
        ORDER BY earlier.at DESC, earlier.run DESC, earlier.seq DESC LIMIT 1))
)
SELECT kind, place, count(*), count(spent), count(*) FILTER (WHERE converted),
    percentile_disc(0.5) WITHIN GROUP (ORDER BY spent), percentile_disc(0.95) WITHIN GROUP (ORDER BY spent)
FROM entries GROUP BY kind, place ORDER BY kind COLLATE "C", place COLLATE "C";
