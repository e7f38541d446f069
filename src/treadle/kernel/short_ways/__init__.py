"""Short ways: the commonest moves of a token, done in a few lines instead of by the full rules.

A short way exists for speed alone. It is taken where a mark says that none of the special cases of the full rules can
occur, and it makes the same events, in the same order, as the full rules would; if it cannot go on it says so before
anything has happened, and the full rules take over. The marks are computed once per workflow version, by
`graph/plain.py`; the full rule that each short way stands for is named in its docstring.

    moves     deciding: hand out a task, hop to the next node, wait at a join, begin all branches of a group
    counting  folding: the counters behind joins, for a token that is alone in the only group around it
    writes    deciding: an output mapping that only picks values out

What proves that both ways are the same: tests/sim/test_short_ways.py plays the simulator's seeds twice, the second time
without any mark and with every counter kept by the full rules, and compares every decision byte by byte. A new short
way joins the list `WAYS` there.

What they gain: a visit of a chain takes 87,600 instructions of decide and evolve instead of 138,900.
"""
