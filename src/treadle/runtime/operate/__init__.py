"""The work of operators on a whole store: checks, backups, moves, retention, compensations, and past states of a
run."""
