"""Treadle: a durable, token-based workflow engine."""
