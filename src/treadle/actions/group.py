"""`cancel_group`, `add_siblings`, `close_group`: acting on a sibling group of the token's lineage.

Inside a longer task they are requests, applied with the task's result. The run decides then whether the group exists
and is still open. So the output of these actions tells what was requested, not the effect.
"""

from __future__ import annotations

from typing import Any

from treadle.actions.protocol import Call, Done, Failed, failed
from treadle.actions.settings import setting, text_setting
from treadle.model.requests import ChangeGroup

Json = Any


class CancelGroupKind:
    """`{group, join?: fire|drop}` (A6)."""

    name = "cancel_group"

    def run(self, call: Call) -> Done | Failed:
        join = setting(call, "join", "fire")
        if join not in ("fire", "drop"):
            return failed(f"'join' of cancel_group is 'fire' or 'drop', not {join!r}")
        return Done({}, (ChangeGroup("cancel_group", text_setting(call, "group"), join=join),))


class CloseGroupKind:
    """`{group}`: it will not grow any more."""

    name = "close_group"

    def run(self, call: Call) -> Done:
        return Done({}, (ChangeGroup("close_group", text_setting(call, "group")),))


class AddSiblingsKind:
    """`{group}`, with `items` or `count`: further branches of an open group."""

    name = "add_siblings"

    def run(self, call: Call) -> Done | Failed:
        items, count = setting(call, "items"), setting(call, "count")
        problem = _problem(items, count)
        if problem is not None:
            return failed(problem)
        group = text_setting(call, "group")
        added = len(items) if items is not None else count
        return Done({"added": added}, (ChangeGroup("add_siblings", group, items=items, count=count),))


def _problem(items: Json, count: Json) -> str | None:
    if (items is None) == (count is None):
        return "add_siblings takes either 'items' or 'count' from the step's input"
    if items is not None:
        return None if isinstance(items, list) else f"'items' of add_siblings is an array, not {items!r}"
    whole = isinstance(count, int) and not isinstance(count, bool) and count >= 0
    return None if whole else f"'count' of add_siblings is a whole number from 0, not {count!r}"
