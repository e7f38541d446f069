-- The statements about entities, by name, as in queries.sql. A record is named by its key (`entity`), the first address
-- it had.

-- name: read_address
SELECT entity FROM addresses WHERE type = ? AND id = ?;

-- The first entity that asks for an address has it.
-- name: add_address
INSERT OR IGNORE INTO addresses (type, id, entity) VALUES (?, ?, ?);

-- name: read_entity
SELECT number, entity, type, id, name, email, attributes, created, changed FROM entities WHERE entity = ?;

-- name: put_entity
INSERT INTO entities (entity, type, id, name, email, attributes, created, changed, search)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (entity) DO UPDATE SET type = excluded.type, id = excluded.id, name = excluded.name, email = excluded.email,
    attributes = excluded.attributes, changed = excluded.changed, search = excluded.search;

-- A run id that is used again after its run was forgotten may meet its old self.
-- name: add_move
INSERT OR IGNORE INTO moves (entity, workflow, at, run, seq, event, kind, place, progress, completed_as, set_type, moved_by, reason)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- A position is the last move in the order of (at, run, seq), whatever order they are written in.
-- name: put_position
INSERT INTO positions (entity, workflow, at, run, seq, kind, place) VALUES (?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (entity, workflow) DO UPDATE SET at = excluded.at, run = excluded.run, seq = excluded.seq,
    kind = excluded.kind, place = excluded.place
WHERE (excluded.at, excluded.run, excluded.seq) > (positions.at, positions.run, positions.seq);

-- Numbers of moves by hand are those of their entity.
-- name: last_by_hand
SELECT max(seq) FROM moves WHERE entity = ? AND run = '';

-- name: drop_entity
DELETE FROM entities WHERE entity = ?;
-- name: drop_addresses
DELETE FROM addresses WHERE entity = ?;
-- name: drop_moves
DELETE FROM moves WHERE entity = ?;
-- name: drop_positions
DELETE FROM positions WHERE entity = ?;

-- name: live_runs
SELECT DISTINCT moves.run FROM moves JOIN runs ON runs.run = moves.run
WHERE moves.entity = ?1 AND (?2 IS NULL OR moves.workflow = ?2)
AND runs.status IN ('created', 'queued', 'running', 'paused', 'compensating') ORDER BY moves.run;

-- name: find_entities
SELECT number, entity, type, id, name, email, attributes, created, changed FROM entities

-- name: if_type
type = :type
-- name: if_text
instr(search, :text) > 0
-- name: if_before
number < :before
-- name: if_workflow
entity IN (SELECT positions.entity FROM positions WHERE positions.workflow = :workflow)
-- name: if_section
entity IN (SELECT positions.entity FROM positions WHERE positions.kind = 'section' AND positions.place = :section)
-- name: if_section_of_workflow
entity IN (SELECT positions.entity FROM positions
    WHERE positions.workflow = :workflow AND positions.kind = 'section' AND positions.place = :section)

-- name: journey
SELECT entity, workflow, at, run, seq, event, kind, place, progress, completed_as, set_type, moved_by, reason FROM moves
WHERE entity = ? AND (at, run, seq) > (?, ?, ?) ORDER BY at, run, seq LIMIT ?;

-- name: moves_of_runs
SELECT entity, workflow, at, run, seq, event, kind, place, progress, completed_as, set_type, moved_by, reason FROM moves
WHERE run IN (SELECT value FROM json_each(?)) AND run <> '' ORDER BY run, at, seq;

-- name: positions_of
SELECT moves.entity, moves.workflow, at, run, seq, event, moves.kind, moves.place, progress, completed_as, set_type,
    moved_by, reason
FROM positions JOIN moves USING (entity, at, run, seq)
WHERE positions.entity IN (SELECT value FROM json_each(?)) ORDER BY at DESC, run DESC, seq DESC;

-- A page of all who are somewhere in a workflow: from record to record, newest first, until there are enough. CROSS JOIN
-- keeps that order.
-- name: positions
SELECT number, entities.entity, type, entities.id, name, email, attributes, created, entities.changed,
    moves.entity, moves.workflow, moves.at, moves.run, moves.seq, event, moves.kind, moves.place, progress,
    completed_as, set_type, moved_by, reason, runs.status,
    moves.kind = 'node' AND EXISTS (SELECT 1 FROM gates WHERE gates.run = runs.id AND gates.node = moves.place)
FROM entities CROSS JOIN positions ON positions.entity = entities.entity AND positions.workflow = ?1
CROSS JOIN moves ON moves.entity = positions.entity AND moves.at = positions.at AND moves.run = positions.run
    AND moves.seq = positions.seq
LEFT JOIN runs ON runs.run = moves.run
WHERE number < ?2 ORDER BY number DESC LIMIT ?3;

-- Of one place: the page is chosen first, and only its rows are looked up among the moves.
-- name: positions_at
SELECT number, page.entity, type, page.id, name, email, attributes, created, page.changed,
    moves.entity, moves.workflow, moves.at, moves.run, moves.seq, event, moves.kind, moves.place, progress,
    completed_as, set_type, moved_by, reason, runs.status,
    moves.kind = 'node' AND EXISTS (SELECT 1 FROM gates WHERE gates.run = runs.id AND gates.node = moves.place)
FROM (
    SELECT entities.*, positions.at, positions.run, positions.seq
    FROM positions JOIN entities ON entities.entity = positions.entity
    WHERE positions.workflow = ?1 AND number < ?2 AND positions.kind = ?4 AND positions.place = ?5
    ORDER BY number DESC LIMIT ?3) AS page
CROSS JOIN moves ON moves.entity = page.entity AND moves.at = page.at AND moves.run = page.run AND moves.seq = page.seq
LEFT JOIN runs ON runs.run = moves.run
ORDER BY number DESC;

-- name: crowds
SELECT moves.kind, moves.place, runs.status, moves.kind = 'node'
    AND EXISTS (SELECT 1 FROM gates WHERE gates.run = runs.id AND gates.node = moves.place) AS asks, completed_as, count(*)
FROM positions JOIN moves USING (entity, at, run, seq) LEFT JOIN runs ON runs.run = moves.run
WHERE positions.workflow = ? GROUP BY 1, 2, 3, 4, 5 ORDER BY 1, 2, 3, 4, 5;

-- Every move in a workflow, by entity and in order, out of one index. They are counted by `store.passages`.
-- name: chains
SELECT entity, at, kind, place, completed_as IS 'success' FROM moves WHERE workflow = ? ORDER BY entity, at, run, seq;
