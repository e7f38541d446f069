"""What runs below a budget tell one another, where a scenario cannot show it: reports that come twice (6.8)."""

from __future__ import annotations

from tests.driving import Driven, Shelf, graph_of
from treadle.model import commands as c
from treadle.model import effects as x
from treadle.model.ids import RunId, TokenId
from treadle.model.references import ParentLink
from treadle.model.spending import Ask, Spending

CALLS = {"nodes": {"call": {"action": {"kind": "workflow_call", "workflow": "child"}}}}
CHILD = Shelf(graph_of({"workflow": "child", "nodes": {"x": {}}}))


def test_a_report_that_comes_twice_is_passed_up_once() -> None:
    top = ParentLink(RunId("top"), TokenId(1), budgeted=True)
    driven = Driven(graph_of(CALLS), CHILD).start(parent=top)
    driven.do(c.AllowAttempt(Ask(TokenId(1), 1, first=True, runs=())))
    (child,) = driven.outside.children
    report = c.ReportSpending(TokenId(1), child, Spending(cost=2.0))
    first, again = driven.do(report), driven.do(report)
    assert [event.type for event in first.events] == ["token.progress"]
    assert first.effects == [x.TellSpending(RunId("top"), TokenId(1), Spending(cost=2.0, visits=1), None)]
    assert (again.events, again.effects) == ([], [])
