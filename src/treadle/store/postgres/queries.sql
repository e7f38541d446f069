-- The statements of the verbs, by name; those of migrating, forgetting and looking after are in upkeep.sql. `queries.py`
-- reads them; a statement reaches to the next name. Rows arrive as one array per column; where there may be many, as the
-- text of one, which costs an engine a tenth (`$1::text::bigint[]`; `columns.handed` reads it here). Only where it is read
-- once: a condition would read it for every row. The statements of a commit become parts of one (`batches.compose`): no
-- two of them change the same row.

-- Locks the shards until the end of the transaction, in the order of their numbers: a node that takes a lease over waits
-- for it, and commits of one shard follow each other. One holder at a time makes no multixacts, as FOR SHARE would.
-- name: check_fences
SELECT leases.shard
FROM leases JOIN unnest($1::text::integer[], $2::text::text[], $3::text::bigint[]) AS fence (shard, owner, epoch)
    ON leases.shard = fence.shard AND leases.owner = fence.owner AND leases.epoch = fence.epoch
ORDER BY leases.shard FOR NO KEY UPDATE OF leases;

-- name: read_leases
SELECT shard, owner, epoch FROM leases WHERE shard = ANY($1::integer[]);

-- Takes, renews or inherits a shard; no row while another owner holds it. Without a time, that of the database is used.
-- `excluded.until - $4` is now.
-- name: take_lease
INSERT INTO leases (shard, owner, epoch, until)
VALUES ($1, $2, 1, coalesce($3::bigint, floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint) + $4::bigint)
ON CONFLICT (shard) DO UPDATE SET owner = excluded.owner, until = excluded.until,
    epoch = leases.epoch + CASE WHEN leases.until <= excluded.until - $4 OR $5::boolean THEN 1 ELSE 0 END
WHERE leases.until <= excluded.until - $4 OR $5 OR leases.owner = excluded.owner
RETURNING epoch;

-- Changes nothing and writes.
-- name: touch_leases
UPDATE leases SET until = until WHERE shard = ANY($1::integer[]);

-- name: release_lease
UPDATE leases SET until = 0 WHERE shard = $1 AND owner = $2 AND epoch = $3;

-- name: create_runs
INSERT INTO runs (run, shard, workflow, version, status, busy, seq, started, changed, idempotency_key, entity, parent,
    tags, first_day, last_day)
SELECT new.run, new.shard, new.workflow, new.version, new.status, new.busy, new.seq, new.started, new.changed, new.key,
    new.entity, new.parent, new.tags, (SELECT day FROM calendar), (SELECT day FROM calendar)
FROM unnest($1::text::text[], $2::text::integer[], $3::text::text[], $4::text::bigint[], $5::text::text[],
    $6::text::boolean[], $7::text::bigint[], $8::text::bigint[], $9::text::bigint[], $10::text::text[], $11::text::text[],
    $12::text::text[], $13::text::text[]) WITH ORDINALITY
    AS new (run, shard, workflow, version, status, busy, seq, started, changed, key, entity, parent, tags, place)
ORDER BY new.place
ON CONFLICT (run) DO NOTHING
RETURNING run;

-- In the order of the keys, so that two engines wait one after the other and cannot deadlock.
-- name: claim_keys
INSERT INTO run_keys (workflow, idempotency_key, run)
SELECT new.workflow, new.key, new.run
FROM unnest($1::text::text[], $2::text::text[], $3::text::text[]) AS new (workflow, key, run)
ORDER BY new.workflow, new.key
ON CONFLICT (workflow, idempotency_key) DO NOTHING
RETURNING run;

-- A start that is an item of some batch already stays there.
-- name: note_items
INSERT INTO batch_items (start, run, workflow, idempotency_key)
SELECT new.start, new.run, new.workflow, new.key
FROM unnest($1::text::text[], $2::text::text[], $3::text::text[], $4::text::text[]) AS new (start, run, workflow, key)
ON CONFLICT (start) DO NOTHING;

-- name: tag_runs
INSERT INTO tags (run, tag) SELECT new.run, new.tag FROM unnest($1::text::text[], $2::text::text[]) AS new (run, tag)
ON CONFLICT (run, tag) DO NOTHING;

-- Guarded by the sequence number that each decision saw. Another transaction may have moved old blocks forward meanwhile:
-- the last day never goes back.
-- name: move_runs
UPDATE runs SET seq = moved.last, changed = coalesce(moved.changed, runs.changed), status = moved.status,
    busy = moved.busy, last_day = greatest(runs.last_day, (SELECT day FROM calendar))
