-- Lists by one condition, newest first: each index ends with the order of creation.
CREATE INDEX runs_by_workflow ON runs (workflow);
CREATE INDEX runs_by_status ON runs (status);
CREATE INDEX runs_by_key ON runs (idempotency_key) WHERE idempotency_key IS NOT NULL;
