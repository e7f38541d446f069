"""5.6: several projects behind one address: nothing of one means anything in another."""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.server.browser import Browser
from tests.server.client import COMMAND, Caller, Connected, Served, Worker
from treadle.runtime.connecting import connect

FLOW = """
workflow: orders
nodes:
  one:
    action: {kind: set, values: {a: 1}}
"""
HOOK = {"source": "generic", "secret": "long-enough-secret", "workflow": "orders"}


async def _admin(store: str) -> str:
    async with connect(store, create=True) as client:
        return (await client.keys.create("admin", ["admin"]))[1]


class TwoProjects:
    """A service with the project of its store, and two more."""

    def __init__(self, served: Served, keys: dict[str, str]) -> None:
        self.served = served
        self.keys = keys


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TwoProjects]:
    folder: Path = tmp_path_factory.mktemp("projects")
    stores = {name: str(folder / f"{name}.db") for name in ("red", "blue")}
    options = [word for name, store in stores.items() for word in ("--project", f"{name}={store}")]
    service = Served(str(folder / "treadle.db"), folder, *options)
    keys = {name: asyncio.run(_admin(store)) for name, store in stores.items()} | {"": service.keys["admin"]}
    with service as served:
        yield TwoProjects(served, keys)


def _call(
    two: TwoProjects, project: str, key_of: str, method: str, path: str, body: object = None
) -> tuple[int, bytes]:
    prefix = f"/p/{project}" if project else ""
    reply = Caller(two.served.url, two.keys[key_of])(method, f"{prefix}/api/v1{path}", body)
    return reply.status, reply.raw


def test_each_project_has_its_own_keys(two: TwoProjects) -> None:
    for project in ("", "red", "blue"):
        for key in ("", "red", "blue"):
            assert _call(two, project, key, "GET", "/me")[0] == (200 if key == project else 401)


def test_ids_of_one_project_mean_nothing_in_another(two: TwoProjects) -> None:
    """Every kind of thing is made in red; asked for in blue it looks like something that never was."""
    flow = FLOW.encode()
    caller = Caller(two.served.url, two.keys["red"])
    assert caller("POST", "/p/red/api/v1/workflows", flow, {"Content-Type": "application/yaml"}).status == 201
    started = caller("POST", "/p/red/api/v1/runs", {"workflow": "orders"})
    run = started.json["run"]
    assert started.headers["location"] == f"/p/red/api/v1/runs/{run}"
    assert caller("GET", "/p/red/api/v1/openapi.json").json["servers"] == [{"url": "/p/red"}]
    assert caller("PUT", "/p/red/api/v1/secrets/TOKEN", {"value": "long enough"}).status == 201
    assert caller("PUT", "/p/red/api/v1/hooks/in", HOOK).status == 201
    key = caller("POST", "/p/red/api/v1/keys", {"name": "k", "roles": ["viewer"]}).json["id"]
    entity = {"type": "person", "id": "7", "attributes": {}}
    assert caller("POST", "/p/red/api/v1/entities", entity).status == 201
    there = [
        ("GET", "/workflows/orders", "/workflows/nothing"),
        ("GET", f"/runs/{run}", f"/runs/{run[:-4]}0000"),
        ("POST", f"/runs/{run}/cancel", f"/runs/{run[:-4]}0000/cancel"),
        ("GET", "/hooks/in", "/hooks/none"),
        ("DELETE", f"/keys/{key}", "/keys/aaaaaaaaaa"),
        ("DELETE", "/secrets/TOKEN", "/secrets/OTHER"),
        ("GET", "/entities/person/7", "/entities/person/8"),
    ]
    for method, path, never in there:
        swapped, missing = _call(two, "blue", "blue", method, path), _call(two, "blue", "blue", method, never)
        assert swapped[0] == missing[0] == 404, (path, swapped, missing)
        assert _call(two, "red", "red", "GET", "/me")[0] == 200
    assert _call(two, "blue", "blue", "POST", "/runs", {"workflow": "orders"})[0] == 404
    listed = [_call(two, "blue", "blue", "GET", path)[1] for path in ("/secrets", "/hooks", "/entities")]
    assert all(b'"items":[]' in page for page in listed), listed
    assert _call(two, "red", "red", "GET", f"/runs/{run}")[0] == 200
    blue = json.loads(_call(two, "blue", "blue", "GET", "/audit?limit=1000")[1])["items"]
    assert all(entry["status"] in (0, 401, 404) for entry in blue), "nothing that was done in red"


