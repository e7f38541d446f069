-- Answers to commands that are given again, however the command came: kept by time, not with their run.
ALTER TABLE requests ADD COLUMN fingerprint TEXT;
CREATE INDEX requests_marked ON requests (at) WHERE fingerprint IS NOT NULL;
