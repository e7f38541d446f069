-- What a server keeps beside the runs: logs, and answers it gives again.

CREATE TABLE log_entries (
    log text NOT NULL,
    id bigint NOT NULL CHECK (id >= 1),
    subject text NOT NULL,
    at bigint NOT NULL,
    body bytea NOT NULL,
    hash bytea,
    PRIMARY KEY (log, id)
);

CREATE INDEX log_entries_subject ON log_entries (log, subject, id);

CREATE SEQUENCE entry_ids OWNED BY log_entries.id;

CREATE TABLE log_heads (
    log text PRIMARY KEY,
    count bigint NOT NULL,
    hash bytea NOT NULL,
    pruned bigint NOT NULL,
    pruned_hash bytea NOT NULL
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);

CREATE TABLE notes (
    key text PRIMARY KEY,
    at bigint NOT NULL,
    body bytea NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);

CREATE INDEX notes_at ON notes (at);
