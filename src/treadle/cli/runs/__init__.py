"""Verbs on runs and their parts: run, runs, gates, artifacts, dead."""
