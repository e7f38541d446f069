"""Real processes on a real file, killed, starved of disk and cut off from power; a judge compares what was promised.

`./dev torture` kills for as long as it is told; `pytest tests/torture` is the small dose for every day.
"""
