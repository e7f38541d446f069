"""Clients over HTTP while servers, engines and the database are killed; the clients' journal is the judge.

    client process ── HTTP ──► serve, serve (PostgreSQL) or serve, door (a file) ──► store
      starts, gate answers, callbacks,        SIGKILL, started again                   PostgreSQL: crashed
      deliveries, claims, streams

`./dev torture --service [--store sqlite|postgres] [--minutes M] [--seed S]`.
"""
