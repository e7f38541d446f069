-- A node that is killed and started again on its machine waited for its own lease: it can see that its predecessor is dead.

ALTER TABLE nodes ADD COLUMN process text NOT NULL DEFAULT '';