def test_a_session_and_a_cursor_of_one_project_do_not_open_another(two: TwoProjects) -> None:
    red, blue = Browser(two.served, "/p/red"), Browser(two.served, "/p/blue")
    cookie = red.sign_in(two.keys["red"]).headers["set-cookie"]
    assert "Path=/p/red" in cookie
    assert red("GET", "/api/v1/me").status == 200
    blue.cookies = dict(red.cookies)
    assert blue("GET", "/api/v1/me").status == 401
    cursor = Caller(two.served.url, two.keys["red"])("GET", "/p/red/api/v1/audit?limit=1").json["next"]
    assert cursor is not None
    assert _call(two, "blue", "blue", "GET", f"/audit?limit=1&cursor={cursor}")[0] == 400


def test_a_worker_of_a_project_answers_below_its_prefix(tmp_path: Path) -> None:
    store = str(tmp_path / "red.db")
    key = asyncio.run(_admin(store))
    service = Connected(str(tmp_path / "treadle.db"), tmp_path, "--project", f"red={store}")
    with Worker() as worker, service as served:
        flow = {"workflow": "asks", "nodes": {"one": {"action": {"kind": "webhook", "url": worker.url}}}}
        admin = Caller(served.url, key)
        assert admin("POST", "/p/red/api/v1/workflows", flow).status == 201
        run = admin("POST", "/p/red/api/v1/runs", {"workflow": "asks"}).json["run"]
        address = worker.next()["callback_url"]
        assert address.startswith(f"{served.url}/p/red/callbacks/")
        answered = served.as_(None)("POST", urlsplit(address).path, {"status": "completed", "output": 1})
        assert (answered.status, answered.json) == (200, {"applied": True})
        assert admin("GET", f"/p/red/api/v1/runs/{run}").json["status"] == "completed"


def test_an_unknown_project_looks_like_any_address_where_nothing_is(two: TwoProjects) -> None:
    caller = Caller(two.served.url, two.keys["red"])
    for path in ("/p/green/api/v1/me", "/p/", "/p", "/p/red%2F/api/v1/me", "/p/RED/api/v1/me", "/p/../api/v1/me"):
        assert caller("GET", path).status == 404, path
    assert caller("GET", "/p/red").status == 200
    assert caller("GET", "/p/red/health/ready").status == 200


def test_projects_without_a_store_of_their_own_have_probes_for_all(tmp_path: Path) -> None:
    asyncio.run(_admin(str(tmp_path / "a.db")))
    environment = Served(str(tmp_path / "x.db"), tmp_path).environment
    process = subprocess.Popen(
        [*COMMAND, "serve", "--port", "0", "--project", f"a={tmp_path / 'a.db'}"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        cwd=tmp_path,
        env=environment,
    )
    assert process.stdout is not None
    try:
        caller = Caller(process.stdout.readline().split()[-1], None)
        assert caller("GET", "/health/ready").status == 200
        assert caller("GET", "/health/live").status == 200
        assert caller("GET", "/").status == 404
        assert caller("GET", "/p/a/").status == 200
        assert not (tmp_path / "treadle.db").exists()
    finally:
        process.terminate()
        process.wait(60)
        process.stdout.close()


def test_the_application_is_a_function_however_often_and_in_which_order_it_is_imported() -> None:
    import treadle.server
    import treadle.server.projects

    first, again = treadle.server.app, treadle.server.app
    assert callable(first) and first is again
