-- Queue work that workers claim, on a file too. Work that waits in the outbox of an older file is offered by its owner.
CREATE TABLE work (
    position INTEGER PRIMARY KEY,
    run INTEGER NOT NULL REFERENCES runs (id),
    token INTEGER NOT NULL,
    queue TEXT NOT NULL,
    priority INTEGER NOT NULL,
    key TEXT NOT NULL CHECK (key <> ''),
    offered INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    recovery INTEGER NOT NULL,
    room INTEGER,
    effect BLOB NOT NULL,
    held INTEGER NOT NULL CHECK (held IN (0, 1)),
    worker TEXT,
    number INTEGER NOT NULL DEFAULT 0,
    until INTEGER,
    CHECK ((worker IS NULL) = (until IS NULL))
) STRICT;
CREATE UNIQUE INDEX work_run ON work (run, token);
CREATE INDEX work_ready ON work (queue, priority, key, position) WHERE worker IS NULL AND held = 0;
CREATE INDEX work_claimed ON work (queue, key) WHERE worker IS NOT NULL;
CREATE INDEX work_until ON work (until) WHERE worker IS NOT NULL;

CREATE TABLE meters (
    queue TEXT NOT NULL,
    key TEXT NOT NULL,
    tokens REAL,
    touched INTEGER NOT NULL,
    PRIMARY KEY (queue, key)
) STRICT, WITHOUT ROWID;
