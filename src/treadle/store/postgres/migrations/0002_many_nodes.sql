-- Many nodes on one database. What its tables mean is written in schema.sql; a migration is never changed.

CREATE TABLE nodes (
    owner text PRIMARY KEY,
    name text NOT NULL,
    coordinates boolean NOT NULL,
    queues text[],
    started bigint NOT NULL,
    beat bigint NOT NULL,
    until bigint NOT NULL,
    behind bigint NOT NULL
) WITH (fillfactor = 50);

ALTER TABLE outbox ALTER COLUMN id DROP IDENTITY;
CREATE SEQUENCE outbox_ids INCREMENT BY 1024 START WITH 1024 OWNED BY outbox.id;
UPDATE outbox SET id = id * 1024 + shard;
SELECT setval('outbox_ids', (coalesce(max(id), 0) / 1024 + 1) * 1024, false) FROM outbox;

DROP INDEX requests_unanswered;
CREATE INDEX requests_unanswered ON requests (request) WHERE answer IS NULL;
