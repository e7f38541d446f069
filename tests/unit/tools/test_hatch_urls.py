"""The addresses of the project in a wheel are those that the publisher has told, and no others."""

from __future__ import annotations

import importlib
from types import ModuleType

import pytest
from hatchling.metadata.core import ProjectMetadata
from hatchling.plugin.manager import PluginManager

from tests.arch import source


@pytest.fixture
def hook(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(source.ROOT / "tools")
    return importlib.import_module("hatch_urls")


@pytest.mark.parametrize(
    ("told", "urls"),
    [
        ("", {}),
        (
            "Source=https://code.example/treadle Issues=https://code.example/treadle/issues",
            {"Issues": "https://code.example/treadle/issues", "Source": "https://code.example/treadle"},
        ),
    ],
)
def test_a_wheel_has_the_addresses_of_the_variable(
    monkeypatch: pytest.MonkeyPatch, told: str, urls: dict[str, str]
) -> None:
    monkeypatch.setenv("TREADLE_URLS", told)
    assert ProjectMetadata(str(source.ROOT), PluginManager()).core.urls == urls


@pytest.mark.parametrize(
    "told", ["https://code.example", "Source=http://code.example", "Source=https://ann@code.example"]
)
def test_a_mistake_is_told_with_what_is_wanted(hook: ModuleType, told: str) -> None:
    with pytest.raises(ValueError, match="must be Label=https://host/path"):
        hook.urls_of(told)
