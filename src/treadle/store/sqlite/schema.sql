-- The whole schema as of version 2. For reading: files are made by the migrations, and a test proves both equal.
--
-- Hot tables hold only live things (outbox, timers, gates); a step of a chain is one UPDATE of `runs` that touches no
-- index and one INSERT into `history`. Texts are stored strings of `model`; blobs are msgpack unless said otherwise,
-- behind a checksum (store/seals.py); times are milliseconds since 1970.

-- A run as a row, readable without folding its history.
CREATE TABLE runs (
    id INTEGER PRIMARY KEY,             -- order of creation
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
    tags TEXT CHECK (tags IS NULL OR json_valid(tags))  -- a JSON array, as given; NULL is none
) STRICT;

-- A key names one run of its workflow (invariant 4 of the port).
CREATE UNIQUE INDEX runs_key ON runs (workflow, idempotency_key) WHERE idempotency_key IS NOT NULL;
-- Lists by workflow and by status, within a time; retention searches runs that finished long ago. A step touches
-- neither index: it names none of their columns.
CREATE INDEX runs_workflow ON runs (workflow, status, started);
CREATE INDEX runs_status ON runs (status, started);
-- Runs that a new owner looks at first. Partial: only these are written to the index.
CREATE INDEX runs_busy ON runs (busy) WHERE busy = 1;
CREATE INDEX runs_entity ON runs (entity) WHERE entity IS NOT NULL;
CREATE INDEX runs_parent ON runs (parent) WHERE parent IS NOT NULL;

-- Tags, by which people find runs.
CREATE TABLE tags (
    tag TEXT NOT NULL,
    run INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    PRIMARY KEY (tag, run)
) STRICT, WITHOUT ROWID;
CREATE INDEX tags_run ON tags (run);

-- Events, packed: one block per run and commit, in the order of commits. A log beside an index instead of a tree by
-- run: a batch about a thousand runs then writes a few pages at the end and not a page for each run (28 ms against
-- 128 ms for a batch of 1,000).
CREATE TABLE history (
    id INTEGER PRIMARY KEY,
    run INTEGER NOT NULL REFERENCES runs (id),
    seq INTEGER NOT NULL,               -- of the block's last event
    block BLOB NOT NULL
) STRICT;
CREATE UNIQUE INDEX history_run ON history (run, seq);

-- Effects that are still to be delivered. AUTOINCREMENT: an id is never given twice, so `done` twice is harmless.
CREATE TABLE outbox (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    run INTEGER NOT NULL REFERENCES runs (id),
    effect BLOB NOT NULL,
    parked TEXT                         -- why it was given up
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
    claimed_by TEXT,
    PRIMARY KEY (run, token)
) STRICT, WITHOUT ROWID;
CREATE INDEX gates_opened ON gates (opened);

-- Requests to the owner. `run` is a name, not a reference: the run may not exist yet, or never.
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

-- Immutable versions of named things.
CREATE TABLE documents (
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    version INTEGER NOT NULL CHECK (version >= 1),
    hash TEXT NOT NULL,
    body BLOB,                          -- NULL ends the name
    PRIMARY KEY (kind, name, version)
) STRICT;

-- Bytes by content. `digest` is the raw SHA-256.
CREATE TABLE blobs (
    digest BLOB NOT NULL PRIMARY KEY CHECK (length(digest) = 32),
    content BLOB NOT NULL
) STRICT;

-- Which runs need which bytes. Bytes are deleted with the last run that needs them.
CREATE TABLE blobs_of_runs (
    run TEXT NOT NULL,
    digest BLOB NOT NULL REFERENCES blobs (digest),
    PRIMARY KEY (run, digest)
) STRICT, WITHOUT ROWID;
CREATE INDEX blobs_of_runs_digest ON blobs_of_runs (digest);

-- The right to write. An epoch only grows (invariant 5 of the port).
CREATE TABLE leases (
    shard INTEGER PRIMARY KEY,
    owner TEXT NOT NULL,
    epoch INTEGER NOT NULL CHECK (epoch >= 1),
    until INTEGER NOT NULL
) STRICT;
