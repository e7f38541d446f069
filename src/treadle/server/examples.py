"""Examples in the description of the API: a body for every request that has one, an answer, and a refusal of each code.

Owns the bodies, which are written by hand, because many fields exclude each other, and the sample values of which
answers are put together by their schemas. A test reads every example as the service would.
"""

from __future__ import annotations

from typing import Any

from treadle.server.problems import status_and_title

Json = Any
Schema = dict[str, Any]
RUN = "01a1ef08-e8c4-75be-ae98-ed341e6d0f7b"
INSTANT = 1_790_000_000_000
DEEPEST = 8
"""Levels of an answer; what a schema that contains itself has below them is left out."""

_FLOW = {"workflow": "orders/refund", "nodes": {"ask": {"action": {"kind": "human", "title": "Refund it?"}}}}
_FLOW_TEXT = "workflow: orders/refund\nnodes:\n  ask: {action: {kind: human, title: Refund it?}}\n"
_GATE = {"run": RUN, "visit": 2}
BODIES: dict[str, Json] = {
    "AnswerGiven": {"data": {"approve": True}, "comment": "fine"},
    "BatchGiven": {"action": "cancel", "filter": {"workflow": "orders/refund", "status": ["paused"]}, "dry_run": True},
    "BranchesGiven": {"items": [{"sku": "a-1"}]},
    "BudgetRaise": {"cost": 2.5},
    "CallbackAnswer": {"status": "completed", "output": {"pages": 3}},
    "ClaimGiven": {"queues": ["images"], "worker": "w1", "limit": 5, "lease_ms": 30_000, "wait_ms": 20_000},
    "CommentGiven": {"text": "The invoice is attached.", "attachments": ["invoice.pdf"]},
    "EditGiven": {"writes": {"state.total": 12}, "reason": "wrong currency"},
    "EntityPatch": {"attributes": {"plan": "gold", "trial": None}},
    "FailureGiven": {"error": {"kind": "BUSY", "message": "not now", "retryable": True}},
    "ForkGiven": {"at": {"node": "charge"}, "changes": {"input": {"order": 7}}},
    "GateHandOver": {"to": "grace"},
    "HeartbeatGiven": {"lease_ms": 30_000},
    "HookGiven": {"source": "github", "secret": "s3cret-value", "workflow": "orders/refund", "key": "$.delivery"},
    "InputGiven": {"input": {"order": 7}},
    "JumpGiven": {"to": "charge", "reason": "it was paid by phone"},
    "LinkWanted": {"expires_ms": 86_400_000, "for": "ada"},
    "ManyAnswers": {"gates": [_GATE], "data": {"approve": True}},
    "MigrationGiven": {"runs": [RUN], "to": 4, "nodes": {"pay": "charge"}, "dry_run": True},
    "MoreTime": {"ms": 3_600_000},
    "MoveByHand": {"workflow": "leads", "section": "won", "reason": "signed on paper"},
    "NewEntity": {"type": "lead", "id": "ada", "name": "Ada", "attributes": {"plan": "silver"}},
    "NewKey": {"name": "ci", "roles": ["operator"], "workflows": ["orders/*"]},
    "NewRun": {"workflow": "orders/refund", "input": {"order": 7}, "key": "order-7", "tags": ["vip"]},
    "NoFields": {},
    "ProgressGiven": {"name": "half", "data": {"percent": 50}},
    "ReplayFrom": {"from": INSTANT},
    "ResultGiven": {"output": {"width": 640}, "cost": 0.02},
    "RulesGiven": {"concurrency": 4, "rate": {"limit": 100, "per_ms": 60_000}, "weights": {"acme": 2.0}},
    "ScheduleGiven": {"workflow": "orders/refund", "cron": "0 6 * * MON-FRI", "timezone": "Europe/Berlin"},
    "SecretGiven": {"value": "a-secret-value", "hosts": ["api.example.com"]},
    "SignIn": {"key": "tdl_k3x9_secret"},
    "SignalSent": {"name": "paid", "key": "order-7", "data": {"amount": 12}},
    "SimulationGiven": {"input": {"order": 7}, "mocks": {"charge": {"output": {"ok": True}}}},
    "SkipGiven": {"output": {"ok": True}, "reason": "done by hand"},
    "SubscriptionGiven": {"url": "https://hooks.example.com/in", "types": ["run.*"], "workflows": ["orders/*"]},
    "WhyGiven": {"reason": "asked by the customer"},
}
"""By the name of the body's Struct."""
_FLOWS = {"json": _FLOW, "yaml": _FLOW_TEXT}
OTHER_BODIES: dict[str, dict[str, Json]] = {
    "/api/v1/workflows": _FLOWS,
    "/api/v1/workflows/validate": _FLOWS,
    "/api/v1/workflows/{name}/canvas": {"json": {"positions": {"ask": {"x": 40, "y": 80}}}},
    "/answer/{token}": {"json": {"data": {"approve": True}}, "form": {"approve": "true"}},
    "/hooks/{slug}": {"json": {"action": "opened", "number": 7}, "form": {"action": "opened"}},
    "/sign-in": {"form": {"key": "tdl_k3x9_secret"}},
}
"""Of bodies that are no Struct, by path and a part of the media type's name."""

