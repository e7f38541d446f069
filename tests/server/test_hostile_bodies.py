"""Bodies made to cost more than they should: deep, giant, repeating, patterns that never end. None hangs or fails."""

from __future__ import annotations

import json
from pathlib import Path
from time import monotonic
from typing import Any

import pytest

from tests.server.client import Caller, Reply, Served
from tests.server.test_hostile_paths import asking

JSON = {"Content-Type": "application/json"}
YAML = {"Content-Type": "application/yaml"}
WITHIN_S = 5.0
"""A generous bound for a busy machine: what these bodies are made for takes minutes or all memory."""
GROWTH_MAX = 200 << 20

LAUGHS = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 12)
)
BODIES: dict[str, tuple[dict[str, str], bytes]] = {
    "arrays in arrays": (JSON, b"[" * 500_000 + b"]" * 500_000),
    "objects in objects": (JSON, b'{"a":' * 180_000),
    "a hundred thousand keys": (JSON, json.dumps({f"k{n}": n for n in range(60_000)}).encode()),
    "one long number": (JSON, b'{"workflow": ' + b"1" * 1_000_000 + b"}"),
    "one long exponent": (JSON, b'{"workflow": 1e' + b"9" * 1_000_000 + b"}"),
    "one long text": (JSON, b'{"workflow": "' + b"\\u0041" * 170_000 + b'"}'),
    "quotes": (JSON, b'{"' + b"\\" * 1_000_000),
    "half a surrogate": (JSON, b'{"workflow": "\\ud800", "nodes": {}}'),
    "zero bytes": (JSON, b'{"workflow": "a\\u0000b", "nodes": {"a": {}}}'),
    "utf-16": (JSON, '{"workflow": "a"}'.encode("utf-16")),
    "a million laughs": (YAML, f"{LAUGHS}workflow: a\nnodes: {{a: {{}}}}\n".encode()),
    "an alias of itself": (YAML, b"workflow: a\nnodes: &n {a: *n}\n"),
    "deep yaml": (YAML, b"[" * 100_000),
    "deep blocks": (YAML, b"".join(b" " * n + b"a:\n" for n in range(1_200))),
    "many documents": (YAML, b"---\nworkflow: a\n" * 50_000),
    "tags": (YAML, b"workflow: !!python/object/apply:os.system [id]\nnodes: {a: {}}\n"),
    "a binary tag": (YAML, b"workflow: !!binary aGk=\nnodes: {a: {}}\n"),
    "merge keys": (YAML, b"base: &b {x: 1}\nworkflow: a\nnodes: {a: {<<: [*b, *b]}}\n"),
    "a long line": (YAML, b"workflow: " + b"a" * 1_000_000),
    "colons": (YAML, b": " * 400_000),
    "sixty": (YAML, b"workflow: 1:1:1:1:1:1:1:1:1\nnodes: {a: {timeout_ms: 999999999999999999999999999999}}\n"),
    "not text": (YAML, bytes(range(256)) * 1_000),
}


def memory(served: Served) -> int:
    """Bytes that the process holds now."""
    assert served.process is not None
    lines = Path(f"/proc/{served.process.pid}/status").read_text().splitlines()
    (line,) = (line for line in lines if line.startswith("VmRSS"))
    return int(line.split()[1]) * 1_024


def hurried(caller: Caller, method: str, path: str, body: bytes, headers: dict[str, str]) -> Reply:
    began = monotonic()
    reply = caller(method, path, body, headers, timeout_s=60)
    assert monotonic() - began < WITHIN_S, reply
    return reply


@pytest.mark.parametrize("what", BODIES)
def test_a_body_costs_no_more_than_its_length(served_sqlite: Served, what: str) -> None:
    headers, body = BODIES[what]
    admin = served_sqlite.as_("admin")
    before = memory(served_sqlite)
    for path in ("/workflows", "/workflows/validate", "/runs", "/workflows/x/simulate", "/signals", "/tasks/claim"):
        reply = hurried(admin, "POST", f"/api/v1{path}", body, headers)
        assert reply.status in (400, 404, 413, 415, 422) or (path.endswith("validate") and not reply.json["ok"]), reply
        if reply.status != 200:
            assert reply.headers["content-type"] == "application/problem+json"
            assert len(reply.raw) < 200_000, "a refusal is short"
    for path in ("/callbacks/x", "/hooks/x", "/answer/x", "/sign-in"):
        assert hurried(served_sqlite.as_(None), "POST", path, body, headers).status in (400, 403, 404, 413, 415)
    assert memory(served_sqlite) - before < GROWTH_MAX