FROM unnest($1::text::text[], $2::text::bigint[], $3::text::bigint[], $4::text::bigint[], $5::text::text[],
    $6::text::boolean[]) AS moved (run, expected, last, changed, status, busy)
WHERE runs.run = moved.run AND runs.seq = moved.expected
RETURNING runs.run;

-- name: note_version
UPDATE runs SET version = $2::bigint WHERE run = $1::text;

-- name: append_history
INSERT INTO history (run, seq, day, block, position)
SELECT new.run, new.seq, (SELECT day FROM calendar), new.block, nextval('history_positions')
FROM unnest($1::text::text[], $2::text::bigint[], $3::bytea[]) AS new (run, seq, block);

-- The three parts of a lone chain's step, check_fences, move_runs and append_history, of one row each: without arrays it
-- takes two thirds of the time. A change of those parts must be made here, too.
-- name: step_one
WITH check_fences AS (
    SELECT shard FROM leases WHERE shard = $1::integer AND owner = $2::text AND epoch = $3::bigint FOR NO KEY UPDATE
), move_runs AS (
    UPDATE runs SET seq = $6::bigint, changed = coalesce($7::bigint, changed), status = $8::text, busy = $9::boolean,
        last_day = greatest(last_day, (SELECT day FROM calendar))
    WHERE run = $4::text AND seq = $5::bigint
    RETURNING run
), append_history AS (
    INSERT INTO history (run, seq, day, block, position)
    SELECT $4::text, $6::bigint, (SELECT day FROM calendar), $10::bytea, nextval('history_positions')
)
SELECT 1 / CASE WHEN (SELECT count(*) FROM check_fences) = 1 AND (SELECT count(*) FROM move_runs) = 1
    THEN 1 ELSE 0 END, NULL;

-- name: add_effects
INSERT INTO outbox (id, shard, run, effect)
SELECT nextval('outbox_ids') + placed.shard, placed.shard, placed.run, placed.effect FROM (
    SELECT new.shard, new.run, new.effect
    FROM unnest($1::text::integer[], $2::text::text[], $3::bytea[]) WITH ORDINALITY AS new (shard, run, effect, place)
    ORDER BY new.place) AS placed
RETURNING id;

-- name: effects_done
DELETE FROM outbox USING unnest($1::text::bigint[]) AS given (id)
WHERE outbox.shard = given.id % 1024 AND outbox.id = given.id;

-- name: park_effects
UPDATE outbox SET parked = given.reason FROM unnest($1::text::bigint[], $2::text::text[]) AS given (id, reason)
WHERE outbox.shard = given.id % 1024 AND outbox.id = given.id;

-- name: set_timers
INSERT INTO timers (shard, run, timer, due)
SELECT new.shard, new.run, new.timer, new.due
FROM unnest($1::text::integer[], $2::text::text[], $3::text::bigint[], $4::text::bigint[])
    AS new (shard, run, timer, due)
ON CONFLICT (run, timer) DO UPDATE SET due = excluded.due;

-- name: clear_timers
DELETE FROM timers USING unnest($1::text::text[], $2::text::bigint[]) AS gone (run, timer)
WHERE timers.run = gone.run AND timers.timer = gone.timer;

-- name: open_gates
INSERT INTO gates (run, token, node, opened, title, assign, due, claimed_by, escalated, reminded, commented, answered, people, words)
SELECT new.run, new.token, new.node, new.opened, new.title, new.assign, new.due, new.claimed_by, new.escalated,
    new.reminded, new.commented, new.answered, new.people, new.words
FROM unnest($1::text::text[], $2::text::bigint[], $3::text::text[], $4::text::bigint[], $5::text::text[], $6::bytea[],
    $7::text::bigint[], $8::text::text[], $9::text::text[], $10::text::integer[], $11::text::integer[],
    $12::text::integer[], $13::text::text[], $14::text::text[]) AS new (
    run, token, node, opened, title, assign, due, claimed_by, escalated, reminded, commented, answered, people, words
)
ON CONFLICT (run, token) DO UPDATE SET node = excluded.node, opened = excluded.opened, title = excluded.title,
    assign = excluded.assign, due = excluded.due, claimed_by = excluded.claimed_by, escalated = excluded.escalated,
    reminded = excluded.reminded, commented = excluded.commented, answered = excluded.answered,
    people = excluded.people, words = excluded.words;

-- name: note_gates
UPDATE gates SET claimed_by = noted.claimed_by, escalated = noted.escalated, reminded = noted.reminded,
    commented = noted.commented, answered = noted.answered
