-- Lists of gates are narrowed down by people and words, and show how far a gate is. Rows that are there keep NULL in `people`
-- and `words`: a list looks at them itself.
ALTER TABLE gates ADD COLUMN escalated TEXT;
ALTER TABLE gates ADD COLUMN reminded INTEGER NOT NULL DEFAULT 0;
ALTER TABLE gates ADD COLUMN commented INTEGER NOT NULL DEFAULT 0;
ALTER TABLE gates ADD COLUMN answered INTEGER NOT NULL DEFAULT 0;
ALTER TABLE gates ADD COLUMN people TEXT;
ALTER TABLE gates ADD COLUMN words TEXT;
