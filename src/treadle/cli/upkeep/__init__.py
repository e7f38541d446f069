"""Verbs on a store as a whole and on the surroundings: backup, db, fsck, doctor, config."""
