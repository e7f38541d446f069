"""Small words for the builder: joins, merges, triggers, actions, retries. Each returns a piece of a definition.

They only write fields; the loader checks them. A field without a function here is written as a dict, exactly as in
YAML.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from treadle.tasks.decorator import TaskOptions, name_of, options_of

Json = Any
Part = dict[str, Json]


def _given(**fields: Json) -> Part:
    return {key.rstrip("_"): value for key, value in fields.items() if value is not None}


# Sources


def cel(expr: str) -> Part:
    """A computed value: `cel("input.depth - 1")`."""
    return {"cel": expr}


def literal(value: Json) -> Part:
    """A value that is itself, also when it begins with `$`."""
    return {"literal": value}


def exists(path: str) -> Part:
    """A condition: the path has a value."""
    return {"type": "exists", "field": path}


# Joins


def join(strategy: Json, of: Any, merge: Part | None = None, **options: Json) -> Part:
    """A join on a sibling group: a transition id, a group name, or a node. Options are the fields of 1.7."""
    return _given(sibling_group=of, strategy=strategy, merge=merge, **options)


def every(of: Any, merge: Part | None = None, **options: Json) -> Part:
    """Waits for all branches."""
    return join("all", of, merge, **options)


def first(of: Any, merge: Part | None = None, **options: Json) -> Part:
    """Goes on with the first arrival."""
    return join("any", of, merge, **options)


def quorum(count: int, of: Any, merge: Part | None = None, **options: Json) -> Part:
    """Goes on with so many successful arrivals. The others run on and keep the run open, unless `on_early_complete`
    says otherwise (`"cancel"`)."""
    return join({"m_of_n": count}, of, merge, **options)


def percent(share: int, of: Any, merge: Part | None = None, **options: Json) -> Part:
    """Goes on with so many percent of the branches."""
    return join({"percent": share}, of, merge, **options)


def computed(expr: str, of: Any, merge: Part | None = None, **options: Json) -> Part:
    """Goes on when an expression over arrived, succeeded, failed, live, total, results and state holds."""
    return join(cel(expr), of, merge, **options)


def merge(strategy: str, source: str, target: str, *, streaming: bool = False) -> Part:
    """The merge: how the branches' results become one value."""
    return _given(source=source, target=target, strategy=strategy, streaming=streaming or None)


def append(source: str, target: str, *, streaming: bool = False) -> Part:
    """A list by branch index."""
    return merge("append", source, target, streaming=streaming)


def vote(source: str, target: str) -> Part:
    """The most frequent value, with counts."""
    return merge("vote", source, target)


# Fan-out and triggers


def foreach(collection: str, item_var: str | None = None, **options: Json) -> Part:
    """One token per item."""
    return _given(collection=collection, item_var=item_var, **options)


def from_context(path: str) -> Part:
    """A `spawn_count` found at run time."""
    return {"from_context": path}


def on_signal(name: str, key: Json = None, buffer: Json = None) -> Part:
    """A trigger: a signal."""
    return _given(signal=name, key=key, buffer=buffer)


def after_ms(ms: int) -> Part:
    """A trigger: a time after the token's arrival."""
    return {"after_ms": ms}


def when(condition: Json) -> Part:
    """A trigger: a condition becoming true."""
    return {"when": condition}


def loop(max_iterations: int) -> Part:
    """Bounds a cycle."""
    return {"max_iterations": max_iterations}


def cancels(nodes: Json = None, groups: Json = None, join: str | None = None) -> Part:
    """The nodes and groups a transition cancels when it fires."""
    return _given(nodes=nodes, groups=groups, join=join)


# Tasks


def retry(max_attempts: int, backoff: str = "none", **options: Json) -> Part:
    """A retry policy: `initial_delay_ms`, `max_delay_ms`, `jitter` as options."""
    return _given(max_attempts=max_attempts, backoff=backoff, **options)


def action(kind: str, *, timeout_ms: int | None = None, retry_policy: Part | None = None, **config: Json) -> Part:
    """An action of any kind; `timeout_ms` and `retry_policy` are those of its execution."""
    execution = _given(timeout_ms=timeout_ms, retry_policy=retry_policy)
    return {"kind": kind, **config} | ({"execution": execution} if execution else {})


def python(function: str | Callable[..., Any], *, process: bool | None = None, **execution: Json) -> Part:
    """A Python function, by reference or by name; the options of its `@task` apply to the action.

    A function is left as it is: the flow it becomes part of gives it a name, and brings it to the engine.
    """
    if isinstance(function, str):
        return action("python", function=function, **_given(process=process), **execution)
    noted = options_of(function) or TaskOptions()
    if noted.queue is not None or noted.compensate is not None:
        raise ValueError(f"{name_of(function)} has a queue or compensation, which only a node can have")
    said = _given(timeout_ms=noted.timeout_ms, retry_policy=noted.retry)
    return action("python", **called(function, process), **{**said, **execution})


def work(name: str, config: Json = None, **execution: Json) -> Part:
    """Work for workers in any language, which claim it from the node's queue over HTTP."""
    return action("work", name=name, **_given(config=config), **execution)


def called(function: Callable[..., Any], process: bool | None = None) -> Part:
    """The config of the action that calls a function."""
    noted = options_of(function)
    if process is None and noted is not None and noted.process:
        process = True
    return _given(function=function, process=process)


def step(action: Json, ref: str | None = None, **options: Json) -> Part:
    """One step of a task, an action or a function: `input`, `output`, `when`, `on_failure` as options."""
    return _given(ref=ref, action=python(action) if callable(action) else action, **options)


def task(*steps: Part, **options: Json) -> Part:
    """A task: `input_schema`, `output_schema`, `retry`, `timeout_ms` as options."""
    return {"steps": list(steps), **options}


def compensation(action: Json, input: Mapping[str, Json] | None = None, **options: Json) -> Part:
    """The compensation: how a completed visit is undone."""
    return _given(action=action, input=input, **options)
