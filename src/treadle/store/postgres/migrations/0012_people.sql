-- Lists of gates are narrowed down by people and words, and show how far a gate is. Rows that are there keep NULL in `people`
-- and `words`: a list looks at them itself.

ALTER TABLE gates ADD COLUMN escalated text, ADD COLUMN reminded integer NOT NULL DEFAULT 0,
    ADD COLUMN commented integer NOT NULL DEFAULT 0, ADD COLUMN answered integer NOT NULL DEFAULT 0,
    ADD COLUMN people text, ADD COLUMN words text;
