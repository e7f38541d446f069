-- Entities are records, with journeys over many runs. Runs that began before have moves from here on only.
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

CREATE TABLE addresses (
    type TEXT NOT NULL,
    id TEXT NOT NULL,
    entity TEXT NOT NULL,
    PRIMARY KEY (type, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX addresses_entity ON addresses (entity);

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
