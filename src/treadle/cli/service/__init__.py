"""Verbs of the service: serve it, and manage its keys."""
