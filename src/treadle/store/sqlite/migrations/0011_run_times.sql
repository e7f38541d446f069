-- Lists by start time. Runs are created nearly in the order of their starts; how far they ever were from it
-- is kept, so that a list by time begins near its runs and not at the newest run.
CREATE INDEX runs_by_started ON runs (started);
CREATE TABLE run_times (
    one INTEGER NOT NULL PRIMARY KEY CHECK (one = 1),
    late_ms INTEGER NOT NULL
) STRICT;
INSERT INTO run_times (one, late_ms)
SELECT 1, coalesce(max(newest - started), 0) FROM (SELECT started, max(started) OVER (ORDER BY id) AS newest FROM runs);
