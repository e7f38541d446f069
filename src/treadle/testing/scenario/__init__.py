"""Scenario files: read, checked, played on a world, and their expectations compared."""
