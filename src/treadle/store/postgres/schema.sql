-- The whole schema as of version 1. For reading: databases are made by the migrations, and a test proves both equal.
--
-- Every table of a run begins its primary key with the run, and no table refers to another: runs may be spread over
-- databases (Citus, CockroachDB and YugabyteDB stay possible by design; not tested). `shard` is computed from the run's
-- id by whoever writes (`store.rows.shard_of`), and is what an engine owns. Identity columns give an order to read in:
-- commits of one shard follow each other (they lock its lease), so what is later in a shard has the greater number. No
-- decision reads them. Texts are stored strings of `model`; bytea is msgpack; times are milliseconds since 1970.

-- What is known of a run without folding its history. Room in its pages: a step of a chain changes no indexed column
-- and stays in the page.
CREATE TABLE runs (
    run text PRIMARY KEY CHECK (run <> ''),
    shard integer NOT NULL,
    created bigint NOT NULL GENERATED ALWAYS AS IDENTITY,   -- order of creation, to list and page by
    workflow text NOT NULL,
    version bigint NOT NULL,
    status text NOT NULL CHECK (status IN ('created', 'running', 'paused', 'completed', 'failed', 'cancelled',
        'timed_out', 'compensating', 'compensated', 'compensation_failed')),
    busy boolean NOT NULL,
    seq bigint NOT NULL CHECK (seq >= 1),
    started bigint NOT NULL,
    changed bigint NOT NULL,
    idempotency_key text,
    entity text,
    parent text,
    tags text                           -- a JSON array, as given; NULL is none
) WITH (fillfactor = 80);

CREATE INDEX runs_created ON runs (created);
CREATE INDEX runs_workflow ON runs (workflow, created);
-- Retention asks for what finished long ago; a new owner for what is open in its shard, and first for what is busy.
CREATE INDEX runs_status ON runs (status, started);
CREATE INDEX runs_shard ON runs (shard, status);
CREATE INDEX runs_busy ON runs (shard) WHERE busy;
CREATE INDEX runs_entity ON runs (entity) WHERE entity IS NOT NULL;
CREATE INDEX runs_parent ON runs (parent) WHERE parent IS NOT NULL;

-- A key names one run of its workflow (invariant 4 of the port). Not a table of a run: the question is asked before
-- there is one, and a unique index of `runs` could not be spread by run.
CREATE TABLE run_keys (
    workflow text NOT NULL,
    idempotency_key text NOT NULL,
    run text NOT NULL,
    PRIMARY KEY (workflow, idempotency_key)
);

-- What people find runs by.
CREATE TABLE tags (
    run text NOT NULL,
    tag text NOT NULL,
    PRIMARY KEY (run, tag)
);
CREATE INDEX tags_tag ON tags (tag);

-- Events, packed: one block per run and commit.
CREATE TABLE history (
    run text NOT NULL,
    seq bigint NOT NULL,                -- of the block's last event
    block bytea NOT NULL,
    PRIMARY KEY (run, seq)
);

-- What the world has still to be told. An id is never given twice, so saying `done` twice is harmless.
CREATE TABLE outbox (
    run text NOT NULL,
    id bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
    shard integer NOT NULL,
    effect bytea NOT NULL,
    parked text,                        -- why it was given up
    PRIMARY KEY (run, id)
);
CREATE INDEX outbox_shard ON outbox (shard, id);

CREATE TABLE timers (
    run text NOT NULL,
    timer bigint NOT NULL,
    shard integer NOT NULL,
    due bigint NOT NULL,
    PRIMARY KEY (run, timer)
);
CREATE INDEX timers_due ON timers (shard, due);

CREATE TABLE gates (
    run text NOT NULL,
    token bigint NOT NULL,
    node text NOT NULL,
    opened bigint NOT NULL,
    title text,
    assign bytea,
    due bigint,
    PRIMARY KEY (run, token)
);
CREATE INDEX gates_opened ON gates (opened);

-- What others ask of the owner. The run may not exist yet, or never.
CREATE TABLE requests (
    run text NOT NULL,
    request text NOT NULL,
    shard integer NOT NULL,
    arrived bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
    workflow text,
    at bigint NOT NULL,
    command bytea NOT NULL,
    answer bytea,
    PRIMARY KEY (run, request)
);
CREATE INDEX requests_waiting ON requests (shard, arrived) WHERE answer IS NULL;
CREATE INDEX requests_unanswered ON requests (shard, request) WHERE answer IS NULL;

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

-- Who may write. An epoch only grows (invariant 5 of the port).
CREATE TABLE leases (
    shard integer PRIMARY KEY,
    owner text NOT NULL,
    epoch bigint NOT NULL CHECK (epoch >= 1),
    until bigint NOT NULL
) WITH (fillfactor = 50);
