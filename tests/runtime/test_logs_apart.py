"""A test finds logging, and what is known of an outage, as a new process does: tests do not depend on each other's."""

from __future__ import annotations

import logging

import pytest
import structlog

from treadle.errors import StoreUnavailable
from treadle.runtime.surroundings.logs import log_to_stderr, logger
from treadle.runtime.surroundings.outage import OUTAGE


@pytest.mark.parametrize("turn", [1, 2])
def test_what_a_test_configures_is_gone_in_the_next(turn: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert not structlog.is_configured(), f"turn {turn}"
    logger("treadle.test").warning("heard")
    OUTAGE.failed("reading", StoreUnavailable("the disk is full"))
    said = capsys.readouterr().err
    assert "heard" in said and "the store does not answer: trying again" in said
    log_to_stderr(logging.ERROR)
    logger("treadle.test").warning("not heard")
    assert capsys.readouterr().err == ""
