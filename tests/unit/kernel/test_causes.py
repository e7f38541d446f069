"""What an error says about the failures behind it, and that it stays small."""

from __future__ import annotations

import msgspec

from treadle.kernel.causes import CAUSES_MAX, DEPTH_MAX, MESSAGE_MAX, of_child, with_branches
from treadle.kernel.group_state import Group
from treadle.model.errors import Cause, Error
from treadle.model.ids import GroupId, RunId, TokenId


def group(failed: dict[int, Error]) -> Group:
    size = len(failed)
    names = ("transition:t",)
    return Group(
        GroupId(1), names, TokenId(1), "a", "root", (), size, ("t",), None, None, True, True, False, None, 0, False,
        failed=failed,
    )  # fmt: skip


def test_a_hundred_thousand_failed_branches_make_a_small_error() -> None:
    died = {branch: Error("TASK_FAILED", "x" * 2_000, "b", "root", 1) for branch in reversed(range(100_000))}
    error = with_branches(Error("QUORUM_UNREACHABLE", "too few"), group(died))
    assert [cause.branch for cause in error.causes] == [0, 1, 2]
    assert error.more_causes == 100_000 - CAUSES_MAX
    assert error.message.endswith("; and 99997 more")
    assert len(msgspec.json.encode(error)) < 3_000


def test_causes_of_causes_end_somewhere() -> None:
    error = Error("TASK_FAILED", "y" * 5_000, "leaf")
    for _ in range(10):
        error = with_branches(Error("BRANCH_FAILED", "branch 0 failed", "join"), group(dict.fromkeys(range(9), error)))
        error = of_child(RunId("r.1"), "child", "failed", error)
    assert _depth(error.causes) == DEPTH_MAX
    assert len(msgspec.json.encode(error)) < 40 * (MESSAGE_MAX + 200)


def _depth(causes: tuple[Cause, ...]) -> int:
    return max((1 + _depth(cause.causes) for cause in causes), default=0)


def test_an_error_without_causes_looks_as_before() -> None:
    assert set(Error("X", "y").as_json()) == {"kind", "message", "node", "path", "attempts", "retryable"}
