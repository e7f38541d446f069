"""Verbs on workflow files: init, validate, test, graph, schema, deploy."""
