"""A plug-in of pytest for `./dev test`: what was skipped and why is told at the end, and only known reasons pass.

Owns the list of reasons. A test that is skipped in silence is no test: 451 of them once were, because a program was not
found. A reason that is not on the list makes the run fail; put it on the list only if nothing on the developer's side
could change it, or the test is one for machines of another kind.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

import pytest

EXPECTED: dict[str, str] = {
    r"this machine has no PostgreSQL of its own": "a second, older server: the one out of the wheel is tested anyway",
    r"there is no \w+ of version \S+ here": "the tools of a server that is not installed here",
    r"older servers read them inside the index": "a test of newer servers",
    r"this server asks for passwords": "somebody else's server, named by TREADLE_TEST_POSTGRES",
    r"pgbouncer is not installed": "an optional program",
    r"no node here": "JavaScript is an optional program",
    r"no sandbox here": "an optional program, and kernels that forbid it",
    r"the probes are written in Python": "a sandbox without the system's Python",
    r"only root could be root": "a test of what root must not do",
    r"this machine lets nobody mount": "containers without the right to mount",
    r"it reaches into the kernel": "the compiled kernel has no inside",
    r"no (node|perl|curl) here": "programs of examples in other languages are optional",
}
"""What a reason begins with → why it is all right."""


def unexpected(reasons: Iterable[str]) -> list[str]:
    """Those that are not on the list."""
    return sorted(reason for reason in set(reasons) if not any(re.match(known, reason) for known in EXPECTED))


def reason_of(report: pytest.TestReport | pytest.CollectReport) -> str:
    """In one line."""
    said = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    return " ".join(said.removeprefix("Skipped: ").split())


def _skipped(config: pytest.Config) -> Counter[str]:
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    return Counter(reason_of(report) for report in reporter.stats.get("skipped", [])) if reporter else Counter()


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    if exitstatus == pytest.ExitCode.OK and unexpected(_skipped(session.config)):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    skipped = _skipped(config)
    if not skipped:
        return
    wrong = unexpected(skipped)
    terminalreporter.section(f"{skipped.total()} skipped")
    for reason, count in skipped.most_common():
        terminalreporter.line(f"{'✗' if reason in wrong else ' '} {count:4}  {reason}", red=reason in wrong)
    if wrong:
        terminalreporter.line("✗: not on the list in tests/skips.py, so this run has failed", red=True)
