"""Engines, workers and clients on one PostgreSQL, and everything that can go wrong between them; the same judge.

`./dev torture --store postgres --minutes N` for as long as it is told; CI takes two minutes of it.

    clients ──┐                                  ┌ SIGKILL, SIGSTOP past the lease, SIGTERM
    engines ──┼── proxy, a line for each ── PostgreSQL ── pg_ctl restart -m immediate
    workers ──┘   delays, resets, holes,
                  lost answers                   clocks of some of them: libfaketime, ±1 h, jumping
"""
