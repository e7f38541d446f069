"""Executes attempts of tasks: pipelines on the event loop, in threads and in processes, within limits.

Owns an attempt from the moment it is handed out until its outcome. Must not know runs, shards or queues.
"""