FROM unnest($1::text::text[], $2::text::bigint[], $3::text::text[], $4::text::text[], $5::text::integer[],
    $6::text::integer[], $7::text::integer[])
    AS noted (run, token, claimed_by, escalated, reminded, commented, answered)
WHERE gates.run = noted.run AND gates.token = noted.token;

-- name: close_gates
DELETE FROM gates USING unnest($1::text::text[], $2::text::bigint[]) AS gone (run, token)
WHERE gates.run = gone.run AND gates.token = gone.token;

-- Only the first answer counts. In two steps, each into one index: at once, the planner would compare every answer with
-- everything that waits while the table is small, and go on so when it is not.
-- name: answer_requests
WITH found AS MATERIALIZED (
    SELECT asked.run, asked.request, given.answer
    FROM unnest($1::text::text[], $2::bytea[]) AS given (request, answer) CROSS JOIN LATERAL (
        SELECT requests.run, requests.request FROM requests
        WHERE requests.request = given.request AND requests.answer IS NULL
        AND requests.shard + 0 = ANY($3::integer[]) OFFSET 0) AS asked)
UPDATE requests SET answer = coalesce(requests.answer, found.answer) FROM found
WHERE requests.run = found.run AND requests.request = found.request;

-- Requests that never were in the inbox, or came into it meanwhile, with their answers.
-- name: keep_answered
INSERT INTO requests (run, request, shard, workflow, at, command, fingerprint, answer)
SELECT new.run, new.request, new.shard, new.workflow, new.at, new.command, new.fingerprint, new.answer
FROM unnest($1::text::text[], $2::text::text[], $3::text::integer[], $4::text::text[], $5::text::bigint[], $6::bytea[],
    $7::text::text[], $8::bytea[]) AS new (run, request, shard, workflow, at, command, fingerprint, answer)
ON CONFLICT (run, request) DO UPDATE SET answer = coalesce(requests.answer, excluded.answer);

-- name: read_answer
SELECT answer, fingerprint FROM requests WHERE run = $1 AND request = $2;

-- name: submit_request
WITH kept AS (
    INSERT INTO requests (run, request, shard, workflow, at, command, fingerprint)
    SELECT $1::text, $2::text, $3::integer, $4::text, $5::bigint, $6::bytea, $7::text
    WHERE NOT EXISTS (SELECT 1 FROM requests WHERE run = $1 AND request = $2)
    ON CONFLICT (run, request) DO NOTHING)
SELECT answer FROM requests WHERE run = $1 AND request = $2;

-- name: waiting_requests
SELECT found.request, found.run, found.workflow, found.at, found.command, found.fingerprint
FROM unnest($1::integer[]) AS wanted (shard) CROSS JOIN LATERAL (
    SELECT request, run, workflow, at, command, fingerprint, arrived FROM requests
    WHERE requests.shard = wanted.shard AND answer IS NULL ORDER BY arrived LIMIT $2) AS found
ORDER BY found.arrived LIMIT $2;

-- Of one run or of all, kept ones or the one with an id. Without a run it reads the table: people ask rarely.
-- name: kept_requests
SELECT request, run, workflow, at, command, answer, fingerprint FROM requests
WHERE ($1::text IS NULL OR run = $1) AND CASE WHEN $2::text IS NULL THEN request LIKE 'kept-%' ELSE request = $2 END
ORDER BY request COLLATE "C" DESC LIMIT $3;

-- name: where_runs_stand
SELECT run, seq FROM runs WHERE run = ANY($1::text[]);

-- name: keys_taken
SELECT run_keys.workflow, run_keys.idempotency_key FROM run_keys
JOIN unnest($1::text[], $2::text[]) AS wanted (workflow, key)
    ON run_keys.workflow = wanted.workflow AND run_keys.idempotency_key = wanted.key
LIMIT 1;

-- Only the partitions of the days from $4 to $5 are opened: these are written into the statement, since a plan for any day
-- would open hundreds. Whether the run's days are among them is seen from the answer. Blocks outside the run's days are of
-- one that was forgotten. The last block of a page is the first that reaches to its end; without a limit it is the last.
-- name: read_history
SELECT runs.first_day, runs.last_day, blocks.seq, blocks.block FROM runs LEFT JOIN LATERAL (
    SELECT seq, block FROM history WHERE history.run = $1 AND seq > $2 AND day >= $4 AND day <= $5
    AND day >= runs.first_day AND day <= runs.last_day AND seq <= coalesce((
        SELECT seq FROM history WHERE history.run = $1 AND seq >= $2::bigint + $3::bigint AND day >= $4 AND day <= $5
        AND day >= runs.first_day AND day <= runs.last_day ORDER BY seq LIMIT 1), 9223372036854775807)
    ORDER BY seq) AS blocks ON true
