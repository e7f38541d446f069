-- All events have one order, whose numbers are never used twice, and a reader is told what was forgotten before it came.

CREATE TABLE event_log (
    one INTEGER NOT NULL PRIMARY KEY CHECK (one = 1),
    log TEXT NOT NULL,
    forgets INTEGER NOT NULL,
    last INTEGER
) STRICT;
INSERT INTO event_log (one, log, forgets) VALUES (1, lower(hex(randomblob(4))), 0);

CREATE TABLE forgets (
    number INTEGER NOT NULL PRIMARY KEY,
    last INTEGER NOT NULL
) STRICT;
