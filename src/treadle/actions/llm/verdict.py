"""From a provider's answer to the action's reply: complete or cut off, given or refused, JSON of the schema or not.

Owns the error kinds an author can route on: `LLM_REFUSED`, `LLM_CUT_OFF`, `SCHEMA`. Promises that half an answer is
never taken for a whole one.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec
from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace

from treadle.actions.llm.cost import cost_of
from treadle.actions.llm.question import Question
from treadle.actions.protocol import Done, Failed, failed
from treadle.expression.words import clip
from treadle.model.spending import report_in

Json = Any
RAW_MAX = 4_000
"""Characters of a rejected answer kept in the error: enough to see what went wrong, small enough for history."""
_FENCE = re.compile(r"\A\s*```(?:json)?\s*\n(.*?)\n?```\s*\Z", re.DOTALL)


class Exchange(Struct, frozen=True, kw_only=True):
    """An answer of a model, independent of the provider's protocol."""

    text: str
    structured: Json | UnsetType = UNSET
    """The input of the tool that was forced."""
    finish: str = "stop"
    """`stop`, `length`, `refused`, or `error`."""
    refusal: str | None = None
    model: str
    input_tokens: int = 0
    output_tokens: int = 0


def verdict(question: Question, exchange: Exchange) -> Done | Failed:
    """The reply of the action. It spends what its output says, also if the answer cannot be used."""
    output = _output(question, exchange)
    return replace(_judged(question, exchange, output), spent=report_in(output))


def _judged(question: Question, exchange: Exchange, output: dict[str, Json]) -> Done | Failed:
    if exchange.finish != "stop":
        return _unfinished(question, exchange, output)
    if question.mode == "text":
        return Done(output)
    try:
        value = msgspec.json.decode(_unfenced(exchange.text)) if exchange.structured is UNSET else exchange.structured
    except msgspec.DecodeError as problem:
        return _mismatch(exchange, output, f"the answer is not JSON: {problem}")
    complaint = question.validator.problem(value) if question.validator is not None else None
    if complaint is not None:
        return _mismatch(exchange, output, complaint)
    return Done({**output, "json": value})


def _output(question: Question, exchange: Exchange) -> dict[str, Json]:
    cost = cost_of(question.profile.price_of(question.model), exchange.input_tokens, exchange.output_tokens)
    usage = {"input_tokens": exchange.input_tokens, "output_tokens": exchange.output_tokens}
    output = {"text": exchange.text, "usage": usage, "model": exchange.model}
    return output if cost is None else {**output, "cost": cost}


def _unfinished(question: Question, exchange: Exchange, output: dict[str, Json]) -> Failed:
    details = _details(output)
    if exchange.finish == "refused":
        said = f": {clip(exchange.refusal, 500)}" if exchange.refusal else ""
        return failed(f"the model {exchange.model} refused to answer{said}", "LLM_REFUSED", details=details)
    if exchange.finish == "length":
        limit = "its limit" if question.max_tokens is None else f"max_tokens = {question.max_tokens}"
        return failed(f"the answer of {exchange.model} was cut off at {limit}", "LLM_CUT_OFF", details=details)
    return failed(f"the model {exchange.model} broke off its answer", retryable=True, details=details)


def _mismatch(exchange: Exchange, output: dict[str, Json], complaint: str) -> Failed:
    """Retryable, unlike other schema failures: the data is not the workflow's but one sample of a model's."""
    message = f"the answer of {exchange.model} does not fit response_schema: {complaint}"
    return failed(message, "SCHEMA", retryable=True, details=_details(output))


def _details(output: dict[str, Json]) -> dict[str, Json]:
    return {**output, "text": clip(output["text"], RAW_MAX)}


def _unfenced(text: str) -> str:
    """The text without a code fence: models that are asked for JSON in words often wrap it in one."""
    fenced = _FENCE.match(text)
    return fenced[1] if fenced else text
