"""The kinds of action: one table of config keys each (1.3).

Values mapped at run time come from the step's input, so keys for data (`prompt`, `content`, `ms`) may be absent here.
Keys that say *which thing to do* (`url`, `function`, `argv`) are marked as needed. Values may be sources where a run
decides.
"""

from __future__ import annotations

from typing import Any

from treadle.language.compounds import Forms, ListOf, MapOf
from treadle.language.condition import ConditionValue
from treadle.language.grammar.people import ASSIGN, ESCALATE, REMINDERS
from treadle.language.grammar.retry import TIMEOUT
from treadle.language.phrases import JsonSchemaValue, MappingValue, SourceValue, is_computed
from treadle.language.reading import Place, Reading
from treadle.language.record import Field, OneOf, Record
from treadle.language.shapes import (
    ANYTHING,
    AnyText,
    Book,
    Choice,
    Flag,
    Json,
    Milliseconds,
    Number,
    Schema,
    Shape,
    Text,
    WebAddress,
    Whole,
)

SUSPENDING = frozenset({"human", "wait", "signal", "workflow_call", "webhook"})
"""Kinds whose token waits: each must be the only step of its task."""


CONFIG_ONLY = frozenset({"function", "values", "condition", "template"})
"""Needed keys that say what the action *is*: they are compiled or looked up before any input is known, and never taken
from it."""


class Sourced(Shape):
    """A value of some shape, or a source that gives it at run time; where it may be one, also `{secret: NAME}`."""

    def __init__(self, inner: Shape, *, secret: bool = False) -> None:
        self.inner = inner
        self.secret = secret
        self.wants = inner.wants

    def read(self, value: Json, at: Place, reading: Reading) -> Any:
        if is_computed(value) or (isinstance(value, str) and value.startswith("$")):
            return SourceValue().read(value, at, reading)
        if self.secret and isinstance(value, dict) and set(value) == {"secret"}:
            return value
        return self.inner.read(value, at, reading)

    def schema(self, book: Book) -> Schema:
        path = {"type": "string", "pattern": r"^\$"}
        computed = {"type": "object", "properties": {"cel": {"type": "string"}}, "required": ["cel"]}
        forms = [self.inner.schema(book), path, computed | {"additionalProperties": False}]
        if self.secret:
            named = {"type": "object", "properties": {"secret": {"type": "string"}}, "required": ["secret"]}
            forms.append(named | {"additionalProperties": False})
        return {"anyOf": forms}


def _config(kind: str, doc: str, *fields: Field, one_of: tuple[str, ...] = ()) -> Record:
    record = "".join(part.capitalize() for part in kind.split("_")) + "Action"
    return Record(record, doc, fields, one_of=(OneOf(one_of),) if one_of else ())


def _needs(name: str, shape: Shape, doc: str) -> Field:
    return Field(name, shape, doc, required=True)


_TEXT = Text()
_SOURCE = SourceValue()
_NAME = Sourced(Text("a name"))
_DELAY = Sourced(Milliseconds(0, code="BAD_VALUE"))
_ARGUMENT = Sourced(Forms("text or a number", text=AnyText(), whole=ANYTHING, number=ANYTHING))
_BUFFER = Forms("`none` or a number of milliseconds", text=Choice("none"), whole=Milliseconds(0, code="BAD_VALUE"))
_ON_EXPIRY = Forms(
    "`fail` or {default: answer}",
    text=Choice("fail"),
    map=Record("DefaultAnswer", "Answer for the person.", (_needs("default", ANYTHING, "The answer"),)),
)
_MOCK_ERROR = Record(
    "MockError",
    "A failure on demand.",
    (
        Field("kind", Text(), "Error kind", default="TASK_FAILED"),
        Field("message", AnyText(), "What it says"),
        Field("retryable", Flag(), "Whether retries apply"),
    ),
)

