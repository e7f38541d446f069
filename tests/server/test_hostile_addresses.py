"""Addresses that strangers and authors name, which must not lead inside: subscriptions, webhooks, an OpenID provider.

A canary on loopback counts connections: there must be none. How addresses are judged is tested in
tests/outside/test_net.py, down to names that change their mind; here, that every way in goes through that gate.
"""

from __future__ import annotations

import json
import re
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from time import monotonic
from typing import Self
from urllib.parse import urlsplit

import pytest

from tests.outside.test_net import ALLOWED_ODDLY, DENIED_ADDRESSES, ODD_HOSTS, ODD_URLS
from tests.server.browser import Browser
from tests.server.client import Caller, Served
from tests.server.provider import CLIENT, SECRET, Provider

SOURCE = Path(__file__).parents[2] / "src" / "treadle"


class Canary:
    """Listens on loopback and counts those who come."""

    def __init__(self) -> None:
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listening.getsockname()[1]
        self.visits = 0

    def __enter__(self) -> Self:
        threading.Thread(target=self._watch, daemon=True).start()
        return self

    def _watch(self) -> None:
        while True:
            try:
                line, _ = self._listening.accept()
            except OSError:
                return
            self.visits += 1
            line.close()

    def __exit__(self, *_exception: object) -> None:
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()


@pytest.fixture
def canary() -> Iterator[Canary]:
    with Canary() as watching:
        yield watching


def urls(port: int) -> list[str]:
    """Spellings of addresses inside, most of them of the canary's."""
    hosts = [f"[{address}]" if ":" in address else address for address in DENIED_ADDRESSES]
    spelled = [f"http://{host}:{port}/" for host in (*hosts, *ODD_HOSTS)]
    more = [f"https://{host}/" for host in (*hosts, *ODD_HOSTS)]
    return [*spelled, *more, *(url for url in ODD_URLS if url not in ALLOWED_ODDLY)]


def test_no_spelling_of_an_address_inside_can_be_subscribed(served_sqlite: Served, canary: Canary) -> None:
    author = served_sqlite.as_("author")
    tried = urls(canary.port)
    assert len(tried) > 200
    for url in tried:
        reply = author.api("PUT", "/subscriptions/canary", {"url": url, "types": ["*"]})
        assert (reply.status, reply.json["code"]) == (400, "BAD_REQUEST"), url
        assert "/etc/passwd" not in reply.json["detail"]
    assert canary.visits == 0


def test_no_spelling_of_an_address_inside_is_reached_by_a_webhook(served_sqlite: Served, canary: Canary) -> None:
    hosts = ["127.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]", "2130706433", "127.1", "0x7f.1", "0.0.0.0"]
    nodes = {
        f"n{number}": {"action": {"kind": "webhook", "url": f"http://{host}:{canary.port}/"}}
        for number, host in enumerate(hosts)
    }
    runs = []
    for number, node in enumerate(nodes.values()):
        definition = {"workflow": f"inside-{number}", "nodes": {"call": node}}
        deployed = served_sqlite.as_("author").api("POST", "/workflows", definition)
        if deployed.status == 422:
            continue  # refused when it is deployed: as good
        assert deployed.status in (200, 201), deployed
        runs.append(served_sqlite.as_("operator").post("/runs", {"workflow": f"inside-{number}"})["run"])
    deadline = monotonic() + 60
    for run in runs:
        while (shown := served_sqlite.as_("viewer").get(f"/runs/{run}"))["status"] == "running":
            assert monotonic() < deadline, shown
        assert shown["status"] == "failed"
    assert canary.visits == 0


@pytest.mark.parametrize("field", ["token_endpoint", "jwks_uri", "authorization_endpoint", "redirect"])
def test_a_provider_cannot_send_the_service_elsewhere_inside(tmp_path: Path, canary: Canary, field: str) -> None:
    liar = Provider()
    elsewhere = f"http://127.0.0.1:{canary.port}/"
    if field == "redirect":
        liar.moved_to = elsewhere
    else:
        liar.told[field] = elsewhere
    service = Served(str(tmp_path / "treadle.db"), tmp_path)
    oidc = {"issuer": liar.url, "client_id": CLIENT, "client_secret": "OIDC", "roles": {"*": ["viewer"]}}
    service.environment |= {
        "TREADLE_SERVER_OIDC": json.dumps(oidc),
        "TREADLE_NET_ALLOW": liar.url.removeprefix("http://"),
        "TREADLE_SECRET_OIDC": SECRET,
    }
    with service as served:
        browser = Browser(served)
        begun = browser("GET", "/sign-in/oidc")
        if field in ("token_endpoint", "jwks_uri") and begun.status == 303:
            asked = urlsplit(begun.headers["location"])
            back = urlsplit(Caller(liar.url, None)("GET", f"{asked.path}?{asked.query}").headers["location"])
            answer = browser("GET", f"{back.path}?{back.query}")
            assert answer.status == 401
            assert browser("GET", "/api/v1/me").status == 401
        else:
            assert begun.status in (303, 503)
    liar.close()
    assert canary.visits == 0


def test_everything_that_fetches_an_address_goes_through_the_gate() -> None:
    """A session of an HTTP client is made in three places: behind the gate, and by clients of this service itself."""
    made = {
        str(path.relative_to(SOURCE))
        for path in SOURCE.rglob("*.py")
        if re.search(
            r"ClientSession\(|urlopen\(|HTTPS?Connection\(|(from|import) http\.client|requests\.(get|post)",
            path.read_text(),
        )
    }
    assert made == {"actions/client.py", "runtime/http_worker.py", "runtime/over_http/connection.py"}
