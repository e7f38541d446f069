"""The pytest plug-in: collects `*.scenario.yaml`, one item per scenario, with the compact history as its failure text.

Owns nothing but the translation. Definitions may use the project's library and worker types, as with `treadle test`.
Every pytest run in an environment with Treadle loads it, so it imports the rest only when there is a scenario file to
collect. Works under pytest-xdist: an item is found by its position in its file, and playing it needs no other item.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from treadle.language.load import Known
    from treadle.testing.scenario.documents import Document
    from treadle.testing.scenario.runner import ScenarioResult

SUFFIX = ".scenario.yaml"


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--treadle-store sqlite|postgres`: the same scenarios through the real engine."""
    parser.addoption(
        "--treadle-store",
        choices=("memory", "sqlite", "postgres"),
        default="memory",
        help="what scenario files are played on: memory (virtual, fast), or the real engine on sqlite or postgres",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Makes the modules of a Treadle project, where `treadle.toml` is, importable: plain `pytest` looks for them only
    beside the test, while `treadle` and `python -m pytest` also look in the current directory."""
    for folder in {config.rootpath, config.invocation_params.dir}:
        if (folder / "treadle.toml").is_file() and str(folder) not in sys.path:
            sys.path.insert(0, str(folder))


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Collects a scenario file."""
    if file_path.name.endswith(SUFFIX):
        return ScenarioFile.from_parent(parent, path=file_path)
    return None


_KNOWN = pytest.StashKey["Known"]()


def _shared(config: pytest.Config) -> Known:
    """The settings `library` and `workers` of the project that the user stands in, else of pytest's root; read once.

    Raises TreadleError or FileNotFoundError if they cannot be used."""
    if _KNOWN not in config.stash:
        from treadle.project.settings import Configuration, find_file
        from treadle.project.shared import shared

        stands, root = config.invocation_params.dir, config.rootpath
        config.stash[_KNOWN] = shared(Configuration(folder=stands if find_file(stands) is not None else root))
    return config.stash[_KNOWN]


class ScenarioFile(pytest.File):
    """One file; a document of it is one item."""

    def collect(self) -> Iterator[pytest.Item]:
        from treadle.errors import TreadleError
        from treadle.testing.scenario.documents import read_file

        try:
            documents = read_file(self.path, _shared(self.config))
        except (TreadleError, FileNotFoundError) as problem:
            raise self.CollectError(str(problem)) from None
        taken: dict[str, int] = {}
        for document in documents:
            name = document.title or f"line {document.line}"
            taken[name] = taken.get(name, 0) + 1
            unique = name if taken[name] == 1 else f"{name} #{taken[name]}"
            yield ScenarioItem.from_parent(self, name=unique, document=document)


class ScenarioItem(pytest.Item):
    """One scenario."""

    def __init__(self, *, document: Document, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.document = document

    def runtest(self) -> None:
        from treadle.testing.scenario.runner import run_document

        result = run_document(self.document, self.config.getoption("--treadle-store"))
        for warning in result.warnings:
            self.add_report_section("call", "scenario warning", warning)
        if not result.ok:
            raise ScenarioFailed(result)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], *args: Any, **kwargs: Any) -> Any:
        if isinstance(excinfo.value, ScenarioFailed):
            return str(excinfo.value.result)
        return super().repr_failure(excinfo, *args, **kwargs)

    def reportinfo(self) -> tuple[Path, int, str]:
        return self.path, self.document.line - 1, self.name


class ScenarioFailed(AssertionError):
    """Raised with the result, for the report."""

    def __init__(self, result: ScenarioResult) -> None:
        super().__init__(result.reason or result.verdict)
        self.result = result
