"""The rules of an ingress hook, compiled: what a delivery is to start or to signal (5.4).

Owns their meaning, and nothing that waits: a delivery goes in, what to do comes out. Promises to evaluate mappings and
conditions as a workflow does, over `{body, headers, query, delivery}`: a missing path is null, a condition that cannot
be evaluated does not hold.
"""

from __future__ import annotations

import hashlib
from typing import Any

from msgspec import Struct

from treadle.errors import EvaluationError
from treadle.expression.conditions import CompiledCondition, compile_condition
from treadle.expression.sources import CompiledMapping, CompiledSource, compile_mapping, compile_source
from treadle.expression.view import DictView
from treadle.model.references import EntityRef

Json = Any
ROOTS = ("body", "headers", "query", "delivery")
KEY_MAX = 120
"""Characters of a key that are kept as they are; a longer one is kept as its hash."""


class SignalRule(Struct, frozen=True, omit_defaults=True):
    """The signal that a delivery becomes."""

    name: str
    key: Json = None


class EntityRule(Struct, frozen=True, omit_defaults=True):
    """The entity that a delivery is about."""

    type: str
    id: Json
    name: Json = None
    attributes: Json = None


class Hook(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An ingress hook, with rules in canonical form. Its secret is kept sealed."""

    slug: str
    source: str
    sealed: str | None = None
    workflow: str | None = None
    earlier: tuple[str, ...] = ()
    """Workflows it has started before: a key that was used for one of them is still known."""
    signal: SignalRule | None = None
    input: Json = None
    key: Json = None
    entity: EntityRule | None = None
    when: Json = None
    respond: str = "accepted"
    created: int = 0
    changed: int = 0


class HookWish(Struct, frozen=True):
    """What a delivery asks for."""

    input: Json
    key: str | None = None
    signal_key: Json = None
    entity: EntityRef | None = None


class CompiledHook:
    """See the module's docstring."""

    def __init__(self, hook: Hook) -> None:
        self._when: CompiledCondition | None = compile_condition(hook.when, ROOTS) if hook.when is not None else None
        self._input = _compiled(hook.input)
        self._key = _source(hook.key)
        self._signal_key = _source(hook.signal.key) if hook.signal is not None else None
        self._entity = hook.entity
        if hook.entity is not None:
            self._entity_id = compile_source(hook.entity.id, ROOTS)
            self._entity_name = _source(hook.entity.name)
            self._attributes = _compiled(hook.entity.attributes)

    def wanted(self, seen: dict[str, Json]) -> HookWish | None:
        """What to do about a delivery `{body, headers, query, delivery}`; None if `when` does not hold. Raises
        EvaluationError for a mapping that has no value."""
        view = DictView(seen)
        if self._when is not None and self._when(view) is not True:
            return None
        return HookWish(
            input=self._input.evaluate(view) if self._input is not None else _whole(seen["body"]),
            key=_name("key", self._key.evaluate(view)) if self._key is not None else None,
            signal_key=self._signal_key.evaluate(view) if self._signal_key is not None else None,
            entity=self._about(view),
        )

    def _about(self, view: DictView) -> EntityRef | None:
        rule = self._entity
        if rule is None:
            return None
        name = self._entity_name.evaluate(view) if self._entity_name is not None else None
        attributes = self._attributes.evaluate(view) if self._attributes is not None else None
        id = _name("entity.id", self._entity_id.evaluate(view))
        return EntityRef(id, rule.type, None if name is None else _name("entity.name", name), attributes)


def path_problem(hook: Hook) -> str | None:
    """What is wrong with a name that reads like a path and is none: every delivery would have the same."""
    for place, name in (("key", hook.key), ("entity.id", hook.entity.id if hook.entity is not None else None)):
        if isinstance(name, str) and name.startswith(tuple(f"{root}." for root in ROOTS)):
            return f"{place}: {name!r} is a text, the same for every delivery; a path begins with `$`: $.{name}"
    return None


def run_key(slug: str, key: str | None, delivery: int) -> str:
    """The key of the run that a delivery starts: the delivery's own key, counted per hook, else the delivery itself."""
    if key is None:
        return f"hook:{slug}#{delivery}"
    plain = key if len(key) <= KEY_MAX and key.isprintable() else hashlib.sha256(key.encode()).hexdigest()
    return f"hook:{slug}:{plain}"


def _whole(body: Json) -> Json:
    """The input of a run whose hook maps none: the body, or an object around one that is none."""
    return body if isinstance(body, dict) else {"body": body}


def _compiled(given: Json) -> CompiledSource | CompiledMapping | None:
    if given is None:
        return None
    return compile_mapping(given, ROOTS) if isinstance(given, dict) and given.keys() != {"cel"} else _source(given)


def _source(given: Json) -> CompiledSource | None:
    return compile_source(given, ROOTS) if given is not None else None


def _name(what: str, value: Json) -> str:
    """A value as a name. A number is as good as its digits; nothing, truth and structures name nothing."""
    if isinstance(value, str) and value:
        return value
    if isinstance(value, int | float) and not isinstance(value, bool):
        return f"{value:g}" if isinstance(value, float) and value.is_integer() else str(value)
    raise EvaluationError(f"{what} is {_kind(value)}; it must be a text or a number")


def _kind(value: Json) -> str:
    if value is None:
        return "not there"
    return {str: "empty", bool: "true or false", dict: "an object", list: "an array"}.get(type(value), "a number")
