"""The simulator: many engines, workers and people on one store, in virtual time, from one seed."""
