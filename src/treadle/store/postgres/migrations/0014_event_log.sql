-- All events have one order, and a reader is told what was forgotten before it came.

ALTER TABLE history ADD COLUMN position bigint;

CREATE SEQUENCE history_positions OWNED BY history.position;

CREATE INDEX history_position ON history (position);

ALTER TABLE calendar ADD COLUMN log text NOT NULL DEFAULT left(gen_random_uuid()::text, 8);

ALTER TABLE calendar ADD COLUMN forgets bigint NOT NULL DEFAULT 0;

CREATE TABLE forgets (
    number bigint PRIMARY KEY,
    last bigint NOT NULL
);
