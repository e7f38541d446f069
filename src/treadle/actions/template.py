"""`template {template}`: renders text with the step's input.

The language is Jinja's, by minijinja. Bounded in instructions, memory, time and size (`bounded.py`), strict about
undefined names, and without a loader: a template cannot read files or other templates. Methods of its values can be
called from a template (`name.upper()`), so it gets a copy.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from treadle.actions import bounded
from treadle.actions.failure import TaskFailure, error_of
from treadle.actions.plain import plain
from treadle.actions.protocol import TOLD, Call, Done, Failed, Work


class TemplateKind:
    """The keys of the step's input are the variables; `input`, `state`, `output`, `_run` and `_visit` are there as
    well."""

    name = "template"

    def run(self, call: Call) -> Done | Failed | Work:
        template = call.config["template"]
        variables = variables_of(template, call)
        if bounded.is_small(template, variables):
            return _rendered(template, variables)
        return Work(partial(_rendered, template, variables))

    async def close(self) -> None:
        """Ends the processes that render."""
        bounded.CHILDREN.close()


def render(template: str, call: Call, name: str = "template") -> str:
    """The text of a template for one call; raises TaskFailure. May block for a while."""
    return bounded.render(template, name, variables_of(template, call))


def variables_of(template: str, call: Call) -> dict[str, Any]:
    """The variables of a template; `_run` and `_visit` are made only for a template that mentions them."""
    own = call.input if isinstance(call.input, dict) else {}
    told = {name: call.facts.root(name) for name in TOLD if name in template}
    variables: dict[str, Any] = plain({**call.roots(), **told, **own})
    return variables


def _rendered(template: str, variables: dict[str, Any]) -> Done | Failed:
    try:
        return Done({"text": bounded.render(template, "template", variables)})
    except TaskFailure as problem:
        return Failed(error_of(problem))
