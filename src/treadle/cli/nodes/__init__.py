"""Verbs on the processes that do the work, and on what they work for: engine, worker, dev, nodes, queues, schedules.

`demo` is what `./dev run` shows: an engine at work.
"""
