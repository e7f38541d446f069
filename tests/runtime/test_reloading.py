"""Functions whose files change: new attempts run the new code, a broken file changes nothing."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.shell import Shell, hear
from tests.runtime.executing import on_loop
from treadle import Engine
from treadle.language import load_value
from treadle.runtime.reloading import Reloader
from treadle.runtime.settings import EngineSettings


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.syspath_prepend(str(tmp_path))
    write(tmp_path, "reloaded_parts.py", "def number(): return 1\n", 1)
    write(tmp_path, "reloaded_shop.py", "from reloaded_parts import number\ndef made(): return number()\n", 1)
    yield tmp_path
    for name in ("reloaded_parts", "reloaded_shop"):
        sys.modules.pop(name, None)


def write(folder: Path, name: str, text: str, second: int) -> None:
    """With a time of its own: two changes within one tick of the file system must differ."""
    (folder / name).write_text(text, "utf-8")
    os.utime(folder / name, (second, second))


async def result(engine: Engine, function: str, **action: Any) -> Any:
    document = {"workflow": "w", "nodes": {"n": {"action": {"kind": "python", "function": function, **action}}}}
    run = await engine.start(load_value({**document, "output": {"n": "$.nodes.n.output.result"}}).require())
    return (await run.result())["n"]


@pytest.mark.parametrize("process", [False, True])
@on_loop
async def test_new_attempts_run_the_new_code_also_of_modules_behind_it(project: Path, process: bool) -> None:
    settings = EngineSettings(functions_allow=(str(project),))
    action = {"process": True} if process else {}
    async with Engine(project / "t.db", settings=settings) as engine:
        assert await result(engine, "reloaded_shop:made", **action) == 1
        sys.modules["reloaded_shop"]
        engine.registry.functions["own"] = sys.modules["reloaded_shop"].made
        reloader = Reloader(engine)
        assert reloader.look().changed == ()
        write(project, "reloaded_parts.py", "def number(): return 22\n", 2)
        assert reloader.look().changed == ("reloaded_parts",)
        assert await result(engine, "reloaded_shop:made", **action) == 22
        assert await result(engine, "own") == 22
        assert reloader.look().changed == ()


@on_loop
async def test_a_file_that_changes_between_the_first_import_and_the_next_look_is_noticed(project: Path) -> None:
    settings = EngineSettings(functions_allow=(str(project),))
    async with Engine(project / "t.db", settings=settings) as engine:
        reloader = Reloader(engine)
        assert await result(engine, "reloaded_shop:made") == 1
        write(project, "reloaded_parts.py", "def number(): return 22\n", 2)
        assert "reloaded_parts" in reloader.look().changed
        assert await result(engine, "reloaded_shop:made") == 22
        assert reloader.look().changed == ()


@on_loop
async def test_a_broken_file_leaves_the_code_before_it(project: Path) -> None:
    settings = EngineSettings(functions_allow=(str(project),))
    async with Engine(project / "t.db", settings=settings) as engine:
        assert await result(engine, "reloaded_shop:made") == 1
        reloader = Reloader(engine)
        write(project, "reloaded_parts.py", "def number(: return 3\n", 2)
        told = reloader.look()
        assert told.changed == ("reloaded_parts",)
        assert "SyntaxError" in (told.problem or "")
        assert await result(engine, "reloaded_shop:made") == 1
        assert reloader.look().changed == ()
        write(project, "reloaded_parts.py", "def number(): return 333\n", 3)
        assert reloader.look().problem is None
        assert await result(engine, "reloaded_shop:made") == 333


def test_dev_runs_new_code_and_says_so(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    (tmp_path / "workflows").mkdir()
    head = "workflow: shop\noutput: {n: $.nodes.n.output.result}\n"
    flow = head + "nodes: {n: {action: {kind: python, function: 'shop:made'}}}\n"
    shell.write("workflows/shop.yaml", flow)
    write(tmp_path, "shop.py", "def made(): return 1\n", 1)
    with shell.going("dev", until="deployed shop v1") as dev:
        assert shell.json("run", "shop")["output"] == {"n": 1}
        write(tmp_path, "shop.py", "def made(): return 22\n", 2)
        hear(dev, "shop changed: attempts that begin from now on run the new code")
        assert shell.json("run", "shop")["output"] == {"n": 22}
