-- The first schema. What its tables mean is written in schema.sql; a migration is never changed.

CREATE TABLE runs (
    id INTEGER PRIMARY KEY,
    run TEXT NOT NULL UNIQUE CHECK (run <> ''),
    workflow TEXT NOT NULL,
    version INTEGER NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('created', 'running', 'paused', 'completed', 'failed', 'cancelled',
        'timed_out', 'compensating', 'compensated', 'compensation_failed')),
    busy INTEGER NOT NULL CHECK (busy IN (0, 1)),
    seq INTEGER NOT NULL CHECK (seq >= 1),
    started INTEGER NOT NULL,
    changed INTEGER NOT NULL,
    idempotency_key TEXT,
    entity TEXT,
    parent TEXT,
    tags TEXT CHECK (tags IS NULL OR json_valid(tags))
) STRICT;

CREATE UNIQUE INDEX runs_key ON runs (workflow, idempotency_key) WHERE idempotency_key IS NOT NULL;

CREATE INDEX runs_workflow ON runs (workflow, status, started);
CREATE INDEX runs_status ON runs (status, started);

CREATE INDEX runs_busy ON runs (busy) WHERE busy = 1;
CREATE INDEX runs_entity ON runs (entity) WHERE entity IS NOT NULL;
CREATE INDEX runs_parent ON runs (parent) WHERE parent IS NOT NULL;

CREATE TABLE tags (
    tag TEXT NOT NULL,
    run INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    PRIMARY KEY (tag, run)
) STRICT, WITHOUT ROWID;
CREATE INDEX tags_run ON tags (run);

CREATE TABLE history (
    id INTEGER PRIMARY KEY,
    run INTEGER NOT NULL REFERENCES runs (id),
    seq INTEGER NOT NULL,
    block BLOB NOT NULL
) STRICT;
CREATE UNIQUE INDEX history_run ON history (run, seq);

CREATE TABLE outbox (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    run INTEGER NOT NULL REFERENCES runs (id),
    effect BLOB NOT NULL,
    parked TEXT
) STRICT;

CREATE TABLE timers (
    run INTEGER NOT NULL REFERENCES runs (id),
    timer INTEGER NOT NULL,
    due INTEGER NOT NULL,
    PRIMARY KEY (run, timer)
) STRICT, WITHOUT ROWID;
CREATE INDEX timers_due ON timers (due);

CREATE TABLE gates (
    run INTEGER NOT NULL REFERENCES runs (id),
    token INTEGER NOT NULL,
    node TEXT NOT NULL,
    opened INTEGER NOT NULL,
    title TEXT,
    assign BLOB,
    due INTEGER,
    PRIMARY KEY (run, token)
) STRICT, WITHOUT ROWID;
CREATE INDEX gates_opened ON gates (opened);

CREATE TABLE requests (
    id INTEGER PRIMARY KEY,
    request TEXT NOT NULL UNIQUE,
    run TEXT NOT NULL,
    workflow TEXT,
    at INTEGER NOT NULL,
    command BLOB NOT NULL,
    answer BLOB
) STRICT;
CREATE INDEX requests_waiting ON requests (id) WHERE answer IS NULL;
CREATE INDEX requests_run ON requests (run);

CREATE TABLE documents (
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    version INTEGER NOT NULL CHECK (version >= 1),
    hash TEXT NOT NULL,
    body BLOB,
    PRIMARY KEY (kind, name, version)
) STRICT;

CREATE TABLE blobs (
    digest BLOB NOT NULL PRIMARY KEY CHECK (length(digest) = 32),
    content BLOB NOT NULL
) STRICT;

CREATE TABLE blobs_of_runs (
    run TEXT NOT NULL,
    digest BLOB NOT NULL REFERENCES blobs (digest),
    PRIMARY KEY (run, digest)
) STRICT, WITHOUT ROWID;
CREATE INDEX blobs_of_runs_digest ON blobs_of_runs (digest);

CREATE TABLE leases (
    shard INTEGER PRIMARY KEY,
    owner TEXT NOT NULL,
    epoch INTEGER NOT NULL CHECK (epoch >= 1),
    until INTEGER NOT NULL
) STRICT;
