"""Trust: what a workflow's author cannot call, whatever the name looks like, and what an operator's project can."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from treadle.tasks import Trust, UnknownFunction, UntrustedFunction, find_function

MODULE = """
import functools, os, os.path as where, subprocess
from os import getenv
from pathlib import Path
from treadle import task
from trust_shop.inner import helper

__all__ = ["system", "greet"]

SETTINGS = {"a": 1}
LOG = __import__("logging").getLogger("x")
system = os.system
run = functools.partial(subprocess.getoutput)

def greet(name): return f"hello {name}"

@functools.cache
def cached(name): return name

def _private(): return 1

@task
def _marked(): return 1

class Folder(Path): ...

class Till:
    def open(self): return "open"
    @classmethod
    def total(cls): return 3

TILL = Till()
"""


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A project with one package, an environment inside it, and a module beside it."""
    package = tmp_path / "project" / "trust_shop"
    (package / "inner").mkdir(parents=True)
    (package / "__init__.py").write_text(MODULE)
    (package / "inner" / "__init__.py").write_text("def helper(): return 2\n")
    installed = tmp_path / "project" / ".venv" / "lib" / "site-packages"
    installed.mkdir(parents=True)
    (installed / "trust_installed.py").write_text("raise SystemExit('imported')\n")
    (tmp_path / "trust_beside.py").write_text("raise SystemExit('imported')\n")
    for folder in (tmp_path, tmp_path / "project", installed):
        monkeypatch.syspath_prepend(str(folder))
    yield tmp_path / "project"
    for name in [name for name in sys.modules if name.startswith("trust_")]:
        del sys.modules[name]


@pytest.mark.parametrize(
    "name",
    [
        "trust_shop:greet",
        "trust_shop:cached",
        "trust_shop:helper",
        "trust_shop.inner:helper",
        "trust_shop:Till.total",
        "trust_shop:TILL.open",
        "trust_shop:system",  # in __all__: the operator puts it forward
        "trust_shop:_marked",  # so does @task
    ],
)
def test_functions_of_the_projects_own_folder_are_found(shop: Path, name: str) -> None:
    assert callable(find_function(name, {}, Trust([str(shop)])))


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("os:getenv", "functions.allow does not cover the module 'os'"),
        ("subprocess:getoutput", "functions.allow does not cover the module 'subprocess'"),
        ("builtins:eval", "functions.allow does not cover the module 'builtins'"),
        ("posix:system", "functions.allow does not cover the module 'posix'"),
        ("importlib:import_module", "functions.allow does not cover"),
        ("msgspec:json.decode", "functions.allow does not cover"),
        ("treadle.actions.shell_process:run_program", "functions.allow does not cover"),
        ("trust_installed:f", "functions.allow does not cover the module 'trust_installed'"),
        ("trust_beside:f", "functions.allow does not cover the module 'trust_beside'"),
        ("__main__:f", "functions.allow does not cover the module '__main__'"),
        ("trust_shop:os.system", "it leads through 'os'"),
        ("trust_shop:where.join", "it leads through 'where'"),
        ("trust_shop:getenv", "it is defined in 'os', which functions.allow does not cover"),
        ("trust_shop:run", "it is defined in 'functools'"),
        ("trust_shop:Path", "it is defined in 'pathlib"),
        ("trust_shop:Folder.read_text", "it is defined in 'pathlib"),
        ("trust_shop:Folder.cwd", "it is defined in 'pathlib"),
        ("trust_shop:SETTINGS.update", "it has no module"),
        ("trust_shop:LOG.info", "it is defined in 'logging'"),
        ("trust_shop:Till.mro", "it has no module"),
        ("trust_shop:_private", "its name begins with an underscore"),
        ("trust_shop:greet.__globals__.get", "it leads through 'greet'"),
        ("trust_shop:greet.__call__", "it leads through 'greet'"),
        ("trust_shop:Till.__subclasses__", "it leads through 'Till'"),
        ("trust_shop:__builtins__.get", "it leads through"),
        ("trust_shop:__loader__.get_data", "it has no module"),
        ("trust_shop:cached.cache_clear", "it has no module"),
        ("trust_shop:TILL.open.__func__", "it leads through 'open'"),
    ],
)
def test_an_author_cannot_call_what_the_operator_did_not_allow(shop: Path, name: str, why: str) -> None:
    with pytest.raises(UntrustedFunction) as refused:
        find_function(name, {}, Trust([str(shop)]))
    assert why in str(refused.value) or name.split(":")[1].startswith("__")


def test_a_refused_module_is_not_even_imported(shop: Path) -> None:
    for name in ("trust_installed", "trust_beside"):
        with pytest.raises(UntrustedFunction):
            find_function(f"{name}:f", {}, Trust([str(shop)]))
        assert name not in sys.modules


def test_a_module_is_allowed_by_its_name_with_what_lies_below_it_and_nothing_else(shop: Path) -> None:
    assert Trust(["trust_shop"]).allows("trust_shop.inner")
    assert not Trust(["trust_shop.inner"]).allows("trust_shop")
    assert not Trust(["trust_sho"]).allows("trust_shop")
    assert find_function("math:sqrt", {}, Trust(["math"]))(9) == 3
    with pytest.raises(UntrustedFunction, match="defined in 'os'"):
        find_function("trust_shop:getenv", {}, Trust(["trust_shop"]))
    assert find_function("trust_shop:getenv", {}, Trust(["trust_shop", "os"]))  # type: ignore[truthy-function]
    assert shop.is_dir()


def test_a_registered_function_needs_no_trust() -> None:
    assert find_function("os:getenv", {"os:getenv": len}, Trust([])) is len


def test_the_message_says_where_was_looked_and_how_to_allow(shop: Path) -> None:
    with pytest.raises(UntrustedFunction) as refused:
        find_function("os:getenv", {}, Trust([str(shop), "acme", str(shop)]))
    assert f"only the module 'acme', the folder {shop}. An operator adds it to functions.allow" in str(refused.value)
    with pytest.raises(UnknownFunction) as missing:
        find_function("trust_shpo:f", {"b": len, "a": len}, Trust([str(shop)]))
    said = "no module 'trust_shpo' on Python's path. Registered here: a, b. functions.allow covers the folder"
    assert said in str(missing.value)
