"""5.6: stored secrets: sealed, never read back, bound to hosts, stronger than the environment."""

from __future__ import annotations

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from tests.postgres import new_database
from tests.server.client import Served

CANARY = "canary-4f9c1d7e"
FLOW = """
workflow: {name}
nodes:
  call:
    action:
      kind: http
      method: POST
      url: http://{host}:{port}/
      headers: {{Authorization: {{secret: TOKEN, prefix: "Bearer "}}}}
"""
SHELL = """
workflow: in-a-program
nodes:
  call:
    action: {kind: shell, argv: [env], env: {T: {secret: TOKEN}}}
"""


class Peer:
    """A service elsewhere, which writes down who came with which credentials."""

    def __init__(self) -> None:
        self.heard: list[str] = []
        peer = self

        class Answering(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                peer.heard.append(self.headers.get("Authorization", ""))
                self.send_response(204)
                self.end_headers()

            def log_message(self, *_arguments: object) -> None: ...

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Answering)
        self.port = self.server.server_address[1]
        Thread(target=self.server.serve_forever, daemon=True).start()


@pytest.fixture
def peer() -> Iterator[Peer]:
    made = Peer()
    yield made
    made.server.shutdown()
    made.server.server_close()


@pytest.fixture
def service(own_service: Served) -> Iterator[Served]:
    own_service.environment |= {
        "TREADLE_NET_ALLOW": "127.0.0.1:*,localhost:*",
        "TREADLE_SECRET_TOKEN": "from-the-environment",
        "TREADLE_SHELL_ENABLED": "true",
        "TREADLE_SHELL_SANDBOX": "none",
    }
    with own_service as served:
        yield served


def _run(served: Served, workflow: str) -> Any:
    run = served.as_("operator").post("/runs?wait_ms=30000", {"workflow": workflow})
    return served.as_("viewer").get(f"/runs/{run['run']}")


def test_a_stored_secret_wins_over_the_environment_until_it_is_removed(service: Served, peer: Peer) -> None:
    service.deploy(FLOW.format(name="call", host="127.0.0.1", port=peer.port))
    admin = service.as_("admin")
    _run(service, "call")
    assert admin.api("PUT", "/secrets/TOKEN", {"value": CANARY}).status == 201
    _run(service, "call")
    assert admin.api("PUT", "/secrets/TOKEN", {"value": CANARY + "-2"}).status == 200
    _run(service, "call")
    assert admin.api("DELETE", "/secrets/TOKEN").status == 204
    assert admin.api("DELETE", "/secrets/TOKEN").status == 404
    _run(service, "call")
    environment = "Bearer from-the-environment"
    assert peer.heard == [environment, f"Bearer {CANARY}", f"Bearer {CANARY}-2", environment]


def test_a_secret_goes_to_its_hosts_and_nowhere_else(service: Served, peer: Peer) -> None:
    for host in ("127.0.0.1", "localhost"):
        service.deploy(FLOW.format(name=host, host=host, port=peer.port))
    service.deploy(SHELL)
    put = service.as_("admin").api("PUT", "/secrets/TOKEN", {"value": CANARY, "hosts": ["LOCALHOST", "*.example.com"]})
    assert put.json["hosts"] == ["localhost", "*.example.com"]
    assert _run(service, "localhost")["status"] == "completed"
    assert peer.heard == [f"Bearer {CANARY}"]
    refused = _run(service, "127.0.0.1")
    assert refused["status"] == "failed"
    assert "may not be sent to '127.0.0.1'" in json.dumps(refused)
    in_program = _run(service, "in-a-program")
    assert in_program["status"] == "failed"
    assert "may not be used here" in json.dumps(in_program)
    assert peer.heard == [f"Bearer {CANARY}"]


def test_a_value_is_never_read_back_and_is_nowhere_in_the_clear(service: Served, peer: Peer) -> None:
    service.deploy(FLOW.format(name="call", host="127.0.0.1", port=peer.port))
    admin = service.as_("admin")
    admin.api("PUT", "/secrets/TOKEN", {"value": CANARY})
    run = _run(service, "call")
    told = [admin.api("GET", path).raw for path in ("/secrets", "/audit", f"/runs/{run['run']}/history")]
    assert all(CANARY.encode() not in text for text in told)
    (listed,) = json.loads(told[0])["items"]
    assert listed["last_used"] is not None
    assert listed["changed_by"] == "admin"
    assert admin.api("GET", "/secrets/TOKEN").status == 405
    assert service.stop() == 0
    for file in Path(service.folder).iterdir():
        assert CANARY.encode() not in file.read_bytes(), file


@pytest.mark.parametrize("role", ["viewer", "operator", "author", "approver", "worker", None])
def test_only_an_admin_sees_or_writes_secrets(served_sqlite: Served, role: str | None) -> None:
    caller = served_sqlite.as_(role)
    for method, path in (("GET", "/secrets"), ("PUT", "/secrets/A"), ("DELETE", "/secrets/A")):
        assert caller.api(method, path, {"value": "long enough"} if method == "PUT" else None).status in (401, 403)


@pytest.mark.parametrize(
    ("name", "body"),
    [
        ("A%2F..", {"value": CANARY}),
        ("A%20B", {"value": CANARY}),
        ("A", {"value": "abc"}),
        ("A", {"value": "x" * (64 * 1024 + 1)}),
        ("A", {"value": CANARY, "hosts": []}),
        ("A", {"value": CANARY, "hosts": ["*"]}),
        ("A", {"value": CANARY, "hosts": ["https://a.example"]}),
        ("A", {"value": CANARY, "hosts": ["a.example/x"]}),
        ("A", {"hosts": ["a.example"]}),
    ],
)
def test_a_secret_that_makes_no_sense_is_refused_without_showing_it(
    served_sqlite: Served, name: str, body: object
) -> None:
    reply = served_sqlite.as_("admin").api("PUT", f"/secrets/{name}", body)
    assert reply.status == 400
    assert CANARY.encode() not in reply.raw


def test_on_postgresql_a_key_file_keeps_the_key_out_of_the_database(tmp_path: Path, peer: Peer) -> None:
    (tmp_path / "key").write_text("k" * 64)
    with new_database() as dsn:
        service = Served(dsn, tmp_path)
        service.environment |= {"TREADLE_SECRETS_KEY_FILE": str(tmp_path / "key"), "TREADLE_NET_ALLOW": "127.0.0.1:*"}
        with service as served:
            served.deploy(FLOW.format(name="call", host="127.0.0.1", port=peer.port))
            assert served.as_("admin").api("PUT", "/secrets/TOKEN", {"value": CANARY}).status == 201
            assert _run(served, "call")["status"] == "completed"
            served.stop()
            del served.environment["TREADLE_SECRETS_KEY_FILE"]
            served.start()
            without = _run(served, "call")
            assert without["status"] == "failed"
            assert "secrets.key_file" in json.dumps(without)
        assert peer.heard == [f"Bearer {CANARY}"]
