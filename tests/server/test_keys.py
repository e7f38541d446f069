"""5.6: keys: made once, expiring, limited to workflows, revoked within five seconds, and telling nothing when wrong."""

from __future__ import annotations

import asyncio
import http.client
import statistics
import time
from pathlib import Path
from urllib.parse import urlsplit
from uuid import uuid4

import pytest

from tests.server.client import Served
from treadle import connect
from treadle.errors import CommandRefused, StoreConflict
from treadle.runtime.access.keys import Keys
from treadle.runtime.surroundings.clock import SystemClock
from treadle.store.memory import MemoryStore

FLOW = """
workflow: {name}
nodes:
  one:
    action: {{kind: set, values: {{a: 1}}}}
"""


def _key(served: Served, **given: object) -> dict[str, str]:
    made: dict[str, str] = served.as_("admin").post(
        "/keys", {"name": f"k{uuid4().hex[:8]}", "roles": ["viewer"], **given}
    )
    return made


def test_a_key_is_shown_once_and_kept_as_a_hash(served: Served) -> None:
    made = _key(served)
    listed = {key["id"]: key for key in served.as_("admin").get("/keys")["items"]}
    assert made["key"].startswith(f"tdl_{made['id']}_")
    assert "key" not in listed[made["id"]]
    assert "hash" not in listed[made["id"]]


def test_a_repeated_post_gives_the_same_key_and_the_note_does_not_tell_it(own_service: Served) -> None:
    with own_service as served:
        headers = {"Idempotency-Key": "make-one"}
        body = {"name": "once", "roles": ["viewer"]}
        first = served.as_("admin").api("POST", "/keys", body, headers)
        again = served.as_("admin").api("POST", "/keys", body, headers)
        assert first.status == again.status == 201
        assert again.headers["idempotency-replayed"] == "true"
        assert first.json == again.json
        secret = first.json["key"]
        assert served.stop() == 0
    for file in Path(own_service.folder).glob("treadle.db*"):
        assert secret.encode() not in file.read_bytes()


def test_a_revoked_key_is_refused_within_five_seconds_also_if_the_store_was_changed_elsewhere(served: Served) -> None:
    made = _key(served)
    caller = served.with_key(made["key"])
    assert caller.api("GET", "/me").status == 200
    assert served.run("keys", "revoke", made["id"]).returncode == 0
    revoked = time.monotonic()
    while caller.api("GET", "/me").status == 200:
        assert time.monotonic() - revoked < 5


def test_a_key_revoked_here_is_refused_at_once(served: Served) -> None:
    made = _key(served)
    assert served.with_key(made["key"]).api("GET", "/me").status == 200
    assert served.as_("admin").api("DELETE", f"/keys/{made['id']}").status == 204
    assert served.with_key(made["key"]).api("GET", "/me").status == 401
    assert served.as_("admin").api("DELETE", f"/keys/{made['id']}").status == 404


def test_a_key_that_has_expired_is_refused(served: Served) -> None:
    now = served.as_("admin").get("/info")["now"]
    made = _key(served, expires=now + 1_500)
    caller = served.with_key(made["key"])
    assert caller.api("GET", "/me").status == 200
    while served.as_("admin").get("/info")["now"] < now + 1_500:
        pass
    assert caller.api("GET", "/me").status == 401
    refused = served.as_("admin").api("POST", "/keys", {"name": "late", "roles": ["viewer"], "expires": now - 1})
    assert refused.status == 400


def test_a_key_with_patterns_sees_its_workflows_and_nothing_else(served: Served) -> None:
    mark = uuid4().hex[:8]
    served.deploy(FLOW.format(name=f"mine-{mark}/a"))
    served.deploy(FLOW.format(name=f"other-{mark}/a"))
    caller = served.with_key(_key(served, workflows=[f"mine-{mark}/*"], roles=["operator"])["key"])
    assert caller.api("GET", f"/workflows/mine-{mark}%2Fa").status == 200
    hidden = caller.api("GET", f"/workflows/other-{mark}%2Fa")
    missing = caller.api("GET", f"/workflows/other-{mark}%2Fb")
    assert hidden.status == missing.status == 404
    assert hidden.json["detail"].replace("%2Fa", "") == missing.json["detail"].replace("/b", "/a").replace("%2Fa", "")
    run = served.as_("operator").post("/runs", {"workflow": f"other-{mark}/a"})["run"]
    assert caller.api("GET", f"/runs/{run}").status == 404
    assert caller.api("POST", "/runs", {"workflow": f"other-{mark}/a"}).status == 404
    assert caller.api("GET", "/me").status == 200
    admin = served.with_key(_key(served, workflows=["x/*"], roles=["admin"])["key"])
    assert admin.api("GET", "/keys").status == 403


@pytest.mark.parametrize(
    ("called", "status"), [("mine/b", 201), ("other", 403), ("$.input.called", 403), ({"cel": "'oth' + 'er'"}, 403)]
)
def test_a_key_with_patterns_deploys_calls_of_its_own_workflows_only(
    served_sqlite: Served, called: object, status: int
) -> None:
    author = served_sqlite.with_key(_key(served_sqlite, workflows=["mine/*"], roles=["author"])["key"])
    name = f"mine/{uuid4().hex[:8]}"
    flow = {"workflow": name, "nodes": {"a": {"action": {"kind": "workflow_call", "workflow": called}}}}
    reply = author.api("POST", "/workflows", flow)
    assert reply.status == status, reply
    flow["nodes"] = {"a": {"action": {"kind": "workflow_call"}, "input": {"workflow": "$.input.called"}}}
    assert author.api("POST", "/workflows", flow).status == 403
    assert served_sqlite.as_("author").api("POST", "/workflows", flow).status in (200, 201)