BOMBS = ["(a+)+$", "(a|aa)+$", "(a|a?)+$", "(.*a){25}$", "^(([a-z])+.)+[A-Z]([a-z])+$", "(?=(a+))(?:\\1)+b", "(a*)*b"]


@pytest.mark.parametrize("pattern", BOMBS)
def test_a_pattern_of_a_schema_takes_its_time_from_nobody(served_sqlite: Served, pattern: str) -> None:
    """In the form of a gate and in the schema of an input, matched against what explodes it."""
    number = BOMBS.index(pattern)
    text = "a" * 5_000 + "!"
    field: dict[str, Any] = {"type": "object", "properties": {"x": {"type": "string", "pattern": pattern}}}
    human = {"action": {"kind": "human", "title": "t", "form": field}}
    name = f"bomb-{number}"
    definition = {"workflow": name, "input_schema": field, "nodes": {"ask": human}}
    admin = served_sqlite.as_("admin")
    deployed = admin.api("POST", "/workflows", definition)
    if deployed.status == 422:
        return  # a pattern that cannot be bounded is refused when it is deployed
    assert deployed.status == 201, deployed
    start = json.dumps({"workflow": name, "input": {"x": text}}).encode()
    reply = hurried(admin, "POST", "/api/v1/runs", start, JSON)
    assert reply.status in (201, 422), reply
    run = admin.post("/runs", {"workflow": name, "input": {}})["run"]
    while not admin.get(f"/gates?run={run}")["items"]:
        pass
    answer = json.dumps({"data": {"x": text}}).encode()
    assert hurried(admin, "POST", f"/api/v1/gates/{run}/1/answer", answer, JSON).status in (200, 422)


FORMS = {
    "many fields": ("application/x-www-form-urlencoded", b"&".join(b"a=1" for _ in range(200_000))),
    "no text": ("application/x-www-form-urlencoded", b"a=%ff%fe&b=\xff"),
    "many parts": (
        "multipart/form-data; boundary=b",
        b"--b\r\nContent-Disposition: form-data; name=a\r\n\r\n1\r\n" * 50_000 + b"--b--",
    ),
    "a part without end": ("multipart/form-data; boundary=b", b"--b\r\nContent-Disposition: form-data; name=a\r\n\r\n"),
    "parts in parts": (
        "multipart/form-data; boundary=b",
        b"--b\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n" * 3_000,
    ),
    "an odd boundary": ("multipart/form-data; boundary=" + "b" * 5_000, b"--b"),
    "no boundary": ("multipart/form-data", b"--b"),
    "long headers": ("multipart/form-data; boundary=b", b"--b\r\nX: " + b"y" * 1_000_000 + b"\r\n\r\n--b--"),
    "an odd encoding": (
        "multipart/form-data; boundary=b",
        b"--b\r\nContent-Disposition: form-data; name=a\r\nContent-Transfer-Encoding: base64\r\n\r\n!!!\r\n--b--",
    ),
    "an odd name": (
        "multipart/form-data; boundary=b",
        b"--b\r\nContent-Disposition: form-data; name*=utf-8''%ff%fe; filename=\"../../x\"\r\n\r\n1\r\n--b--",
    ),
    "a type as the encoding": ("multipart/form-data; boundary=b; charset=utf-7", b"--b\r\n\r\n+ADw-\r\n--b--"),
}


@pytest.mark.parametrize("what", FORMS)
def test_a_posted_form_is_read_or_refused(served_sqlite: Served, what: str) -> None:
    kind, body = FORMS[what]
    run = asking(served_sqlite)
    url: str = served_sqlite.as_("approver").post(f"/gates/{run}/1/link", {"expires_ms": 600_000})["url"]
    path = url[url.index("/answer/") :]
    reply = hurried(served_sqlite.as_(None), "POST", path, body, {"Content-Type": kind})
    assert reply.status in (200, 400, 409, 413, 415, 422), reply
    assert "script" not in reply.headers["content-security-policy"].partition("script-src")[0]
