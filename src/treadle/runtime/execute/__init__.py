"""Executes attempts of tasks: pipelines on the event loop, in threads and in processes, within limits.

Owns what happens between an attempt that is handed out and its outcome. Must not know runs, shards or queues.
"""
