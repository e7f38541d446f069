"""What the auditor says when something is wrong."""

from __future__ import annotations

from treadle.model.ids import RunId


class Violation(Exception):
    """Something that must never be has happened. `rule` names what was broken, the same for the same bug."""

    def __init__(self, run: RunId, rule: str, text: str) -> None:
        super().__init__(f"{run}: {rule}: {text}")
        self.run = run
        self.rule = rule
        self.text = text
