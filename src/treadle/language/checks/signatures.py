"""Checks of functions: mapped inputs fit the signature (SIGNATURE), and the function can be found (UNKNOWN_FUNCTION).

Checked wherever the caller can find functions: a flow knows its own, an engine that deploys can import. Values known
only at run time (a path, CEL, canvas input) are not checked here; `actions/python.py` converts and checks them then.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from treadle.language.checks.flow import Flow
from treadle.language.checks.tasks import tasks_of
from treadle.language.document import document_of
from treadle.language.problem import Path, Problem, did_you_mean
from treadle.language.reading import Reading, Settings
from treadle.language.source import Source
from treadle.model.definition import Step, Workflow
from treadle.tasks.decorator import is_importable, name_of
from treadle.tasks.find import find_function
from treadle.tasks.signature import InputMisfit, Parameter, Signature, signature_of
from treadle.tasks.trust import Trust

Function = Callable[..., Any]
AT_RUN_TIME = object()
"""The value of an input that only a run will know."""
COMPENSATING = ("input", "output")
"""The inputs of a compensation without a mapping (1.2)."""


class Supply:
    """The inputs of one step: the place of each and, where it is written down, its value."""

    def __init__(self, at: Path) -> None:
        self.at = at
        """The place where a missing input would be mapped."""
        self.inputs: dict[str, tuple[Path, Any]] = {}

    def add(self, key: str, place: Path, source: Any) -> None:
        name, dot, _ = key.partition(".")
        self.inputs.setdefault(name, (place, AT_RUN_TIME if dot else _written(source)))


def check_signatures(
    workflow: Workflow, functions: Mapping[str, Function], file: str | None = None, trust: Trust | None = None
) -> list[Problem]:
    """Every `python` action of a checked workflow against the function it names: registered, or of an allowed module.

    Imports the allowed modules the workflow names. To get lines and columns as well, load with `signatures=` instead.
    """
    trust = trust or Trust()
    settings = Settings(signatures=lambda name: find_function(name, functions, trust))
    reading = Reading(Source(document_of(workflow), file or f"<workflow {workflow.workflow}>"), settings)
    check(Flow(workflow), reading)
    return reading.problems


def check(flow: Flow, reading: Reading) -> None:
    """SIGNATURE, UNKNOWN_FUNCTION."""
    if reading.settings.signatures is None:
        return
    for action, step, supply in _python_steps(flow):
        function = _found(action, step, reading)
        if function is None:
            continue
        _process(action, step, function, reading)
        signature = signature_of(function)
        if signature is None or supply is None:
            continue
        if signature.whole:
            _whole(signature, supply, reading)
        else:
            _by_name(signature, supply, reading)


def _python_steps(flow: Flow) -> Iterator[tuple[Path, Step, Supply | None]]:
    for ref, node in flow.workflow.nodes.items():
        for at, task, given in tasks_of(ref, node):
            for number, step in enumerate(task.steps):
                if step.action.kind == "python":
                    place = (*at, "steps", number)
                    yield (*place, "action"), step, _supply(flow, ref, place, step, given)


def _supply(flow: Flow, ref: str, at: Path, step: Step, given: Any) -> Supply | None:
    """The inputs of the step; None if only a run can tell."""
    if step.input_mapping is not None:
        return _mapped((*at, "input_mapping"), step.input_mapping)
    if isinstance(given, str):
        return None
    undo = at[2] == "compensate"
    owner: Path = ("nodes", ref, "compensate") if undo else ("nodes", ref)
    if given is None:
        supply = Supply(owner)
        for name in COMPENSATING if undo else ():
            supply.add(name, owner, "$")
    else:
        supply = _mapped((*owner, "input_mapping"), given)
    for index, transition in () if undo else flow.into[ref]:
        for key in transition.mapping or ():
            supply.add(key, ("transitions", index, "mapping", key), "$")
    return supply


def _mapped(at: Path, mapping: Mapping[str, Any]) -> Supply:
    supply = Supply(at)
    for key, source in mapping.items():
        supply.add(key, (*at, key), source)
    return supply


def _written(source: Any) -> Any:
    """The value of a source that is a value; see 1.6."""
    if isinstance(source, str) and source.startswith("$"):
        return AT_RUN_TIME
    if isinstance(source, dict) and source.keys() == {"cel"}:
        return AT_RUN_TIME
    return source["literal"] if isinstance(source, dict) and source.keys() == {"literal"} else source


def _found(at: Path, step: Step, reading: Reading) -> Function | None:
    name = step.action.config.get("function")
    find = reading.settings.signatures
    if find is None or not isinstance(name, str):
        return None
    try:
        return find(name)
    except Exception as problem:  # importing runs the author's module, which may raise anything
        reading.problem_in("UNKNOWN_FUNCTION", (*at, "function"), str(problem) or repr(problem))
        return None


def _process(at: Path, step: Step, function: Function, reading: Reading) -> None:
    if not step.action.config.get("process"):
        return
    if inspect.iscoroutinefunction(function):
        message = f"`{name_of(function)}` is async, and a process of its own runs plain functions"
        reading.problem_in("SIGNATURE", (*at, "process"), message, "leave out `process`, or write it without async")
    elif not is_importable(function):
        message = f"`{name_of(function)}` cannot be sent to another process: it is no function of an importable module"
        reading.problem_in("SIGNATURE", (*at, "process"), message, "define it at the top level of a module")


def _by_name(signature: Signature, supply: Supply, reading: Reading) -> None:
    for name in signature.nameless:
        message = f"`{signature.shown}` takes `{name}` by position only, and inputs come by name"
        reading.problem_in("SIGNATURE", supply.at, message, "take the / out of its signature")
    unknown: list[str] = []
    for name, (place, value) in supply.inputs.items():
        parameter = signature.parameters.get(name)
        if parameter is not None:
            _fits(parameter, value, place, signature, reading)
        elif not signature.anything:
            unknown.append(name)
            hint = did_you_mean(name, signature.parameters) or _takes(signature)
            reading.problem_in("SIGNATURE", place, f"`{signature.shown}` has no parameter `{name}`", hint)
    for parameter in signature.parameters.values():
        missing = (
            parameter.required and parameter.name not in supply.inputs and parameter.name not in signature.nameless
        )
        if missing:
            hint = f"map it: `{parameter.name}: $.…`"
            message = f"`{signature.shown}` needs the input `{parameter.name}`"
            reading.problem_in("SIGNATURE", supply.at, message, hint)


def _takes(signature: Signature) -> str:
    names = ", ".join(f"`{name}`" for name in signature.parameters)
    return f"it takes {names}" if names else "it takes nothing"


def _fits(parameter: Parameter, value: Any, place: Path, signature: Signature, reading: Reading) -> None:
    if value is AT_RUN_TIME:
        return
    try:
        parameter.convert(value)
    except InputMisfit as problem:
        message = f"the input `{parameter.name}` of `{signature.shown}`: {problem}"
        reading.problem_in("SIGNATURE", place, message)


def _whole(signature: Signature, supply: Supply, reading: Reading) -> None:
    """Whether the function has a single parameter called `input`: then it gets the mapped object itself."""
    (parameter,) = signature.parameters.values()
    if parameter.type is Any:
        return
    fields = parameter.fields
    if fields is None:
        known = {name: value for name, (_, value) in supply.inputs.items() if value is not AT_RUN_TIME}
        if len(known) == len(supply.inputs) or _is_scalar(parameter):
            try:
                parameter.convert(dict.fromkeys(supply.inputs) | known)
            except InputMisfit as problem:
                message = f"`{signature.shown}` gets the whole input, an object, as `{parameter.name}`: {problem}"
                reading.problem_in(
                    "SIGNATURE", supply.at, message, "give the parameter another name to take one input by that name"
                )
        return
    for name in (name for name, required in fields.items() if required and name not in supply.inputs):
        message = f"`{parameter.name}` of `{signature.shown}` needs the input `{name}`"
        reading.problem_in("SIGNATURE", supply.at, message, f"map it: `{name}: $.…`")


def _is_scalar(parameter: Parameter) -> bool:
    return parameter.type in (str, int, float, bool)
