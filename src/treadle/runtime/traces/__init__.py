"""Traces of runs for OpenTelemetry: contexts, spans out of events, and sending them. Nothing is imported from here
unless an operator turns traces on, except for `context`, which reads the headers of callers.
"""
