"""Decides commands and makes the decisions durable: the coordinator, its queue, states in memory, and the transaction.

Owns the order of decisions. Promises that a decision is durable before its answer, effects or news leave this package.
Must not know how effects are carried out (`deliver`).
"""
