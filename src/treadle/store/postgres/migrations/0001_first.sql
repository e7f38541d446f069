-- The first schema. What its tables mean is written in schema.sql; a migration is never changed.

CREATE TABLE runs (
    run text PRIMARY KEY CHECK (run <> ''),
    shard integer NOT NULL,
    created bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
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
    tags text
) WITH (fillfactor = 80);

CREATE INDEX runs_created ON runs (created);
CREATE INDEX runs_workflow ON runs (workflow, created);

CREATE INDEX runs_status ON runs (status, started);
CREATE INDEX runs_shard ON runs (shard, status);
CREATE INDEX runs_busy ON runs (shard) WHERE busy;
CREATE INDEX runs_entity ON runs (entity) WHERE entity IS NOT NULL;
CREATE INDEX runs_parent ON runs (parent) WHERE parent IS NOT NULL;

CREATE TABLE run_keys (
    workflow text NOT NULL,
    idempotency_key text NOT NULL,
    run text NOT NULL,
    PRIMARY KEY (workflow, idempotency_key)
);

CREATE TABLE tags (
    run text NOT NULL,
    tag text NOT NULL,
    PRIMARY KEY (run, tag)
);
CREATE INDEX tags_tag ON tags (tag);

CREATE TABLE history (
    run text NOT NULL,
    seq bigint NOT NULL,
    block bytea NOT NULL,
    PRIMARY KEY (run, seq)
);

CREATE TABLE outbox (
    run text NOT NULL,
    id bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
    shard integer NOT NULL,
    effect bytea NOT NULL,
    parked text,
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

CREATE TABLE documents (
    kind text NOT NULL,
    name text NOT NULL,
    version bigint NOT NULL CHECK (version >= 1),
    hash text NOT NULL,
    body bytea,
    PRIMARY KEY (kind, name, version)
);

CREATE TABLE blobs (
    run text NOT NULL,
    digest bytea NOT NULL CHECK (length(digest) = 32),
    content bytea NOT NULL,
    PRIMARY KEY (run, digest)
);
CREATE INDEX blobs_digest ON blobs (digest);

CREATE TABLE leases (
    shard integer PRIMARY KEY,
    owner text NOT NULL,
    epoch bigint NOT NULL CHECK (epoch >= 1),
    until bigint NOT NULL
) WITH (fillfactor = 50);
