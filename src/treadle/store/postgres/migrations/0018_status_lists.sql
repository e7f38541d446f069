-- Lists by status in the order of creation, of many runs and of few, without sorting. The two indexes take the place of
-- two: a run has an entry in one of them while it is open and in one when it has ended, as before.
DROP INDEX runs_ended;
DROP INDEX runs_open;
CREATE INDEX runs_completed ON runs (created) WHERE status = 'completed';
CREATE INDEX runs_status ON runs (status, created) WHERE status <> 'completed';
