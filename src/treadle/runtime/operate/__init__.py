"""Work of operators on a whole store: checking, backup, moving, retention, compensations, a run as it was."""
