"""From an action's config to a question: profile chosen, templates rendered, schema compiled.

Promises that only text the *author* wrote is a template: a prompt or message that comes from the step's input is data
and is sent as it is. Only the config (which may be a source) chooses the profile and the model; a key `model` in the
input chooses nothing.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec
from msgspec import Struct

from treadle.actions.failure import TaskFailure
from treadle.actions.llm.profiles import LlmSettings, Profile
from treadle.actions.protocol import Call
from treadle.actions.template import render
from treadle.expression.schemas import Validator, compile_schema
from treadle.expression.sources import compile_source

Json = Any
Mode = Literal["text", "native", "tool", "prompt"]
ROLES = ("system", "user", "assistant")


class Message(Struct, frozen=True):
    """One turn of the conversation."""

    role: str
    content: str


class Question(Struct, frozen=True, kw_only=True):
    """A question to a model, independent of the provider's protocol."""

    profile: Profile
    model: str
    messages: tuple[Message, ...]
    mode: Mode = "text"
    schema: Json = None
    validator: Validator | None = None
    temperature: float | None = None
    max_tokens: int | None = None
    stream: bool = False


def question_of(call: Call, settings: LlmSettings) -> Question:
    """The question an action asks; raises a `TreadleError` that says what is wrong with it. Blocks while templates are
    rendered."""
    profile = settings.profile(_told(call, "profile"))
    schema = call.config.get("response_schema")
    mode = _mode(profile, schema)
    temperature, max_tokens = _told(call, "temperature"), _told(call, "max_tokens")
    return Question(
        profile=profile,
        model=profile.model_for(_told(call, "model")),
        messages=(*_system(call, schema if mode == "prompt" else None), *_conversation(call)),
        mode=mode,
        schema=schema,
        validator=compile_schema(schema),
        temperature=profile.temperature if temperature is None else temperature,
        max_tokens=profile.max_tokens if max_tokens is None else max_tokens,
        stream=bool(_told(call, "stream")),
    )


def _told(call: Call, name: str) -> Json:
    return compile_source(call.config[name]).evaluate(call.view()) if name in call.config else None


def _mode(profile: Profile, schema: Json) -> Mode:
    if schema is None:
        return "text"
    if not _is_object(schema):
        return "prompt"  # response formats and tools take objects only
    if profile.structured != "auto":
        return profile.structured
    return "native" if profile.provider == "openai" else "tool"


def _is_object(schema: Json) -> bool:
    return isinstance(schema, dict) and schema.get("type") == "object" and "$ref" not in schema


def _system(call: Call, schema: Json) -> list[Message]:
    texts = [_rendered(call, call.config["system"], "system")] if call.config.get("system") else []
    if schema is not None:
        wanted = msgspec.json.encode(schema).decode()
        texts.append(f"Answer with JSON only, no other text. It must match this schema: {wanted}")
    return [Message("system", text) for text in texts]


def _conversation(call: Call) -> list[Message]:
    if "prompt" in call.config:
        return [Message("user", _rendered(call, call.config["prompt"], "prompt"))]
    if "messages" in call.config:
        written = call.config["messages"]
        if isinstance(written, list):
            return [_message(turn, call, f"messages[{index}]") for index, turn in enumerate(written)]
        return _given(compile_source(written).evaluate(call.view()))
    own = call.input if isinstance(call.input, dict) else {}
    if "messages" in own:
        return _given(own["messages"])
    return _given([{"role": "user", "content": own.get("prompt")}])


def _given(turns: Json) -> list[Message]:
    """Messages that are data: never templates."""
    if not isinstance(turns, list) or not turns:
        raise TaskFailure("`messages` must be a list of {role, content}: give it, or `prompt`", details={"got": turns})
    return [_message(turn, None, f"messages[{index}]") for index, turn in enumerate(turns)]


def _message(turn: Json, call: Call | None, place: str) -> Message:
    role = turn.get("role", "user") if isinstance(turn, dict) else None
    content = turn.get("content") if isinstance(turn, dict) else None
    if role not in ROLES or not isinstance(content, str):
        raise TaskFailure(f"{place} must be {{role: {' | '.join(ROLES)}, content: text}}; is there a `prompt`?")
    return Message(role, content if call is None else _rendered(call, content, place))


def _rendered(call: Call, template: Json, name: str) -> str:
    try:
        return render(str(template), call, name)
    except TaskFailure as problem:
        raise TaskFailure(f"{name}: {problem}", kind=problem.kind, details=problem.details) from None
