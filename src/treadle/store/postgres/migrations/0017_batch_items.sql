-- A start that became an item of a batch is known for as long as the batch's run is kept (6.7). Its key is in `run_keys`.
CREATE TABLE batch_items (
    start text NOT NULL,
    run text NOT NULL,
    workflow text NOT NULL,
    idempotency_key text,
    PRIMARY KEY (start)
);
CREATE INDEX batch_items_run ON batch_items (run);
