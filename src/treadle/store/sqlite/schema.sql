-- The whole schema as of version 13. For reading: files are made by the migrations, and a test proves both equal.
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
    status TEXT NOT NULL CHECK (status IN ('created', 'queued', 'running', 'paused', 'completed', 'failed', 'cancelled',
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
-- Lists by one condition, newest first: each index ends with the order of creation.
CREATE INDEX runs_by_workflow ON runs (workflow);
CREATE INDEX runs_by_status ON runs (status);
CREATE INDEX runs_by_key ON runs (idempotency_key) WHERE idempotency_key IS NOT NULL;
CREATE INDEX runs_by_started ON runs (started);

-- Starts that became items of batches (6.7): the same start again, or one with its key, finds the batch's run. A key is
-- here or in `runs`, never in both.
CREATE TABLE batch_items (
    start TEXT NOT NULL PRIMARY KEY,    -- the run that it had asked for
    run INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    workflow TEXT NOT NULL,
    idempotency_key TEXT
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX batch_items_key ON batch_items (idempotency_key, workflow) WHERE idempotency_key IS NOT NULL;
CREATE INDEX batch_items_run ON batch_items (run);

-- One row. Runs are created nearly in the order of their starts: none has started more than `late_ms` before a run that
-- was created earlier and was still there. So a run that started `late_ms` after the end of a time, or later, has all
-- runs of that time before it (`if_until_bounded`), and in the same way for its beginning.
CREATE TABLE run_times (
    one INTEGER NOT NULL PRIMARY KEY CHECK (one = 1),
    late_ms INTEGER NOT NULL
) STRICT;

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
    escalated TEXT,                     -- JSON: the people it was escalated to
    reminded INTEGER NOT NULL DEFAULT 0,
    commented INTEGER NOT NULL DEFAULT 0,
    answered INTEGER NOT NULL DEFAULT 0,
    people TEXT,                        -- JSON of `assign`; NULL: from before there was this column
    words TEXT,
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
    answer BLOB,
    fingerprint TEXT                    -- the answer is given again: kept by time, not with its run
) STRICT;
CREATE INDEX requests_waiting ON requests (id) WHERE answer IS NULL;
CREATE INDEX requests_run ON requests (run);
CREATE INDEX requests_marked ON requests (at) WHERE fingerprint IS NOT NULL;

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

-- Records of entities (store/entities.py).
CREATE TABLE entities (
    number INTEGER PRIMARY KEY,         -- order of creation
    entity TEXT NOT NULL UNIQUE,        -- its key: the first address it had
    type TEXT NOT NULL,
    id TEXT NOT NULL,
    name TEXT,
    email TEXT,
    attributes BLOB NOT NULL,
    created INTEGER NOT NULL,
    changed INTEGER NOT NULL,
    search TEXT NOT NULL                -- id, name and email without upper case
) STRICT;
CREATE INDEX entities_type ON entities (type);

-- Every address that leads to a record: the one it has, and former ones.
CREATE TABLE addresses (
    type TEXT NOT NULL,
    id TEXT NOT NULL,
    entity TEXT NOT NULL,
    PRIMARY KEY (type, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX addresses_entity ON addresses (entity);

-- Journeys. They outlive the runs that made the moves. The second index is for `fsck`, the third holds all that
-- conversion reads, in the order in which it is read.
CREATE TABLE moves (
    entity TEXT NOT NULL,
    workflow TEXT NOT NULL,
    at INTEGER NOT NULL,
    run TEXT NOT NULL,                  -- empty: by hand
    seq INTEGER NOT NULL,
    event TEXT NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('node', 'edge', 'section', 'nowhere')),
    place TEXT NOT NULL,
    progress REAL,
    completed_as TEXT,
    set_type TEXT,
    moved_by TEXT,
    reason TEXT,
    PRIMARY KEY (entity, at, run, seq)
) STRICT, WITHOUT ROWID;
CREATE INDEX moves_run ON moves (run, seq);
CREATE INDEX moves_chain ON moves (workflow, entity, at, run, seq, kind, place, completed_as);

-- The last move of each entity in each workflow.
CREATE TABLE positions (
    entity TEXT NOT NULL,
    workflow TEXT NOT NULL,
    at INTEGER NOT NULL,
    run TEXT NOT NULL,
    seq INTEGER NOT NULL,
    kind TEXT NOT NULL,
    place TEXT NOT NULL,
    PRIMARY KEY (entity, workflow)
) STRICT, WITHOUT ROWID;
CREATE INDEX positions_place ON positions (workflow, kind, place);

-- The right to write. An epoch only grows (invariant 5 of the port).
CREATE TABLE leases (
    shard INTEGER PRIMARY KEY,
    owner TEXT NOT NULL,
    epoch INTEGER NOT NULL CHECK (epoch >= 1),
    until INTEGER NOT NULL
) STRICT;

-- Entries of logs by name: the audit, deliveries. `hash` is of chained logs (store/service.py).
CREATE TABLE log_entries (
    log TEXT NOT NULL,
    id INTEGER NOT NULL CHECK (id >= 1),
    subject TEXT NOT NULL,
    at INTEGER NOT NULL,
    body BLOB NOT NULL,
    hash BLOB,
    PRIMARY KEY (log, id)
) STRICT;
CREATE INDEX log_entries_subject ON log_entries (log, subject, id);

-- What is kept of a log apart from its entries: the number of the last one, so that no number is used twice, and of a
-- chained log the last hash, so that a missing tail is noticed. `pruned` is the last entry removed from the beginning.
CREATE TABLE log_heads (
    log TEXT NOT NULL PRIMARY KEY,
    count INTEGER NOT NULL,
    hash BLOB NOT NULL,
    pruned INTEGER NOT NULL,
    pruned_hash BLOB NOT NULL
) STRICT;

-- Answers that were given once and must be given again.
CREATE TABLE notes (
    key TEXT NOT NULL PRIMARY KEY,
    at INTEGER NOT NULL,
    body BLOB NOT NULL
) STRICT;
CREATE INDEX notes_at ON notes (at);

-- Queue work: an offer from the decision that made it until the one that ends it; see store/work.py.
CREATE TABLE work (
    position INTEGER PRIMARY KEY,       -- the line within a lane
    run INTEGER NOT NULL REFERENCES runs (id),
    token INTEGER NOT NULL,
    queue TEXT NOT NULL,
    priority INTEGER NOT NULL,
    key TEXT NOT NULL CHECK (key <> ''),
    offered INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    recovery INTEGER NOT NULL,
    room INTEGER,                       -- how many of its key may be claimed at a time, by the work's own word
    effect BLOB NOT NULL,
    held INTEGER NOT NULL CHECK (held IN (0, 1)),   -- its run is paused
    worker TEXT,                        -- who has claimed it
    number INTEGER NOT NULL DEFAULT 0,  -- of the last claim; only grows
    until INTEGER,
    CHECK ((worker IS NULL) = (until IS NULL))
) STRICT;
CREATE UNIQUE INDEX work_run ON work (run, token);
-- The indexes for claims, which step from lane to lane; for limits, which count; for the owner, which searches expired
-- claims.
CREATE INDEX work_ready ON work (queue, priority, key, position) WHERE worker IS NULL AND held = 0;
CREATE INDEX work_claimed ON work (queue, key) WHERE worker IS NOT NULL;
CREATE INDEX work_until ON work (until) WHERE worker IS NOT NULL;

-- Buckets of rates: of a queue (key '') and of its keys.
CREATE TABLE meters (
    queue TEXT NOT NULL,
    key TEXT NOT NULL,
    tokens REAL,
    touched INTEGER NOT NULL,
    PRIMARY KEY (queue, key)
) STRICT, WITHOUT ROWID;

-- One row: the name of the log of all events (store/following.py), how often runs were forgotten, and the greatest number
-- that a block ever had, while no block has a greater one. The next block gets the number after it.
CREATE TABLE event_log (
    one INTEGER NOT NULL PRIMARY KEY CHECK (one = 1),
    log TEXT NOT NULL,
    forgets INTEGER NOT NULL,
    last INTEGER
) STRICT;

-- When runs were forgotten, and the greatest number of a block that was dropped then. Only those that dropped more than
-- every later one.
CREATE TABLE forgets (
    number INTEGER NOT NULL PRIMARY KEY,
    last INTEGER NOT NULL
) STRICT;
