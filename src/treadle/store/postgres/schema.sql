-- The whole schema as of version 18. For reading: databases are made by the migrations, and a test proves both equal.
--
-- Every table of a run begins its primary key with the run, and no table refers to another: runs may be spread over
-- databases (Citus, CockroachDB and YugabyteDB stay possible by design; not tested). `shard` is computed from the run's
-- id by the writer (`store.rows.shard_of`), and is what an engine owns. Identity columns give an order to read in:
-- commits of one shard follow each other (they lock its lease), so what is later in a shard has the greater number. No
-- decision reads them. Texts are stored strings of `model`; bytea is msgpack behind a checksum (store/seals.py), but for
-- digests and contents of blobs; times are milliseconds since 1970.

-- A run as a row, readable without folding its history. Half of a page is left free: a step of a chain changes no indexed
-- column and stays in the page, also when all runs of the page step in one commit.
CREATE TABLE runs (
    run text PRIMARY KEY CHECK (run <> ''),
    shard integer NOT NULL,
    created bigint NOT NULL GENERATED ALWAYS AS IDENTITY,   -- order of creation, to list and page by
    workflow text NOT NULL,
    version bigint NOT NULL,
    status text NOT NULL CHECK (status IN ('created', 'queued', 'running', 'paused', 'completed', 'failed', 'cancelled',
        'timed_out', 'compensating', 'compensated', 'compensation_failed')),
    busy boolean NOT NULL,
    seq bigint NOT NULL CHECK (seq >= 1),
    started bigint NOT NULL,
    changed bigint NOT NULL,
    idempotency_key text,
    entity text,
    parent text,
    tags text,                          -- a JSON array, as given; NULL is none
    first_day date NOT NULL,            -- between these are its blocks of history
    last_day date NOT NULL
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.02);

CREATE INDEX runs_created ON runs (created);
CREATE INDEX runs_workflow ON runs (workflow, created);
CREATE INDEX runs_started ON runs ((created >> 12), started);   -- in blocks of 4,096 (`started_blocks`)
-- Lists by status are read in the order of creation. Most runs end up completed, and their index has the number alone:
-- new entries come last, which packs it to a third of the size that it would have with the status before the number.
CREATE INDEX runs_completed ON runs (created) WHERE status = 'completed';
CREATE INDEX runs_status ON runs (status, created) WHERE status <> 'completed';
-- A new owner searches the busy runs of its shard.
CREATE INDEX runs_busy ON runs (shard) WHERE busy;
CREATE INDEX runs_entity ON runs (entity) WHERE entity IS NOT NULL;
CREATE INDEX runs_parent ON runs (parent) WHERE parent IS NOT NULL;

-- A key names one run of its workflow (invariant 4 of the port). Not a table of a run: a key is looked up before its run
-- exists, and a unique index of `runs` could not be spread by run.
CREATE TABLE run_keys (
    workflow text NOT NULL,
    idempotency_key text NOT NULL,
    run text NOT NULL,
    PRIMARY KEY (workflow, idempotency_key)
);
CREATE INDEX run_keys_key ON run_keys (idempotency_key);

-- Starts that became items of batches (6.7): the same start again finds the batch's run, and one with its key finds it by
-- `run_keys`. Like a key, a start is looked up before the run is known.
CREATE TABLE batch_items (
    start text NOT NULL,                -- the run that it had asked for
    run text NOT NULL,
    workflow text NOT NULL,
    idempotency_key text,
    PRIMARY KEY (start)
);
CREATE INDEX batch_items_run ON batch_items (run);

-- Tags, by which people find runs.
CREATE TABLE tags (
    run text NOT NULL,
    tag text NOT NULL,
    PRIMARY KEY (run, tag)
);
CREATE INDEX tags_tag ON tags (tag);

-- One row: the day whose partition of history is written (`days.py`), the name of the log of all events
-- (store/following.py), and how often runs were forgotten.
CREATE TABLE calendar (
    one boolean PRIMARY KEY DEFAULT true CHECK (one),
    day date NOT NULL,
    log text NOT NULL DEFAULT left(gen_random_uuid()::text, 8),
    forgets bigint NOT NULL DEFAULT 0
);

-- When runs were forgotten, and the greatest position of a block that was dropped then. Only those that dropped more than
-- every later one.
CREATE TABLE forgets (
    number bigint PRIMARY KEY,
    last bigint NOT NULL
);

-- Events, packed: one block per run and commit, by the day of the commit.
CREATE TABLE history (
    run text NOT NULL,
    seq bigint NOT NULL,                -- of the block's last event
    block bytea NOT NULL,
    day date NOT NULL,
    position bigint,                    -- in the order of all events; NULL before there was one
    PRIMARY KEY (run, seq, day)
) PARTITION BY RANGE (day);
CREATE SEQUENCE history_positions OWNED BY history.position;
CREATE INDEX history_position ON history (position);
-- Later days have partitions of their own, history_20261116 and so on.
CREATE TABLE history_first PARTITION OF history FOR VALUES FROM (MINVALUE) TO ((now() AT TIME ZONE 'UTC')::date + 1);

