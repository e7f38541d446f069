"""Carries out durable decisions: work begins, timers are set, other runs and the world outside are told; after a crash
or a change of owner it is done again. `core` puts these parts together with the coordinator.
"""
