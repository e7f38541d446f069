"""Whatever strangers write where the service reads, it answers soon and below 500. Drawn by Hypothesis.

`./dev fuzz` draws more of each, from fresh seeds.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fuzz import inputs
from tests.fuzz.inputs import drawn, encoded, in_path, sent
from tests.fuzz.world import Attacked, Known, furnish
from tests.postgres import new_database
from tests.server.client import Worker
from tests.server.following import Follower
from tests.server.hooked import BODY, SCHEMES
from tests.server.test_callbacks import Asked

JSON = {"Content-Type": "application/json"}


class Prey:
    """A furnished service, and what a stranger might have seen of it: a cursor, a link, a token."""

    def __init__(self, service: Attacked) -> None:
        self.service = service
        self.admin = service.as_("admin")
        self.nobody = service.as_(None)
        self.known: Known = furnish(service)
        self.cursor: str = self.admin.get("/runs?limit=1")["next"]
        with Worker() as worker:
            self.token: str = Asked(service, worker, "odd-callback").message["callback_token"]
        self.position = self._position()

    def _position(self) -> str:
        with Follower(self.service.url, self.service.keys["admin"], "/stream?after=0") as stream:
            return next(message.id for message in stream.messages() if message.id)

    def link(self) -> str:
        """A link to a gate that is open: a form drawn before may have been a good answer to another."""
        gate = self.admin.get("/gates?limit=1")["items"][0]
        url: str = self.admin.post(f"/gates/{gate['run']}/{gate['visit']}/link", {"expires_ms": 600_000})["url"]
        return url[url.index("/answer/") :]


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def prey(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prey]:
    folder = tmp_path_factory.mktemp("prey")
    database = new_database() if request.param == "postgres" else nullcontext(str(folder / "treadle.db"))
    with database as store, Attacked(store, folder) as service:
        yield Prey(service)


BODIES: dict[str, dict[str, Any]] = {
    "/runs": {"workflow": "asks", "input": {}, "key": "k", "tags": [], "entity": {"type": "person", "id": "ann"}},
    "/signals": {"name": "go", "key": "k", "data": None, "id": "i"},
    "/workflows": {"workflow": "odd", "nodes": {"a": {}}, "transitions": []},
    "/workflows/validate": {"workflow": "odd", "nodes": {"a": {"action": {"kind": "set", "values": {}}}}},
    "/workflows/asks/simulate": {"mocks": {}, "expect": {}, "input": {}, "steps": []},
    "/tasks/claim": {"queues": ["far"], "worker": "w", "limit": 1, "lease_ms": 1_000, "wait_ms": 0},
    "/entities": {"type": "person", "id": "new", "name": "n", "email": "e", "attributes": {}},
    "/entities/person/ann/move": {"workflow": "asks", "node": "ask", "section": "s", "reason": "r"},
    "/keys": {"name": "n", "roles": ["viewer"], "user": "u", "groups": [], "workflows": [], "expires": 1},
    "/runs/batch": {"action": "cancel", "runs": ["x"], "filter": {"tag": ["t"]}, "dry_run": True},
    "/gates/answer": {"gates": [{"run": "x", "visit": 1}], "data": {}},
    "/hooks/odd": {"source": "none", "workflow": "asks", "input": {}, "when": "true", "key": "$.body.id"},
    "/schedules/odd": {"workflow": "asks", "cron": "* * * * *", "every_ms": None, "input": {}, "jitter_ms": 0},
    "/queues/odd": {"concurrency": 1, "rate": "5/s", "weights": {}},
    "/subscriptions/odd": {"url": "http://127.0.0.1:9/", "types": ["*"], "workflows": [], "secret": "x"},
    "/secrets/ODD": {"value": "value", "hosts": []},
}
PUT = ("/hooks/", "/schedules/", "/queues/", "/subscriptions/", "/secrets/")


@pytest.mark.slow
@drawn
@given(path=st.sampled_from(sorted(BODIES)), data=st.data())
def test_any_body_is_taken_or_refused(prey: Prey, path: str, data: Any) -> None:
    right = BODIES[path]
    changed = {name: data.draw(inputs.values | st.just(right[name])) for name in right if data.draw(st.booleans())}
    body: Any = data.draw(st.sampled_from([{**right, **changed}, changed]))
    method = "PUT" if path.startswith(PUT) else "POST"
    sent(prey.admin, method, f"/api/v1{path}", encoded(body), JSON)


@pytest.mark.slow
@drawn
@given(data=st.binary(max_size=300), path=st.sampled_from(sorted(BODIES)), packed=st.booleans())
def test_any_bytes_are_refused(prey: Prey, data: bytes, path: str, packed: bool) -> None:
    method = "PUT" if path.startswith(PUT) else "POST"
    headers = {**JSON, **({"Content-Encoding": "gzip"} if packed else {})}
    assert sent(prey.admin, method, f"/api/v1{path}", data, headers).status in (200, 400, 422)


LISTS = [
    "/runs",
    "/gates",
    "/entities",
    "/workflows",
    "/schedules",
    "/audit",
    "/dead-letters",
    "/hooks/open/deliveries",
]


@pytest.mark.slow
@drawn
@given(path=st.sampled_from(LISTS), data=st.data())
def test_no_cursor_but_a_real_one_is_taken(prey: Prey, path: str, data: Any) -> None:
    cursor = data.draw(inputs.mutated(prey.cursor) | inputs.positions())
    reply = sent(prey.admin, "GET", f"/api/v1{path}?limit=1&cursor={in_path(cursor)}")
    assert reply.status == 400 or (cursor == prey.cursor and path == "/runs"), reply


@pytest.mark.slow
@drawn
@given(source=st.sampled_from(sorted(SCHEMES)), data=st.data())
def test_no_signature_but_the_right_one_is_taken(prey: Prey, source: str, data: Any) -> None:
    slug = {"generic": "gen", "standard": "std"}.get(source, "gen")
    right = SCHEMES[source][0](BODY)
    headers = {name: data.draw(inputs.printable | st.just(value)) for name, value in right.items()}
    body = data.draw(st.just(BODY) | st.binary(max_size=50))
    reply = sent(prey.nobody, "POST", f"/hooks/{slug}", body, {**JSON, **headers})
    is_right = (headers, body) == (right, BODY) and source in ("generic", "standard")
    assert reply.status == 401 or is_right, (headers, reply)


@pytest.mark.slow
@drawn
@given(kind=st.sampled_from(inputs.FORM_TYPES), body=inputs.form_bodies)
def test_any_form_is_read_or_refused(prey: Prey, kind: str, body: bytes) -> None:
    link = prey.link()
    sent(prey.nobody, "POST", link, body, {"Content-Type": kind})
    sent(prey.nobody, "POST", "/sign-in", body, {"Content-Type": kind})


@pytest.mark.slow
@drawn
@given(text=inputs.yaml_texts)
def test_any_yaml_is_judged(prey: Prey, text: str) -> None:
    data = text.encode("utf-8", "surrogatepass")
    reply = sent(prey.admin, "POST", "/api/v1/workflows/validate", data, {"Content-Type": "application/yaml"})
    assert reply.status in (200, 400, 422), reply


@pytest.mark.slow
@drawn
@given(data=st.data(), by_header=st.booleans())
def test_any_position_of_a_stream_is_followed_or_refused(prey: Prey, data: Any, by_header: bool) -> None:
    run = prey.known["runs.run"][0]
    path = data.draw(st.sampled_from(["/stream", "/gates/stream", f"/runs/{run}/stream"]))
    text = data.draw(inputs.mutated(prey.position) | inputs.positions())
    headers = {"Last-Event-ID": text.encode("utf-8", "replace").decode("latin-1")} if by_header else {}
    if by_header and not all(character.isprintable() for character in headers["Last-Event-ID"]):
        headers["Last-Event-ID"] = "x"  # no client can send it
    where = path if by_header else f"{path}?after={in_path(text)}"
    with Follower(prey.service.url, prey.service.keys["admin"], where, headers) as stream:
        assert stream.status in (200, 400, 410), (where, headers)
        kind = "text/event-stream" if stream.status == 200 else "application/problem+json"
        assert stream.response.headers["content-type"].partition(";")[0] == kind


@pytest.mark.slow
@drawn
@given(data=st.data())
def test_no_token_but_the_right_one_is_known(prey: Prey, data: Any) -> None:
    token = data.draw(inputs.mutated(prey.token))
    body = encoded(data.draw(inputs.values | st.just({"status": "completed", "output": {}})))
    reply = sent(prey.nobody, "POST", f"/callbacks/{in_path(token)}", body, JSON)
    assert reply.status == 404 or token == prey.token, reply
    link = sent(prey.nobody, "GET", f"/answer/{in_path(token)}")
    assert link.status == 404
    assert sent(prey.service.with_key(f"tdl_{in_path(token)}"), "GET", "/api/v1/me").status == 401