-- Effects that are still to be delivered. An id is never given twice, so `done` twice is harmless. It is a multiple of
-- 1,024 from the sequence plus the shard: with the id, the row is found by the index of its shard.
CREATE TABLE outbox (
    run text NOT NULL,
    id bigint NOT NULL,
    shard integer NOT NULL,
    effect bytea NOT NULL,
    parked text,                        -- why it was given up
    PRIMARY KEY (run, id)
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);
CREATE INDEX outbox_shard ON outbox (shard, id);
CREATE SEQUENCE outbox_ids INCREMENT BY 1024 START WITH 1024 OWNED BY outbox.id;

CREATE TABLE timers (
    run text NOT NULL,
    timer bigint NOT NULL,
    shard integer NOT NULL,
    due bigint NOT NULL,
    PRIMARY KEY (run, timer)
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);
CREATE INDEX timers_due ON timers (shard, due);

CREATE TABLE gates (
    run text NOT NULL,
    token bigint NOT NULL,
    node text NOT NULL,
    opened bigint NOT NULL,
    title text,
    assign bytea,
    due bigint,
    claimed_by text,
    escalated text,                     -- JSON: the people it was escalated to
    reminded integer NOT NULL DEFAULT 0,
    commented integer NOT NULL DEFAULT 0,
    answered integer NOT NULL DEFAULT 0,
    people text,                        -- JSON of `assign`; NULL: from before there was this column
    words text,
    PRIMARY KEY (run, token)
);
CREATE INDEX gates_opened ON gates (opened);

-- Requests to the owner. The run may not exist yet, or never.
CREATE TABLE requests (
    run text NOT NULL,
    request text NOT NULL,
    shard integer NOT NULL,
    arrived bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
    workflow text,
    at bigint NOT NULL,
    command bytea NOT NULL,
    answer bytea,
    fingerprint text,                   -- the answer is given again: kept by time, not with its run
    PRIMARY KEY (run, request)
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);
CREATE INDEX requests_waiting ON requests (shard, arrived) WHERE answer IS NULL;
CREATE INDEX requests_marked ON requests (at) WHERE fingerprint IS NOT NULL;
CREATE INDEX requests_unanswered ON requests (request) WHERE answer IS NULL;

-- Immutable versions of named things; not of a run.
CREATE TABLE documents (
    kind text NOT NULL,
    name text NOT NULL,
    version bigint NOT NULL CHECK (version >= 1),
    hash text NOT NULL,
    body bytea,                         -- NULL ends the name
    PRIMARY KEY (kind, name, version)
);

-- Bytes by the raw SHA-256 of their content, once for each run that needs them: a row that runs shared could be dropped
-- by one engine while another relies on it, and would belong to no run.
CREATE TABLE blobs (
    run text NOT NULL,
    digest bytea NOT NULL CHECK (length(digest) = 32),
    content bytea NOT NULL,
    PRIMARY KEY (run, digest)
);
CREATE INDEX blobs_digest ON blobs (digest);

-- Records of entities (store/entities.py); not of a run, as the tables behind it.
CREATE TABLE entities (
    entity text COLLATE "C" PRIMARY KEY,    -- its key: the first address it had
    number bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
    type text NOT NULL,
    id text NOT NULL,
    name text,
    email text,
    attributes bytea NOT NULL,
    created bigint NOT NULL,
    changed bigint NOT NULL,
    search text NOT NULL                    -- id, name and email without upper case
);
CREATE INDEX entities_number ON entities (number);
CREATE INDEX entities_type ON entities (type, number);

-- Every address that leads to a record: the one it has, and former ones.
CREATE TABLE addresses (
    type text NOT NULL,
    id text NOT NULL,
    entity text COLLATE "C" NOT NULL,
    PRIMARY KEY (type, id)
);
CREATE INDEX addresses_entity ON addresses (entity);

-- Journeys. They outlive the runs that made the moves. `run` and the keys compare as bytes, as everywhere in Treadle. The
-- second index is for `fsck`, the third holds all that conversion reads, in the order in which it is read.
CREATE TABLE moves (
    entity text COLLATE "C" NOT NULL,
    workflow text COLLATE "C" NOT NULL,
    at bigint NOT NULL,
    run text COLLATE "C" NOT NULL,          -- empty: by hand
    seq bigint NOT NULL,
    event text NOT NULL,
    kind text NOT NULL CHECK (kind IN ('node', 'edge', 'section', 'nowhere')),
    place text NOT NULL,
    progress double precision,
    completed_as text,
    set_type text,
    moved_by text,
    reason text,
    PRIMARY KEY (entity, at, run, seq)
);
CREATE INDEX moves_run ON moves (run, seq);
CREATE INDEX moves_chain ON moves (workflow, entity, at, run, seq) INCLUDE (kind, place, completed_as);

