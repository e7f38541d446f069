"""What the refusal of a migration says: how many things are in the way, and each of them (6.5)."""

from __future__ import annotations

import pytest

from tests.driving import TASK, Driven, Shelf, graph_of, versions_of
from treadle.kernel.on_migrate import TOLD_MAX
from treadle.model import commands as c

WORDS = [
    (1, "1 thing is in the way: ", False),
    (2, "2 things are in the way: ", False),
    (TOLD_MAX, f"{TOLD_MAX} things are in the way: ", False),
    (TOLD_MAX + 2, f"{TOLD_MAX + 2} things are in the way: ", True),
]


@pytest.mark.parametrize(("gone", "words", "is_cut"), WORDS)
def test_the_message_counts_what_is_in_the_way_and_the_plan_has_all_of_it(gone: int, words: str, is_cut: bool) -> None:
    before = graph_of({"nodes": {f"n{number}": TASK for number in range(gone)}})
    graph = versions_of(before, graph_of({"nodes": {"other": TASK}}))
    driven = Driven(graph, Shelf(graph)).start()
    refused = driven.do(c.MigrateRun(2)).rejection
    assert refused is not None and words in refused.message
    assert refused.message.endswith("; and 2 more") == is_cut
    assert len(refused.problems) == gone
