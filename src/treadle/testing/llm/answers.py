"""Answers of the offline language model: one `Answer` per question, scripted or made up from the schema.

Owns the form between a script and the protocols. Promises that the same question always gets the same answer, so an
example that runs offline shows the same every time. Must not know HTTP or any provider's protocol.
"""

from __future__ import annotations

import asyncio
import re
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

Json = Any


class Asked(Struct, frozen=True, kw_only=True):
    """One question as it arrived, whatever the protocol."""

    api: str
    """`openai` or `anthropic`."""
    model: str
    text: str
    """System prompt and all messages, joined: the text that rules search."""
    schema: Json = None
    """The JSON Schema the answer was asked to have."""
    stream: bool = False
    key: str | None = None
    """The API key that came along."""
    body: dict[str, Json] = {}
    headers: dict[str, str] = {}


class Answer(Struct, frozen=True, kw_only=True):
    """The answer to give, or the failure to show."""

    text: str | None = None
    json: Json = None
    """Given as text, or as the input of the tool that was forced."""
    status: int = 200
    error: str = "scripted failure"
    error_code: str | None = None
    headers: dict[str, str] = {}
    finish: str = "stop"
    """`stop`, `length` or `refusal`."""
    raw: str | None = None
    """The whole body, unchanged: for answers that are not even JSON."""
    break_after: int | None = None
    """Streaming: cut the connection after this many pieces."""
    input_tokens: int | None = None
    output_tokens: int | None = None
    hold: asyncio.Event | None = None
    """The answer stops until this event is set: a slow model without a clock."""
    hold_after: int = 0
    """Streaming: pieces that are sent before the hold."""

    @property
    def said(self) -> str:
        """The text on the wire."""
        return self.text if self.text is not None else msgspec.json.encode(self.json).decode()

    def usage(self, asked: Asked) -> tuple[int, int]:
        """Tokens in and out; counted as words if the script does not say."""
        words_in, words_out = len(asked.text.split()), len(self.said.split())
        return (
            words_in if self.input_tokens is None else self.input_tokens,
            words_out if self.output_tokens is None else self.output_tokens,
        )


Script = Callable[[Asked], Answer]


class Rule(Struct, frozen=True, forbid_unknown_fields=True):
    """One entry of a script file: an answer, and the questions it is for."""

    when: str = ""
    """A regular expression looked for in system prompt and messages; empty matches all."""
    text: str | None = None
    json: Json = None
    status: int = 200
    retry_after: int | None = None
    times: int | None = None
    """Used this many times, then skipped: `{status: 429, times: 1}` fails once."""


def scripted(rules: list[Rule]) -> Script:
    """The answer of the first rule that matches; if none does, the answer of `made_up`."""
    left: dict[int, int] = {index: rule.times for index, rule in enumerate(rules) if rule.times is not None}

    def script(asked: Asked) -> Answer:
        for index, rule in enumerate(rules):
            if not re.search(rule.when, asked.text) or left.get(index) == 0:
                continue
            if index in left:
                left[index] -= 1
            headers = {} if rule.retry_after is None else {"retry-after": str(rule.retry_after)}
            if rule.status == 200 and rule.text is None and rule.json is None:
                return made_up(asked)
            return Answer(text=rule.text, json=rule.json, status=rule.status, headers=headers)
        return made_up(asked)

    return script


def read_script(file: Path) -> Script:
    """A YAML file with a list of rules."""
    return scripted(msgspec.yaml.decode(file.read_bytes(), type=list[Rule]))


def made_up(asked: Asked) -> Answer:
    """An answer of the requested shape; it depends on the question alone."""
    seed = zlib.crc32(asked.text.encode())
    if asked.schema is None:
        return Answer(text=f"An answer from {asked.model} ({seed % 1000}).")
    return Answer(json=sample(asked.schema, seed))


def sample(schema: Json, seed: int) -> Json:
    """A value of a plain schema: enum, const, object, array, number, text. No references."""
    if not isinstance(schema, dict):
        return None
    if "const" in schema:
        return schema["const"]
    if schema.get("enum"):
        return schema["enum"][seed % len(schema["enum"])]
    if schema.get("anyOf"):
        return sample(schema["anyOf"][seed % len(schema["anyOf"])], seed)
    kind = schema.get("type")
    if kind == "object" or "properties" in schema:
        return {name: sample(part, zlib.crc32(name.encode(), seed)) for name, part in schema["properties"].items()}
    if kind == "array":
        return [sample(schema.get("items", {}), seed + index) for index in range(max(1, schema.get("minItems", 1)))]
    if kind in ("integer", "number"):
        low = schema.get("minimum", 0)
        return low + seed % (int(schema.get("maximum", low + 10)) - int(low) + 1)
    return {"boolean": seed % 2 == 0, "null": None}.get(str(kind), f"answer {seed % 1000}")
