"""Schedules as data: how one is written, when it is due, and what to do about it now (`runtime.scheduler` does it)."""