@pytest.mark.parametrize(
    "body",
    [
        {"name": "", "roles": ["viewer"]},
        {"name": "x", "roles": []},
        {"name": "x", "roles": ["root"]},
        {"name": "x", "roles": ["viewer"], "workflows": []},
        {"name": "x", "roles": ["viewer"], "workflows": [""]},
        {"name": "x", "roles": ["viewer"], "workflows": ["a\nb"]},
        {"name": "x", "roles": ["viewer"], "hash": "0"},
        {"name": "x\r\ny", "roles": ["viewer"]},
    ],
)
def test_a_key_that_makes_no_sense_is_refused(served_sqlite: Served, body: object) -> None:
    assert served_sqlite.as_("admin").api("POST", "/keys", body).status == 400


def test_when_a_key_was_last_used_is_told_to_the_minute(served: Served) -> None:
    made = _key(served)
    before = served.as_("admin").get("/info")["now"]
    served.with_key(made["key"]).get("/me")
    deadline = time.monotonic() + 10
    while True:
        listed = {key["id"]: key for key in served.as_("admin").get("/keys")["items"]}
        if listed[made["id"]]["last_used"] is not None:
            assert listed[made["id"]]["last_used"] >= before
            break
        assert time.monotonic() < deadline


def test_a_prefix_that_is_taken_is_never_given_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    asyncio.run(_collide(monkeypatch))


async def _collide(monkeypatch: pytest.MonkeyPatch) -> None:
    store = MemoryStore()
    keys = Keys(store, SystemClock())
    first, text = await keys.create("first", ["viewer"])
    drafts = iter([first, *(keys.draft("second", ["viewer"])[0] for _ in range(2))])
    monkeypatch.setattr(keys, "draft", lambda *_a, **_k: (next(drafts), "tdl_x_y"))
    with pytest.raises(StoreConflict):
        await keys.keep(first)
    second, _ = await keys.create("second", ["viewer"])
    assert second.id != first.id
    assert {key.id for key in await keys.list()} == {first.id, second.id}
    await keys.revoke(text)
    with pytest.raises(CommandRefused):
        await keys.revoke(first.id)


def test_an_unknown_prefix_takes_as_long_as_a_wrong_secret(own_service: Served) -> None:
    own_service.environment["TREADLE_SERVER_FAILURES_PER_MIN"] = "1000000"
    with own_service as served:
        prefix = served.keys["viewer"].split("_")[1]
        texts = {"known": f"tdl_{prefix}_{'x' * 43}", "unknown": f"tdl_{'a' * 10}_{'x' * 43}"}
        took: dict[str, list[float]] = {"known": [], "unknown": []}
        connection = http.client.HTTPConnection(urlsplit(served.url).netloc, timeout=30)
        for number in range(800):
            kind = "known" if number % 2 else "unknown"
            began = time.perf_counter()
            connection.request("GET", "/api/v1/me", headers={"Authorization": f"Bearer {texts[kind]}"})
            response = connection.getresponse()
            response.read()
            took[kind].append(time.perf_counter() - began)
            assert response.status == 401
        connection.close()
        known, unknown = (statistics.median(took[kind]) for kind in ("known", "unknown"))
        assert abs(known - unknown) < 0.25 * min(known, unknown), (known, unknown)


def test_wrong_keys_slow_down_and_a_key_in_use_is_not_locked_out(own_service: Served) -> None:
    with own_service as served:
        assert served.as_("viewer").api("GET", "/me").status == 200
        statuses = [served.with_key(f"tdl_aaaaaaaaaa_{'x' * 43}").api("GET", "/me").status for _ in range(40)]
        assert statuses[:30] == [401] * 30
        refused = served.with_key(f"tdl_aaaaaaaaaa_{'x' * 43}").api("GET", "/me")
        assert (refused.status, refused.json["code"]) == (429, "RATE_LIMITED")
        assert int(refused.headers["retry-after"]) >= 1
        assert served.as_("viewer").api("GET", "/me").status == 200
        assert served.as_(None).api("GET", "/me").status == 401


def test_groups_of_methods_wait_in_code_without_async_on_a_store_and_on_a_service(served: Served) -> None:
    with connect(served.store) as store, connect(served.url, key=served.keys["admin"]) as service:
        for client in (store, service):
            made, text = client.keys.create("blocking", ["viewer"])
            assert text.startswith(f"tdl_{made.id}_")
            assert made.id in [key.id for key in client.keys.list()]
            client.keys.revoke(made.id)
            assert made.id not in [key.id for key in client.keys.list()]
            assert isinstance(client.secrets.list(), list)
            assert isinstance(client.hooks.all(), list)
            assert isinstance(client.subscriptions.all(), list)
        assert [key.id for key in store.keys.list()] == [key.id for key in service.keys.list()]
