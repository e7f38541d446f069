"""docs/reference/cli.md is what tools/cli_docs.py draws from the commands of today."""

from __future__ import annotations

from collections.abc import Iterator

from cyclopts import App

from tools import cli_docs
from treadle.cli.frame.exits import CODES
from treadle.cli.main import app


def verbs(group: App, name: str) -> Iterator[tuple[str, App]]:
    for child in group:
        if not child.startswith("-"):
            yield f"{name} {child}", group[child]
            yield from verbs(group[child], f"{name} {child}")


def test_the_page_is_up_to_date() -> None:
    assert cli_docs.PAGE.read_text("utf-8") == cli_docs.page(), "run: ./dev python tools/cli_docs.py"


def test_the_page_has_every_verb_option_and_exit_code() -> None:
    page = cli_docs.page()
    for name, verb in verbs(app, "treadle"):
        assert f"# {name}" in page
        for argument in verb.assemble_argument_collection() if verb.default_command else ():
            assert all(f"`{word}`" in page for word in argument.names), f"{name} {argument.names}"
            assert argument.parameter.help, f"{name} {argument.names} is not explained"
    for code, meaning in CODES.items():
        assert f"| {code} | {meaning} |" in page
