"""Telling the parent of a child run that the child has ended, or that it goes on again."""

from __future__ import annotations

from treadle.kernel.deciding import Deciding
from treadle.model import effects as x
from treadle.model.ids import RunId
from treadle.model.references import ParentLink


def tell_ended(d: Deciding) -> None:
    """Tell the parent that this run has ended, so that the visit which called it goes on."""
    parent = d.state.parent
    if parent is not None:
        _tell(d, parent, None)
    for caller, called in d.state.callers:  # of a batch that several parents wait for
        _tell(d, caller, called)


def _tell(d: Deciding, parent: ParentLink, called: RunId | None) -> None:
    state = d.state
    d.effect(
        x.NotifyParent(
            parent.run,
            parent.token,
            state.status.value,
            state.output,
            state.error,
            compensable=bool(state.records) and d.graph.definition.compensation != "off",
            life=state.life,
            levels=state.levels,
            child=called,
            spent=state.budget.spent if parent.budgeted and state.budget is not None else None,
        )
    )


def tell_reopened(d: Deciding, by: str, levels: int) -> None:
    """Tell the parent that this failed run goes on again, so that the visit which called it waits for it again
    (6.2)."""
    parent = d.state.parent
    if parent is not None:
        d.effect(x.ChildReopened(parent.run, parent.token, d.state.life, levels, by))
