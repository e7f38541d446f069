"""Definitions from Python: the same language, typed and completed by an editor.

    wf = Flow("panel", output={"votes": "$.state.votes"})
    ask, judge, decide = wf.node("ask"), wf.node("judge", output={"state.v": "$.v"}), wf.node("decide")
    ask.to(judge, id="t1", spawn_count=3)
    votes = append("_branch.output.v", "state.votes")
    judge.to(decide, join=quorum(2, of="t1", merge=votes, on_early_complete="cancel"))
    workflow = wf.build()

A node may be given a function, plain or marked with `@task`; in the document it is a `python` action that names it:

    judge = wf.node("judge", judge_idea, input={"topic": "$.input.topic"}, output={"state.v": "$.verdict"})

Builds the author's document and nothing else: the one loader decides its meaning and its mistakes, so a builder can say
exactly what YAML can. Options are the fields of 1.1, 1.2 and 1.4 (a test compares the lists below with the tables).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Literal, TypedDict, Unpack

from treadle.language.called import compensating, node_fields
from treadle.language.library import Library
from treadle.language.load import Known, Loaded, load_value
from treadle.model.definition import Workflow
from treadle.tasks.decorator import name_of

Json = Any
Part = dict[str, Json]
"""A piece of a definition, as the functions of `parts` make them; a plain dict will do as well."""
Outcome = Literal["continue_all", "cancel_remaining"]


class FlowOptions(TypedDict, total=False):
    """Fields of a workflow (1.1)."""

    description: str
    tags: list[str]
    input_schema: Part
    state_schema: Part
    output_schema: Part
    start: str | list[str]
    output: Json
    timeout_ms: int
    on_timeout: Literal["human_gate", "fail", "cancel"]
    on_unhandled_failure: Literal["fail_run", "let_others_finish"]
    limits: Part
    compensation: Literal["on_failure", "on_failure_and_cancel", "off"]
    on_compensation_failure: Literal["halt", "continue"]
    budget: Part
    strict: bool
    concurrency: Part
    rate: Part
    debounce: Part
    batch: Part
    priority: Json
    on_deploy: Literal["keep", "migrate_if_safe"]
    canvas: Json


class NodeOptions(TypedDict, total=False):
    """Fields of a node (1.2)."""

    task: str | Part
    steps: list[Part]
    action: str | Part
    input: Mapping[str, Json] | Literal["upstream", "item"]
    output: Mapping[str, Json]
    retry: Part
    timeout_ms: int
    fan_out: Literal["all", "first_match"]
    on_no_match: Literal["error", "end"]
    join: str | Part
    terminates: bool | Literal["completed", "cancelled", "failed"]
    compensate: str | Part | Callable[..., Any]
    compensate_on_failure: bool
    queue: str | Part
    concurrency: Part
    mutex: str | Part
    entity: Part
    description: str


class TransitionOptions(TypedDict, total=False):
    """Fields of a transition (1.4)."""

    id: str
    priority: float
    on: Literal["success", "failure", "always"]
    condition: str | bool | Part
    spawn_count: int | Part
    foreach: Part
    sibling_group: str
    open: bool
    on_first_completion: Outcome
    on_first_start: Outcome
    loop: Part
    trigger: Part
    interrupting: bool
    cancels: Part
    mapping: Mapping[str, str]
    join: Part


class NodeHandle:
    """A node of a flow under construction."""

    def __init__(self, flow: Flow, ref: str) -> None:
        self.ref = ref
        self._flow = flow

    def to(self, target: NodeHandle | str, **options: Unpack[TransitionOptions]) -> NodeHandle:
        """Adds a transition and returns its target, so that `a.to(b).to(c)` reads as it runs."""
        end = target if isinstance(target, NodeHandle) else NodeHandle(self._flow, target)
        self._flow._transitions.append({"from": self.ref, "to": end.ref, **self._flow._plain(options)})
        return end

    def __str__(self) -> str:
        return self.ref


class Flow:
    """A workflow under construction. Nothing is checked before `load`, `build` or `document`."""

    def __init__(
        self, name: str, *, library: Library | str | Path | None = None, **options: Unpack[FlowOptions]
    ) -> None:
        self.name = name
        self.library = library
        """Shared tasks and actions its nodes may name, or the path of their file."""
        self.functions: dict[str, Callable[..., Any]] = {}
        """The functions its nodes call, by their names in the document. An engine takes them from here, because
        functions of a notebook or a script cannot be found in any other way."""
        self._options: Part = self._plain(options)
        self._nodes: dict[str, Part] = {}
        self._transitions: list[Part] = []
        self._named: dict[str, dict[str, Part]] = {}

    def node(
        self, ref: str, function: Callable[..., Any] | None = None, /, **options: Unpack[NodeOptions]
    ) -> NodeHandle:
        """Adds a node; with a function, one that calls it. Options given here override those of `@task`."""
        if ref in self._nodes:
            raise ValueError(f"the flow {self.name!r} already has a node {ref!r}")
        fields: Part = dict(options)
        if function is not None:
            if doubled := sorted(fields.keys() & {"task", "steps", "action"}):
                raise ValueError(f"the node {ref!r} has a function and `{doubled[0]}`: it runs exactly one task")
            self._name(function)
            fields = node_fields(function) | fields
        if callable(undo := fields.get("compensate")):
            self._name(undo)
            fields["compensate"] = compensating(function, undo)
        self._nodes[ref] = self._plain(fields)
        return NodeHandle(self, ref)

    def task(self, name: str, task: Part) -> str:
        """Defines a task for use by name, and returns the name."""
        self._named.setdefault("tasks", {})[name] = self._plain(task)
        return name

    def action(self, name: str, action: Part) -> str:
        """Defines an action for use by name, and returns the name."""
        self._named.setdefault("actions", {})[name] = self._plain(action)
        return name

    def source(self) -> Part:
        """The definition as an author would have written it."""
        return {
            "workflow": self.name,
            **self._options,
            **self._named,
            "nodes": self._nodes,
            "transitions": self._transitions,
        }

    def load(self, **known: Unpack[Known]) -> Loaded:
        """The definition, read and checked; inputs also against the signatures of the flow's own functions."""
        known.setdefault("signatures", self.functions.get)
        known.setdefault("library", self.library)
        return load_value(self.source(), f"<flow {self.name}>", **known)

    def build(self, **known: Unpack[Known]) -> Workflow:
        """The workflow. Raises DefinitionError with every problem."""
        return self.load(**known).require()

    def document(self, **known: Unpack[Known]) -> Part:
        """The canonical document. Raises DefinitionError with every problem."""
        loaded = self.load(**known)
        loaded.require()
        return loaded.document or {}

    def _name(self, function: Callable[..., Any]) -> str:
        """The function's name in the document; from now on the flow knows it by that name."""
        name = name_of(function)
        if self.functions.setdefault(name, function) is not function:
            raise ValueError(f"the flow {self.name!r} already has another function {name!r}; rename one of them")
        return name

    def _plain(self, value: Any) -> Any:
        """The value as plain JSON: handles become refs, functions their names, tuples lists."""
        if isinstance(value, NodeHandle):
            return value.ref
        if isinstance(value, Mapping):
            return {key: self._plain(part) for key, part in value.items()}
        if isinstance(value, Iterable) and not isinstance(value, str | bytes):
            return [self._plain(part) for part in value]
        return self._name(value) if callable(value) else value