KINDS: dict[str, Record] = {
    "python": _config(
        "python",
        "Calls a registered or importable function.",
        _needs(
            "function",
            Text("a function: `name` or `module:name`"),
            "Name of a registered function, or `module:name`",
        ),
        Field("process", Flag(), "Run in a process of its own, for CPU work"),
    ),
    "http": _config(
        "http",
        "An HTTP request; output {status, headers, body}.",
        _needs("url", Sourced(WebAddress(), secret=True), "Address"),
        Field("method", Text("an HTTP method", "[A-Za-z]{3,16}"), "Method", default="GET"),
        Field("headers", Sourced(MapOf(ANYTHING)), "Name → source or {secret: NAME}"),
        Field("query", Sourced(MapOf(ANYTHING)), "Parameter → source; a list repeats it"),
        Field("body", ANYTHING, "Request body; JSON unless it is text", keeps_null=True),
        Field(
            "expect_status",
            Forms("a status or a list of them", whole=Whole(100, 599), list=ListOf(Whole(100, 599))),
            "Statuses that count as success; 2xx unless given",
        ),
        Field("max_bytes", Whole(1), "Largest answer that is read"),
    ),
    "shell": _config(
        "shell",
        "A command as a list of arguments, never a shell string; off unless the operator enables it.",
        _needs("argv", Sourced(ListOf(_ARGUMENT, least=1)), "Program and arguments, each a source"),
        Field("cwd", Sourced(_TEXT), "Working directory"),
        Field("env", Sourced(MapOf(ANYTHING)), "Variable → source or {secret: NAME}"),
        Field("stdin", ANYTHING, "Text given to the program"),
        Field("ok_exit_codes", ListOf(Whole(0, 255)), "Exit codes that count as success", default=[0]),
    ),
    "llm": _config(
        "llm",
        "A chat completion; output {text, json?, usage, cost?}.",
        Field("profile", _TEXT, "Provider profile of the operator"),
        Field("model", _TEXT, "Model, if not the profile's"),
        Field("system", AnyText(), "System prompt"),
        Field("prompt", AnyText(), "Prompt; a template over the step's input"),
        Field("messages", Sourced(ListOf(ANYTHING)), "The whole conversation instead of `prompt`"),
        Field("response_schema", JsonSchemaValue(), "The answer must be JSON of this schema"),
        Field("temperature", Number(0, 2), "Sampling temperature"),
        Field("max_tokens", Whole(1), "Longest answer"),
        Field("stream", Flag(), "Publish the text as it arrives"),
        one_of=("prompt", "messages"),
    ),
    "mcp": _config(
        "mcp",
        "A tool call on an MCP server.",
        _needs("server", _TEXT, "Server, as the operator named it"),
        _needs("tool", _TEXT, "Tool"),
        Field("arguments", Sourced(MapOf(ANYTHING)), "Arguments"),
    ),
    "template": _config(
        "template",
        "Renders a text template; output {text}.",
        _needs("template", AnyText(), "The template, in Jinja's notation"),
    ),
    "set": _config("set", "Writes values; they are its output.", _needs("values", MappingValue(), "Key → source")),
    "assert": _config(
        "assert",
        "Fails, as a business failure, when its condition is false.",
        _needs("condition", ConditionValue(), "What must hold"),
        Field("message", AnyText(), "What the failure says"),
    ),
    "mock": _config(
        "mock",
        "Output, delay or failure on demand, for tests.",
        Field("output", ANYTHING, "Its output", keeps_null=True),
        Field("error", _MOCK_ERROR, "Fail with this"),
        Field("after_ms", _DELAY, "How long it takes"),
        one_of=("output", "error"),
    ),
    "artifact_write": _config(
        "artifact_write",
        "Stores a named blob of the run; output is a reference.",
        _needs("name", _NAME, "Name of the artifact"),
        Field("content_type", _TEXT, "Media type"),
        Field("content", ANYTHING, "What to store, if it does not come from the step's input"),
    ),
    "artifact_read": _config(
        "artifact_read", "Reads a named blob of the run.", _needs("name", _NAME, "Name of the artifact")
    ),
    "emit": _config(
        "emit",
        "An event for the run's stream and outgoing webhooks.",
        _needs("type", _NAME, "Type; the event is `custom.<type>`"),
        Field("data", _SOURCE, "What it carries"),
    ),
    "send": _config(
        "send",
        "A signal to this or another run (A9).",
        _needs("signal", _NAME, "Signal name"),
        Field("key", _SOURCE, "Correlation key"),
        Field("data", _SOURCE, "What it carries"),
        Field("run", _SOURCE, "Another run's id; this run unless given"),
    ),
    "cancel_group": _config(
        "cancel_group",
        "Cancels a sibling group of the token's lineage (A6).",
        _needs("group", _NAME, "The group"),
        Field("join", Choice("fire", "drop"), "What its join does", default="fire"),
    ),
    "add_siblings": _config(
        "add_siblings",
        "Adds branches to an open group; `items` or `count` come from the step's input.",
        _needs("group", _NAME, "The group"),
        Field("items", _SOURCE, "Items of the new branches"),
        Field("count", _SOURCE, "Number of new branches"),
    ),
    "close_group": _config("close_group", "Ends the growth of an open group.", _needs("group", _NAME, "The group")),
    "human": _config(
        "human",
        "Waits for a person; output is the answer.",
        Field("title", AnyText(), "What the person sees first"),
        Field("description", AnyText(), "What the person reads below the title, in Markdown"),
        Field("form", JsonSchemaValue(), "JSON Schema of the answer; x-order, x-widget and x-help say how it is shown"),
        Field("assign", Sourced(ASSIGN), "Who may answer; anybody unless given"),
        Field(
            "on_quorum_failed",
            Choice("fail", "first"),
            "When people cannot agree any more: fail with QUORUM_UNREACHABLE, or take the first answer",
        ),
        Field("due_ms", Sourced(TIMEOUT), "When it expires"),
        Field(
            "remind_ms",
            Sourced(REMINDERS),
            "Remind every so many ms; a list: once at each of these moments after it was opened",
        ),
        Field("escalate", Sourced(ESCALATE), "Whom to ask, too, when nobody has answered for long"),
        Field("on_expiry", _ON_EXPIRY, "What an unanswered task does", default="fail"),
    ),
    "wait": _config(
        "wait",
        "Waits for a time.",
        Field("ms", _DELAY, "How long"),
        Field("until", Sourced(Text("a time such as 2030-01-31T12:00:00Z")), "Until when"),
        one_of=("ms", "until"),
    ),
    "signal": _config(
        "signal",
        "Waits for a signal; output is its data.",
        _needs("name", _NAME, "Signal name"),
        Field("key", _SOURCE, "Correlation key"),
        Field("buffer", _BUFFER, "How old a signal is accepted: any unless given, `none`, or at most so many ms"),
    ),
    "workflow_call": _config(
        "workflow_call",
        "Runs another workflow; output is the child's output.",
        _needs("workflow", _NAME, "Its name"),
        Field("version", Whole(1), "Its version; the newest unless given"),
        Field("on_failure", Choice("propagate", "catch"), "What the child's failure does", default="propagate"),
        Field("inherit_artifacts", Flag(), "The child sees this run's artifacts", default=False),
    ),
    "work": _config(
        "work",
        "Work for a worker in any language, which claims it from the node's queue over HTTP; output is what it gives.",
        _needs("name", Text("a name"), "What to do; the worker knows it by this name"),
        Field("config", ANYTHING, "Handed to the worker as it is"),
    ),
    "webhook": _config(
        "webhook",
        "A signed POST to an external worker, then waits for its callback.",
        _needs("url", Sourced(WebAddress()), "Address of the worker"),
        Field("secret", _TEXT, "Name of the signing secret"),
        Field("config", ANYTHING, "Handed to the worker as it is"),
        Field("timeout_ms", TIMEOUT, "How long to wait for the callback"),
        Field("payload", Choice("treadle", "stitch"), "Whose field names the message has; `treadle` unless given"),
    ),
}
