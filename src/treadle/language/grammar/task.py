"""Tasks and steps, named or written in place, and compensation (1.3, 2.10)."""

from __future__ import annotations

from typing import Any

import msgspec

from treadle.language.compounds import Forms, MapOf
from treadle.language.condition import ConditionValue
from treadle.language.grammar.action import ACTION
from treadle.language.grammar.retry import RETRY, TIMEOUT
from treadle.language.phrases import JsonSchemaValue, MappingValue, TargetMapping
from treadle.language.reading import Place, Reading
from treadle.language.record import Field, OneOf, Record
from treadle.language.shapes import BAD, Book, Choice, Json, Schema, Shape, Text
from treadle.model import definition as d

ONLY_STEP = "main"
"""The ref of the one step that `action:` stands for."""

INPUT_MAPPING = Field("input_mapping", MappingValue(), "Target key → source", also=("input",))
_VERB = Choice("continue", "skip", "succeed", "fail")


class Named(Shape):
    """A name that stands for something defined under `section` here or in the library."""

    def __init__(self, section: str, what: str, shape: Shape) -> None:
        self.section, self.what, self.shape = section, what, shape
        self.wants = f"the name of {what}"

    def read(self, value: Json, at: Place, reading: Reading) -> Any:
        result = reading.named(self.section, value, self.shape.read)
        if result is None:
            what = self.what.split(" ", 1)[1]
            reading.unknown("UNKNOWN_TASK", at, f"{what} named", value, reading.known_names(self.section))
            return BAD
        reading.note(Place((self.section, value), at.canonical))
        return result

    def describe(self) -> Schema:
        return {
            "type": "string",
            "minLength": 1,
            "description": f"The name of {self.what} under `{self.section}`.",
        }


class Section(MapOf):
    """`actions` or `tasks` of a document. Each is read once, however often it is used."""

    def __init__(self, section: str, value: Shape) -> None:
        super().__init__(value)
        self.section = section

    def read(self, value: Json, at: Place, reading: Reading) -> Any:
        if not isinstance(value, dict):
            return self.wrong(value, at, reading)
        return {name: reading.named(self.section, name, self.value.read) for name in value}


ACTION_OR_NAME = Forms(
    "an action, or the name of one",
    text=Named("actions", "an action", ACTION),
    map=ACTION,
    writes=lambda _: ACTION,
)

_WHEN = Record(
    "When",
    "Decides what becomes of a step.",
    (
        Field("if", ConditionValue(), "The condition", required=True),
        Field("then", _VERB, "When it holds", default="continue"),
        Field("else", _VERB, "When it does not", default="skip"),
    ),
)


class WhenShape(Shape):
    """A condition, or `{if, then, else}`."""

    wants = "a condition or {if, then, else}"

    def read(self, value: Json, at: Place, reading: Reading) -> Any:
        if isinstance(value, dict) and "if" in value:
            return _WHEN.read(value, at, reading)
        return ConditionValue().read(value, at, reading)

    def schema(self, book: Book) -> Schema:
        return {"anyOf": [ConditionValue().schema(book), _WHEN.schema(book)]}


STEP = Record(
    "Step",
    "One action of a task.",
    (
        Field("ref", Text("a name"), "Name within the task; `step1`, `step2`… unless given"),
        Field("action", ACTION_OR_NAME, "What it does: an action, or the name of one", required=True),
        INPUT_MAPPING,
        Field(
            "output_mapping",
            TargetMapping(),
            "Target in the task's context ← source in the action's output",
            ("output",),
        ),
        Field("when", WhenShape(), "Whether it runs", also=("condition",)),
        Field(
            "on_failure",
            Choice("abort", "retry", "continue"),
            "What its failure does to the task",
            default="abort",
        ),
    ),
    d.Step,
    make=dict,
)


class StepList(Shape):
    """A task's steps in order; refs are filled in and must differ."""

    wants = "a list of steps"

    def read(self, value: Json, at: Place, reading: Reading) -> Any:
        if not isinstance(value, list) or not value:
            return self.wrong(value, at, reading)
        steps: list[d.Step] = []
        for index, part in enumerate(value):
            fields = STEP.read(part, at.item(index), reading)
            if fields is not BAD:
                step = d.Step(**{"ref": f"step{index + 1}", **fields})
                if any(other.ref == step.ref for other in steps):
                    reading.problem("BAD_VALUE", at.item(index).key("ref"), f"two steps are called `{step.ref}`")
                steps.append(step)
        return steps or BAD

    def write(self, value: Any) -> Json:
        return [STEP.write(step) for step in value]

    def schema(self, book: Book) -> Schema:
        return {"type": "array", "minItems": 1, "items": STEP.schema(book)}


