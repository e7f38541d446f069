-- Queue work for workers on any machine. What its tables mean is written in schema.sql.

CREATE TABLE work (
    run text NOT NULL,
    token bigint NOT NULL,
    shard integer NOT NULL,
    queue text COLLATE "C" NOT NULL,
    priority integer NOT NULL,
    key text COLLATE "C" NOT NULL CHECK (key <> ''),
    position bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
    offered bigint NOT NULL,
    attempt bigint NOT NULL,
    recovery integer NOT NULL,
    room integer,
    effect bytea NOT NULL,
    held boolean NOT NULL,
    worker text,
    number bigint NOT NULL DEFAULT 0,
    until bigint,
    PRIMARY KEY (run, token),
    CHECK ((worker IS NULL) = (until IS NULL))
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);
CREATE INDEX work_ready ON work (queue, priority, key, position) INCLUDE (room) WHERE worker IS NULL AND NOT held;
CREATE INDEX work_claimed ON work (queue, key) WHERE worker IS NOT NULL;
CREATE INDEX work_at_work ON work (shard) WHERE worker IS NOT NULL;

CREATE TABLE meters (
    queue text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    tokens double precision,
    touched bigint NOT NULL,
    PRIMARY KEY (queue, key)
) WITH (fillfactor = 50);
CREATE INDEX meters_touched ON meters (touched);
