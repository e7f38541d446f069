"""Carries out the effects of durable decisions: begins work, sets timers, sends commands to other runs and webhooks to
the outside. After a crash or a change of owner, effects that may have been lost are carried out again. `core` puts
these parts together with the coordinator.
"""
