-- What a server keeps beside the runs: logs, and answers it gives again.

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

CREATE TABLE log_heads (
    log TEXT NOT NULL PRIMARY KEY,
    count INTEGER NOT NULL,
    hash BLOB NOT NULL,
    pruned INTEGER NOT NULL,
    pruned_hash BLOB NOT NULL
) STRICT;

CREATE TABLE notes (
    key TEXT NOT NULL PRIMARY KEY,
    at INTEGER NOT NULL,
    body BLOB NOT NULL
) STRICT;
CREATE INDEX notes_at ON notes (at);
