"""`template {template}`: renders text with the step's input.

The language is Jinja's, by minijinja. Bounded by fuel, strict about undefined names, and without a loader: a
template cannot read files or other templates. Python methods of its values can be called from a template
(`name.upper()`), so it gets a copy.
"""

from __future__ import annotations

from typing import Any

from minijinja import Environment, TemplateError

from treadle.actions.plain import plain
from treadle.actions.protocol import TOLD, Call, Done, Failed, failed

FUEL = 1_000_000
"""Instructions per rendering: a list of some 100,000 lines, well under a second."""


_ENVIRONMENT = Environment(undefined_behavior="strict", fuel=FUEL, keep_trailing_newline=True)


class TemplateKind:
    """The keys of the step's input are the variables; `input`, `state`, `output`, `_run` and `_visit` are there as
    well."""

    name = "template"

    def run(self, call: Call) -> Done | Failed:
        try:
            text = render(call.config["template"], call)
        except TemplateError as problem:
            return failed(problem.message, details={"line": problem.line})
        return Done({"text": text})


def render(template: str, call: Call, name: str = "template") -> str:
    """The text of a template for one call; raises minijinja's `TemplateError`."""
    text: str = _ENVIRONMENT.render_str(template, name, **_variables(template, call))
    return text


def _variables(template: str, call: Call) -> dict[str, Any]:
    own = call.input if isinstance(call.input, dict) else {}
    told = {name: call.facts.root(name) for name in TOLD if name in template}
    variables: dict[str, Any] = plain({**call.roots(), **told, **own})
    return variables