WHERE runs.run = $1 ORDER BY blocks.seq;

-- name: find_runs
SELECT run, workflow, version, status, seq, idempotency_key, started, changed, busy, entity, tags, parent, created FROM runs

-- The conditions of a query, joined by AND; each has its own parameter, numbered anew when they are joined.
-- name: if_run
run = $1
-- name: if_run_ending
right(run, length($1::text)) = $1::text
-- name: if_workflow
workflow = $1
-- name: if_idempotency_key
run = ANY(ARRAY(SELECT run_keys.run FROM run_keys WHERE run_keys.idempotency_key = $1))
-- name: if_item
run = (SELECT batch_items.run FROM batch_items WHERE batch_items.start = $1)
-- For lists that something else leads: IS TRUE keeps the planner from the indexes by status and by workflow, and each
-- row is compared instead.
-- name: if_status_among
(status = ANY($1::text[])) IS TRUE
-- name: if_workflow_too
(workflow = $1) IS TRUE
-- name: if_version
version = $1
-- name: if_tags
(SELECT count(*) FROM tags WHERE tags.run = runs.run AND tag = ANY($1::text[])) = cardinality($1::text[])
-- name: if_text
(strpos(lower(run), $1) > 0 OR strpos(lower(idempotency_key), $1) > 0 OR strpos(lower(entity), $1) > 0
    OR (runs.tags IS NOT NULL AND (SELECT bool_or(strpos(lower(tags.tag), $1) > 0) FROM tags WHERE tags.run = runs.run)))
-- Runs from one number to before another.
-- name: if_from_number
created >= $1
-- name: if_until_number
created < $1
-- What leads a list: runs of one value, from one number to before another, in the order of the index that begins with
-- the value. Value and number are compared together, so that a page begins at its first run, however far on it is, and
-- sorted by both, because no other index has that order. The order of completed runs is that of `runs_created`, too, but
-- their own index is never larger, and the planner takes the smaller one.
-- name: if_led_by_workflow
(workflow, created) >= ($1, $2::bigint) AND (workflow, created) < ($1, $3::bigint)
-- name: if_led_by_status
status <> 'completed' AND (status, created) >= ($1, $2::bigint) AND (status, created) < ($1, $3::bigint)
-- name: if_led_by_completed
status = 'completed' AND created >= $1::bigint AND created < $2::bigint
-- The number of the run that is so many places from the beginning of a list.
-- name: find_number
SELECT created FROM runs
-- Few runs, looked up first. The order, which means nothing, leads to the index.
-- name: count_tagged
SELECT count(*) FROM (SELECT 1 FROM tags WHERE tag >= $1 AND tag <= $1 ORDER BY tag LIMIT $2) AS found;
-- The numbers between which runs of a time lie: the block after the last, and the first block, that have one. From block
-- to block by two looks into the index `runs_started`.
-- name: started_blocks
WITH RECURSIVE blocks (block) AS (
    (SELECT created >> 12 FROM runs ORDER BY created >> 12 DESC LIMIT 1)
    UNION ALL
    SELECT (SELECT created >> 12 FROM runs WHERE created >> 12 < blocks.block ORDER BY created >> 12 DESC LIMIT 1)
    FROM blocks WHERE blocks.block IS NOT NULL
)
SELECT coalesce(min(block) << 12, 0) AS first, coalesce((max(block) + 1) << 12, 0) AS beyond
FROM blocks CROSS JOIN LATERAL (
    SELECT 1 FROM runs WHERE created >> 12 = blocks.block AND started >= $1 AND started < $2 LIMIT 1
) AS found;
-- name: if_rarely_tagged
run = ANY(ARRAY(SELECT tags.run FROM tags WHERE tag >= $1 AND tag <= $1 ORDER BY tag LIMIT $2))
-- One look for each run, in the order of the list: for tags that many runs have.
-- name: if_tag
(SELECT true FROM tags WHERE tags.run = runs.run AND tag = $1)
-- name: if_entity
entity IN ($1, $2)
-- name: if_parents
parent = ANY($1::text[])
-- name: if_parent
parent = $1
-- name: if_shard
shard = ANY($1::integer[])
-- name: if_busy
busy
-- name: if_idle
NOT busy
-- name: if_started_from
started >= $1
-- name: if_started_until
started < $1
-- name: number_of
SELECT created FROM runs WHERE run = $1;

