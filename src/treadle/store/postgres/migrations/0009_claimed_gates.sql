-- Who has taken a gate on is shown where gates are listed.

ALTER TABLE gates ADD COLUMN claimed_by text;