-- The last move of each entity in each workflow.
CREATE TABLE positions (
    entity text COLLATE "C" NOT NULL,
    workflow text COLLATE "C" NOT NULL,
    at bigint NOT NULL,
    run text COLLATE "C" NOT NULL,
    seq bigint NOT NULL,
    kind text NOT NULL,
    place text NOT NULL,
    PRIMARY KEY (entity, workflow)
) WITH (fillfactor = 70);
CREATE INDEX positions_place ON positions (workflow, kind, place);

-- The right to write. An epoch only grows (invariant 5 of the port).
CREATE TABLE leases (
    shard integer PRIMARY KEY,
    owner text NOT NULL,
    epoch bigint NOT NULL CHECK (epoch >= 1),
    until bigint NOT NULL
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);

-- Nodes that report to be alive, each until a time of the database's clock. Rows of dead nodes are deleted later.
CREATE TABLE nodes (
    owner text PRIMARY KEY,
    name text NOT NULL,
    coordinates boolean NOT NULL,
    queues text[],                      -- NULL: executes for the runs it owns
    started bigint NOT NULL,
    beat bigint NOT NULL,
    until bigint NOT NULL,
    behind bigint NOT NULL,
    lacks jsonb NOT NULL DEFAULT '{}',  -- queue → what work there needs that this node does not have
    process text NOT NULL DEFAULT ''    -- which process of which machine; see runtime/cluster/predecessor.py
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);

-- Queue work: an offer from the decision that made it until the one that ends it; see store/work.py. A claim changes no
-- column of its primary key, and room in the pages keeps renewals there. Vacuumed early: rows come and go.
CREATE TABLE work (
    run text NOT NULL,
    token bigint NOT NULL,
    shard integer NOT NULL,
    queue text COLLATE "C" NOT NULL,
    priority integer NOT NULL,
    key text COLLATE "C" NOT NULL CHECK (key <> ''),
    position bigint NOT NULL GENERATED ALWAYS AS IDENTITY,  -- the line within a lane
    offered bigint NOT NULL,            -- of the database's clock, as `until` is
    attempt bigint NOT NULL,
    recovery integer NOT NULL,
    room integer,                       -- how many of its key may be claimed at a time, by the work's own word
    effect bytea NOT NULL,
    held boolean NOT NULL,              -- its run is paused
    worker text,                        -- who has claimed it
    number bigint NOT NULL DEFAULT 0,   -- of the last claim; only grows
    until bigint,
    PRIMARY KEY (run, token),
    CHECK ((worker IS NULL) = (until IS NULL))
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);
-- The indexes for claims, which step from lane to lane; for limits, which count; for owners, which search expired claims.
CREATE INDEX work_ready ON work (queue, priority, key, position) INCLUDE (room) WHERE worker IS NULL AND NOT held;
CREATE INDEX work_claimed ON work (queue, key) WHERE worker IS NOT NULL;
-- The last index writes "claimed" in another way, because the planner would otherwise use it for counting while the table
-- is small, and stay with it.
CREATE INDEX work_at_work ON work (shard) WHERE worker >= '';

-- Buckets of rates: of a queue (key '') and of its keys. The queue's own row is what claims under limits lock.
CREATE TABLE meters (
    queue text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    tokens double precision,
    touched bigint NOT NULL,
    PRIMARY KEY (queue, key)
) WITH (fillfactor = 50);
CREATE INDEX meters_touched ON meters (touched);

-- Entries of logs by name: the audit, deliveries. `hash` is of chained logs (store/service.py), whose numbers come from
-- the log's head; those of the others come from a sequence, because they must not wait for each other.
CREATE TABLE log_entries (
    log text NOT NULL,
    id bigint NOT NULL CHECK (id >= 1),
    subject text NOT NULL,
    at bigint NOT NULL,
    body bytea NOT NULL,
    hash bytea,
    PRIMARY KEY (log, id)
);
CREATE INDEX log_entries_subject ON log_entries (log, subject, id);
CREATE SEQUENCE entry_ids OWNED BY log_entries.id;

-- What is kept of a chained log apart from its entries: the number and the hash of the last one, so that a missing tail is
-- noticed. The row is locked by a transaction that appends. `pruned` is the last entry removed from the beginning.
CREATE TABLE log_heads (
    log text PRIMARY KEY,
    count bigint NOT NULL,
    hash bytea NOT NULL,
    pruned bigint NOT NULL,
    pruned_hash bytea NOT NULL
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);

-- Answers that were given once and must be given again.
CREATE TABLE notes (
    key text PRIMARY KEY,
    at bigint NOT NULL,
    body bytea NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);
CREATE INDEX notes_at ON notes (at);
