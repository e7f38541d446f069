-- A start that became an item of a batch is known for as long as the batch's run is kept (6.7).
CREATE TABLE batch_items (
    start TEXT NOT NULL PRIMARY KEY,
    run INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    workflow TEXT NOT NULL,
    idempotency_key TEXT
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX batch_items_key ON batch_items (idempotency_key, workflow) WHERE idempotency_key IS NOT NULL;
CREATE INDEX batch_items_run ON batch_items (run);