_STEPS = StepList()

TASK = Record(
    "Task",
    "Steps run in order by one worker.",
    (
        Field("name", Text("a name"), "For people; a named task knows its own"),
        Field("steps", _STEPS, "The steps, in order", required=True),
        Field("input_schema", JsonSchemaValue(), "JSON Schema of the task's input"),
        Field("output_schema", JsonSchemaValue(), "JSON Schema of the task's output"),
        Field("retry", RETRY, "Start over when a step with `on_failure: retry` fails"),
        Field("timeout_ms", TIMEOUT, "Deadline of one attempt"),
    ),
    d.Task,
)


class NamedTask(Named):
    """A task by its name, which it keeps."""

    def read(self, value: Json, at: Place, reading: Reading) -> Any:
        task = super().read(value, at, reading)
        return task if task is BAD or task.name is not None else msgspec.structs.replace(task, name=value)


class SoleAction(Shape):
    """`action:` in place of a task: a task of one step."""

    wants = ACTION_OR_NAME.wants

    def read(self, value: Json, at: Place, reading: Reading) -> Any:
        place = Place(at.written, (*at.canonical[:-1], "task", "steps", 0, "action"))
        reading.note(place)
        action = ACTION_OR_NAME.read(value, place, reading)
        return BAD if action is BAD else d.Task(steps=[d.Step(ref=ONLY_STEP, action=action)])

    def schema(self, book: Book) -> Schema:
        return ACTION_OR_NAME.schema(book)


class SoleSteps(Shape):
    """`steps:` in place of a task."""

    wants = _STEPS.wants

    def read(self, value: Json, at: Place, reading: Reading) -> Any:
        place = Place(at.written, (*at.canonical[:-1], "task", "steps"))
        reading.note(place)
        steps = _STEPS.read(value, place, reading)
        return BAD if steps is BAD else d.Task(steps=steps)

    def schema(self, book: Book) -> Schema:
        return _STEPS.schema(book)


TASK_FIELDS = (
    Field(
        "task",
        Forms(
            "a task, or the name of one",
            text=NamedTask("tasks", "a task", TASK),
            map=TASK,
            writes=lambda _: TASK,
        ),
        "What it runs: the name of a task, or a task",
    ),
    Field("steps", SoleSteps(), "What it runs, as steps"),
    Field("action", SoleAction(), "What it runs, as a single action"),
)
ONE_TASK = OneOf(("task", "steps", "action"))


def task_of(values: dict[str, Any]) -> dict[str, Any]:
    """Fields with `steps` and `action` folded into `task`."""
    spellings = ("steps", "action")
    task = next((values[name] for name in ("task", *spellings) if name in values), None)
    rest = {name: value for name, value in values.items() if name not in ("task", *spellings)}
    return rest if task is None else {"task": task, **rest}


_COMPENSATION = Record(
    "Compensation",
    "How a completed visit is undone. Sees that visit's `input` and `output`.",
    (
        *TASK_FIELDS,
        INPUT_MAPPING,
        Field("retry", RETRY, "Retry of the compensation"),
        Field("timeout_ms", TIMEOUT, "Deadline of one attempt"),
    ),
    d.Compensation,
    make=lambda values: d.Compensation(**task_of(values)),
    one_of=(OneOf(("task", "steps", "action"), required=True),),
    hints={
        "output_mapping": "a compensation writes nothing back",
        "output": "a compensation writes nothing back",
    },
)


class CompensationShape(Shape):
    """A compensation, or the name of the task that undoes the visit."""

    wants = "a map with a task, or the name of a task"

    def read(self, value: Json, at: Place, reading: Reading) -> Any:
        if isinstance(value, str):
            place = Place(at.written, (*at.canonical, "task"))
            task = TASK_FIELDS[0].shape.read(value, place, reading)
            return BAD if task is BAD else d.Compensation(task=task)
        return _COMPENSATION.read(value, at, reading)

    def write(self, value: Any) -> Json:
        return _COMPENSATION.write(value)

    def schema(self, book: Book) -> Schema:
        return {"anyOf": [{"type": "string"}, _COMPENSATION.schema(book)]}


COMPENSATION = CompensationShape()
