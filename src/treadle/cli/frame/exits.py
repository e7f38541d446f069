"""Exit codes, and the one line that an error prints.

Owns the codes that all verbs use (docs/reference/cli.md lists them, a test compares) and the code of each exception. It
prints one line per error; before it, if the error is in a definition, its problems as `validate` shows them. `--debug`
adds the traceback.
"""

from __future__ import annotations

import sys
import traceback

OK = 0
NO = 1
"""The answer is no: the run failed, a scenario does not hold, `fsck` or `doctor` found something."""
USAGE = 2
INVALID = 3
"""Something the user gave is invalid: a definition, an input, a form, a schedule, treadle.toml."""
REFUSED = 4
"""The named thing does not exist, or refuses the command: an unknown run, a gate that is not open."""
STORE = 5
"""The store cannot be used: no such file, another process owns it, the disk is full, no engine answers."""
BUG = 70
BROKEN_PIPE = 120
INTERRUPTED = 130

CODES = {
    OK: "done; of `run --wait` and `runs watch`: the run completed",
    NO: "the answer is no: the run failed, a scenario does not hold, `fsck` or `doctor` found something",
    USAGE: "wrong usage",
    INVALID: "something given is invalid: a definition, an input, a form, a schedule, `treadle.toml`",
    REFUSED: "the named thing does not exist, or refuses the command",
    STORE: "the store cannot be used: no such file, another process owns it, the disk is full, no engine answers",
    BUG: "a bug in Treadle; `--debug` shows where",
    BROKEN_PIPE: "the reader of the output closed the pipe",
    INTERRUPTED: "interrupted (Ctrl-C); a run that was started goes on when an engine opens the store again",
}

_KINDS_INVALID = frozenset({"SCHEMA", "BAD_REQUEST", "INVALID_COLLECTION", "LIMIT_EXCEEDED"})


class VerbFailed(Exception):
    """A verb cannot go on. The message is one line for the user: the wrong thing, its place, the remedy."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


def conclude(problem: BaseException, *, debug: bool) -> int:
    """Prints the line of an exception and returns its exit code."""
    if debug:
        traceback.print_exception(problem, file=sys.stderr)
    code = code_of(problem)
    if code == BUG:
        line = f"this is a bug: {type(problem).__name__}: {problem}" + ("" if debug else " (--debug shows where)")
    else:
        line = _problems(problem) or str(problem)
    print(f"treadle: {line}", file=sys.stderr)
    return code


def _problems(problem: BaseException) -> str:
    """Prints every problem of a DefinitionError and returns their count in words; empty for any other exception."""
    from treadle.errors import DefinitionError
    from treadle.language import Problem

    if not isinstance(problem, DefinitionError):
        return ""
    from treadle.cli.screen.output import console
    from treadle.cli.screen.problems import show_problems

    shown = [one for one in problem.problems if isinstance(one, Problem)]
    show_problems(console(stderr=True), shown, None)
    errors = sum(one.severity == "error" for one in shown)
    return f"{errors} {'errors' if errors > 1 else 'error'}; nothing was deployed" if errors else ""


def code_of(problem: BaseException) -> int:
    """The exit code of an exception."""
    if isinstance(problem, VerbFailed):
        return problem.code
    from treadle import errors as x

    if isinstance(problem, x.MoveRefused):
        return REFUSED
    if isinstance(problem, x.CommandRefused):
        return INVALID if problem.kind in _KINDS_INVALID else REFUSED
    if isinstance(problem, x.DefinitionError | x.ExpressionError | x.ScenarioError | x.PathSyntax | x.SettingsInvalid):
        return INVALID
    if isinstance(
        problem,
        x.OwnedElsewhere | x.StoreUnavailable | x.StorePlaceError | x.StoreDamaged | x.EngineStopped | x.StoreConflict,
    ):
        return STORE
    if isinstance(problem, OSError):
        return STORE
    if isinstance(problem, x.TreadleError):
        return NO
    return BUG