SAMPLES: dict[str, Json] = {
    **dict.fromkeys(("run", "parent", "child", "replay_of"), RUN),
    **{name: {"order": 7} for name in ("input", "output", "data", "state", "scope", "attributes")},
    **dict.fromkeys(("node", "ref", "source", "target"), "charge"),
    **dict.fromkeys(("user", "by", "who", "claimed_by", "created_by", "changed_by", "to", "assign"), "ada"),
    **dict.fromkeys(("at", "now", "since", "until", "started", "changed", "ended", "created", "opened"), INSTANT),
    **dict.fromkeys(("due", "expires", "deployed", "lease_until", "last_used", "beat"), INSTANT),
    "workflow": "orders/refund",
    "status": "running",
    "type": "run.started",
    "kind": "TASK_FAILED",
    "code": "UNKNOWN_NODE",
    "severity": "error",
    "path": "root",
    "queue": "images",
    "worker": "w1",
    "title": "Refund it?",
    "url": "https://treadle.example/answer/3fK…",
    "key": "order-7",
    "entity": "lead/ada",
    "hash": "9872f80cf8339927b89a8d6c06884fbab4397a324a78fb36f1c02db55ba4c7e1",
    "request_id": "5ff21f64a71e3fc4",
    "next": "PiwAp5_3Zqa56DTOMg",
}
"""By the name of a field, where the value fits its type."""


def body_example(path: str, media: str, schema: Schema) -> Json | None:
    """The example of a request's body; None: there is none for this media type."""
    name = str(schema.get("$ref", "")).rpartition("/")[2]
    if name in BODIES:
        return BODIES[name]
    return next((example for part, example in OTHER_BODIES.get(path, {}).items() if part in media), None)


def refusal_example(code: str) -> Json:
    """A problem document with this code."""
    status, title = status_and_title(code)
    about = {"type": "about:blank", "title": title, "status": status, "code": code}
    return {**about, "detail": f"{title}: here stands the culprit", "request_id": SAMPLES["request_id"]}


def example_of(schema: Schema, components: dict[str, Schema], name: str = "", depth: int = 0) -> Json:
    """A value that fits a schema: sample values by name, else the simplest one of the type."""
    if "$ref" in schema:
        return example_of(components[schema["$ref"].rpartition("/")[2]], components, name, depth + 1)
    if "enum" in schema:
        return schema["enum"][0]
    if "anyOf" in schema:
        ways = sorted(schema["anyOf"], key=lambda way: way.get("type") == "null" or depth > DEEPEST)
        return example_of(ways[-1] if depth > DEEPEST else ways[0], components, name, depth)
    kind = schema.get("type")
    if kind == "object":
        return _object(schema, components, depth)
    if kind == "array":
        if "prefixItems" in schema:
            return [example_of(item, components, "", depth + 1) for item in schema["prefixItems"]]
        item = schema.get("items", {})
        return [example_of(item, components, name.removesuffix("s"), depth + 1)] if depth < DEEPEST and item else []
    return _plain(schema, kind, SAMPLES.get(name))


def _object(schema: Schema, components: dict[str, Schema], depth: int) -> Json:
    needed = schema.get("required", ())
    return {
        name: example_of(part, components, name, depth + 1)
        for name, part in schema.get("properties", {}).items()
        if depth < DEEPEST or name in needed
    }


def _plain(schema: Schema, kind: str | None, sample: Json) -> Json:
    fits = {"string": str, "integer": int, "number": int | float, "boolean": bool}
    if kind is None:
        return sample if sample is not None else {}
    if kind in fits and isinstance(sample, fits[kind]):
        return sample
    least = max(int(schema.get("minimum", 1)), 1)
    return {"string": "text", "integer": least, "number": float(least), "boolean": True}.get(kind)
