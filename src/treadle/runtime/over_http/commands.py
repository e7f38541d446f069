"""Commands as requests: which route each command of the kernel has, what its body says, and who may be named in it.

A service knows who asks by the key. A command that names somebody else is refused: it would be carried out in the name
of the key's person, and a gate that another person holds would look like one's own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from treadle.errors import CommandRefused
from treadle.model import commands as c
from treadle.model.ids import RunId
from treadle.runtime.over_http.connection import segment

Json = Any
Request = tuple[str, Json]
"""The path below the run, and the body."""


def request_of(run: RunId, command: c.Command) -> Request:
    """The path and body that carry a command to a service. Raises CommandRefused for one that has no route."""
    make = _TABLE.get(type(command))
    if make is None:
        raise CommandRefused("BAD_REQUEST", f"a service does not take {type(command).__name__}; ask the store itself")
    path, body = make(command)
    begin = "/gates" if type(command) in _OF_GATES else "/runs"
    return f"{begin}/{segment(run)}{path}", {name: value for name, value in body.items() if value is not None}


def fork_of(command: c.ForkRun, entity: Json) -> Request:
    """The path and body that ask a service for a fork."""
    point = {name: value for name, value in (("visit", command.visit), ("node", command.node)) if value is not None}
    body = {
        "at": point or command.at,
        "changes": msgspec.to_builtins(command.changes) or None,
        "key": command.idempotency_key,
        "tags": list(command.tags) or None,
        "entity": entity,
        "inherit_compensation": command.inherit_compensation or None,
    }
    path = f"/runs/{segment(command.origin)}/fork"
    return path, {name: value for name, value in body.items() if value is not None}


def require_caller(command: c.Command, user: str | None) -> None:
    """Raises CommandRefused(FORBIDDEN) for a command in the name of somebody else than the key's person."""
    require_name(getattr(command, "by", None), user)


def require_name(by: str | None, user: str | None) -> None:
    """Raises CommandRefused(FORBIDDEN) for the name of somebody else than the key's person."""
    if by not in (None, NOBODY, user):
        raise CommandRefused(
            "FORBIDDEN", f"the key is of {user!r}, so this cannot be done by {by!r}: name nobody, or use their key"
        )


NOBODY = "operator"
"""The name that a command has where its caller named nobody."""
_OF_GATES = frozenset({c.CompleteGate, c.ClaimGate, c.ReleaseGate, c.DelegateGate, c.CommentGate})
_TABLE: dict[type[c.Command], Callable[[Any], Request]] = {
    c.CancelRun: lambda d: ("/cancel", {"reason": d.reason}),
    c.PauseRun: lambda d: ("/pause", {"reason": d.reason}),
    c.ResumeRun: lambda _d: ("/resume", {}),
    c.ExtendTimeout: lambda d: ("/extend", {"ms": d.ms}),
    c.RaiseBudget: lambda d: (
        "/budget",
        {name: getattr(d, name) or None for name in ("cost", "tokens", "visits", "elapsed_ms", "id")},
    ),
    c.AbortRun: lambda _d: ("/abort", {}),
    c.RetryRun: lambda _d: ("/retry", {}),
    c.SendSignal: lambda d: ("/signals", {"name": d.name, "key": d.key, "data": d.data, "id": d.id}),
    c.RetryToken: lambda d: (f"/visits/{d.token}/retry", {}),
    c.CancelToken: lambda d: (f"/visits/{d.token}/cancel", {"reason": d.reason}),
    c.CancelGroup: lambda d: (f"/groups/{segment(d.group)}/cancel", {}),
    c.AddSiblings: lambda d: (f"/groups/{segment(d.group)}/add", {"items": d.items, "count": d.count, "id": d.id}),
    c.CloseGroup: lambda d: (f"/groups/{segment(d.group)}/close", {}),
    c.RetryCompensation: lambda d: (f"/compensations/{d.record}/retry", {}),
    c.SkipCompensation: lambda d: (f"/compensations/{d.record}/skip", {}),
    c.EditRun: lambda d: ("/edit", {"writes": d.writes, "branch": d.branch, "reason": d.reason}),
    c.SkipToken: lambda d: (f"/visits/{d.token}/skip", {"output": d.output, "reason": d.reason}),
    c.JumpToken: lambda d: (f"/visits/{d.token}/jump", {"to": d.to, "reason": d.reason}),
    c.SetInput: lambda d: (f"/visits/{d.token}/input", {"input": d.input, "reason": d.reason}),
    c.CompleteGate: lambda d: (f"/{d.token}/answer", {"data": d.data, "comment": d.comment}),
    c.ClaimGate: lambda d: (f"/{d.token}/claim", {}),
    c.ReleaseGate: lambda d: (f"/{d.token}/release", {}),
    c.DelegateGate: lambda d: (f"/{d.token}/delegate", {"to": d.to}),
    c.CommentGate: lambda d: (f"/{d.token}/comment", {"text": d.text, "attachments": list(d.attachments)}),
}
