"""Recorded runs: a run of a store as a scenario, and recorded runs played against another definition (6.6)."""
