"""What an engine as a program logs: on stderr, without local variables, scrubbed while an attempt holds secrets."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import structlog

from treadle.runtime.surroundings.logs import log_to_stderr, logger

CANARY = "canary-51c2"


@pytest.fixture(autouse=True)
def configured() -> Iterator[None]:
    log_to_stderr()
    yield
    structlog.reset_defaults()


def _fail() -> None:
    secret = CANARY.upper().lower()
    raise ValueError(f"a value of {len(secret)} letters")


def test_a_logged_exception_is_on_stderr_and_shows_no_local_variable(capsys: pytest.CaptureFixture[str]) -> None:
    try:
        _fail()
    except ValueError:
        structlog.get_logger("treadle.test").exception("it failed", run="r1")
    said = capsys.readouterr()
    assert said.out == ""
    assert "it failed" in said.err
    assert "ValueError: a value of 11 letters" in said.err
    assert CANARY not in said.err


def test_chatter_is_not_shown(capsys: pytest.CaptureFixture[str]) -> None:
    structlog.get_logger("treadle.test").info("nobody asked")
    assert capsys.readouterr() == ("", "")


def test_a_library_writes_warnings_to_stderr_and_nothing_to_the_application_s_output(
    capsys: pytest.CaptureFixture[str],
) -> None:
    structlog.reset_defaults()
    log = logger("treadle.test")
    log.info("nobody asked")
    log.warning("a node is gone", node="n1")
    said = capsys.readouterr()
    assert said.out == ""
    assert "a node is gone" in said.err
    assert "nobody asked" not in said.err


def test_where_the_application_has_configured_its_logging_everything_goes_there(
    capsys: pytest.CaptureFixture[str],
) -> None:
    structlog.reset_defaults()
    log = logger("treadle.test")  # made before it is configured, as on import
    with structlog.testing.capture_logs() as logs:
        log.info("shards were taken", all=64)
    assert logs == [{"event": "shards were taken", "all": 64, "log_level": "info"}]
    assert capsys.readouterr() == ("", "")