-- One step into one index instead of the conditions above.
-- name: if_key
run = (SELECT run_keys.run FROM run_keys WHERE run_keys.workflow = $1 AND run_keys.idempotency_key = $2)

-- The columns only narrow the rows down: `fits` decides. Rows from before there were `people` and `words` are not
-- narrowed down by them.
-- name: find_gates
SELECT gates.run, token, node, workflow, opened, title, assign, due, claimed_by, escalated, reminded, commented, answered
FROM gates JOIN runs ON runs.run = gates.run
-- name: if_gate_run
gates.run = $1
-- name: if_gate_token
token = $1
-- name: if_gate_workflow
workflow = $1
-- name: if_gate_node
node = $1
-- name: if_gate_overdue
due < $1
-- name: if_gate_text
(words IS NULL OR strpos(words, $1) > 0)
-- name: if_gate_people
(people IS NULL OR claimed_by = ANY($2::text[]) OR EXISTS (
    SELECT 1 FROM unnest($1::text[]) AS wanted (name)
    WHERE strpos(people, wanted.name) > 0 OR strpos(escalated, wanted.name) > 0
))
-- name: if_gate_after
(opened, gates.run COLLATE "C", token) > ($1::bigint, $2::text COLLATE "C", $3::bigint)

-- Of many shards: the first of each, then the first of them all. An index gives the rows of one shard in order.
-- name: read_outbox
SELECT found.id, found.run, found.effect, found.parked
FROM unnest($1::integer[]) AS wanted (shard) CROSS JOIN LATERAL (
    SELECT id, run, effect, parked FROM outbox
    WHERE outbox.shard = wanted.shard AND id > $2 AND parked IS NULL ORDER BY id LIMIT $3) AS found
ORDER BY found.id LIMIT $3;

-- name: read_parked
SELECT found.id, found.run, found.effect, found.parked
FROM unnest($1::integer[]) AS wanted (shard) CROSS JOIN LATERAL (
    SELECT id, run, effect, parked FROM outbox
    WHERE outbox.shard = wanted.shard AND id > $2 AND parked IS NOT NULL ORDER BY id LIMIT $3) AS found
ORDER BY found.id LIMIT $3;

-- The timers of a paused run stand still.
-- name: read_timers
SELECT found.run, found.timer, found.due
FROM unnest($1::integer[]) AS wanted (shard) CROSS JOIN LATERAL (
    SELECT timers.run, timer, due FROM timers JOIN runs ON runs.run = timers.run
    WHERE timers.shard = wanted.shard AND due <= $2 AND status <> 'paused' ORDER BY due LIMIT $3) AS found
ORDER BY found.due LIMIT $3;

-- name: newest_document
SELECT kind, name, version, hash, body FROM documents WHERE kind = $1 AND name = $2 ORDER BY version DESC LIMIT 1;

-- name: put_document
INSERT INTO documents (kind, name, version, hash, body) VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (kind, name, version) DO NOTHING;

-- Drops older versions of an engine's own notes (`_…`).
-- name: drop_older_documents
DELETE FROM documents WHERE kind = $1 AND name = $2 AND version < $3;

-- name: newest_documents
SELECT kind, name, version, hash, body FROM (
    SELECT DISTINCT ON (name) kind, name, version, hash, body FROM documents WHERE kind = $1
    ORDER BY name, version DESC) AS newest
ORDER BY name COLLATE "C";

-- name: document_version
SELECT kind, name, version, hash, body FROM documents WHERE kind = $1 AND name = $2 AND version = $3;

-- name: documents_of_version
SELECT kind, name, version, hash, body FROM documents WHERE kind = $1 AND version = $2 ORDER BY name COLLATE "C";

-- name: put_blobs
INSERT INTO blobs (run, digest, content)
SELECT new.run, new.digest, new.content FROM unnest($1::text[], $2::bytea[], $3::bytea[]) AS new (run, digest, content)
ON CONFLICT (run, digest) DO NOTHING;

-- name: get_blob
SELECT content FROM blobs WHERE digest = $1 LIMIT 1;

-- The bytes that records of runs refer to.
-- name: blobs_of_runs
SELECT DISTINCT ON (digest) digest, content FROM blobs
WHERE run = ANY($1::text[]) AND digest = ANY($2::bytea[]) ORDER BY digest;

-- name: drop_gates
DELETE FROM gates WHERE run = ANY($1::text[]);
