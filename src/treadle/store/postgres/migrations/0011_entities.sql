-- Entities are records, with journeys over many runs. Runs that began before have moves from here on only.

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

CREATE TABLE addresses (
    type text NOT NULL,
    id text NOT NULL,
    entity text COLLATE "C" NOT NULL,
    PRIMARY KEY (type, id)
);
CREATE INDEX addresses_entity ON addresses (entity);

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
