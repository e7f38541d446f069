"""Decides commands and makes the decisions durable: the coordinator, its queue, states in memory, and the transaction.

Owns the order of decisions. Promises that a decision is durable before anybody hears of it. Must not know what becomes
of its effects (`deliver`).
"""
