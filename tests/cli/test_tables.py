"""What gives way in a table where a terminal is narrow, and what never does."""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import subprocess
import termios
from pathlib import Path

import pytest

from tests.cli.shell import COMMAND, Shell
from treadle.cli.nodes import nodes
from treadle.cli.nodes.nodes import ranges
from treadle.cli.runs import gates, requests, runs
from treadle.cli.screen.tables import Gives, lay_out, lines

RUN = "01a1e34e-9106-7641-b453-1cc11c8940fc"
GATE_ROW = {
    "gate": f"{RUN}/32",
    "workflow": "order",
    "node": "approve",
    "title": "Please have a look at this rather long order and say whether it may go out",
    "assign": "sales",
    "claimed_by": "ada",
    "open_for": "2.0 s",
    "due_at": "2026-11-16 07:42:19",
}
RUN_ROW = {
    "run": RUN,
    "workflow": "order-with-a-long-name",
    "version": "12",
    "status": "compensation_failed",
    "started_at": "2026-11-16 07:42:19",
    "took": "12 min 10 s",
    "tags": "customer-4711, urgent, europe",
}
REQUEST_ROW = {
    "request": f"kept-{RUN}",
    "run": RUN,
    "asks": "skip compensation",
    "asked_at": "2026-11-16 07:42:19",
    "by": "operator",
    "status": "refused",
    "reason": "gate of visit 1 was answered by somebody at 2026-11-16T07:42:44.194Z with what she had found out",
}
FRAGMENTED = ranges(tuple(range(0, 64, 2)))
NODE_ROW = {
    "node": "ip-10-0-12-33.internal:27216",
    "role": "engine",
    "queues": "all",
    "shards": FRAGMENTED,
    "since": "2026-11-16 04:10:12",
    "last_beat": "0.9 s ago",
    "behind": "",
    "lacks": "",
}


def drawn(columns: tuple[str, ...], row: dict[str, str], width: int, gives: tuple[Gives, ...]) -> list[str]:
    return [line.plain for line in lines(lay_out(columns, [row], width, gives), [row])]


@pytest.mark.parametrize("width", [80, 120])
def test_what_one_must_type_is_never_cut_off(width: int) -> None:
    for columns, row, gives, typed in (
        (gates.COLUMNS, GATE_ROW, gates.GIVES, "c8940fc/32"),
        (runs.COLUMNS, RUN_ROW, runs.GIVES, "1cc11c8940fc"),
        (nodes.COLUMNS, NODE_ROW, nodes.GIVES, ":27216"),
        (requests.COLUMNS, REQUEST_ROW, requests.GIVES, "1cc11c8940fc"),
    ):
        table = drawn(columns, row, width, gives)
        assert typed in table[1]
        assert max(map(len, table)) <= width


def test_fragmented_shards_shrink_and_nothing_else_does() -> None:
    head, body = drawn(nodes.COLUMNS, NODE_ROW, 100, nodes.GIVES)
    assert NODE_ROW["node"] in body
    assert "0.9 s ago" in body
    assert "32: 0, 2, " in body
    assert "…" in body
    assert head.split() == ["node", "role", "queues", "shards", "since", "last", "beat"]


def test_what_was_left_out_makes_room_for_what_was_cut() -> None:
    (row,) = [{"a": "x" * 20, "b": "y" * 30}]
    gives: tuple[Gives, ...] = (("cut", "a"), ("leave", "b"))
    assert drawn(("a", "b"), row, 24, gives)[1] == "x" * 20


def test_a_pipe_has_room_for_everything() -> None:
    body = drawn(runs.COLUMNS, RUN_ROW, 100_000, runs.GIVES)[1]
    assert all(part in body for part in RUN_ROW.values())


def test_a_long_message_goes_on_below() -> None:
    row = {"run": "", "message": "its history ends at 4 and " * 6}
    body = drawn(("run", "message"), row, 60, (("leave", "run"), ("wrap", "message")))
    assert len(body) > 3
    assert " ".join(" ".join(body[1:]).split()) == " ".join(row["message"].split())


def test_a_table_nobody_said_anything_about_is_cut_where_it_is_widest() -> None:
    body = drawn(("a", "b"), {"a": "x" * 100, "b": "short"}, 60, ())[1]
    assert len(body) == 60
    assert body.endswith("short")


def on_a_terminal(shell: Shell, width: int, *words: str) -> str:
    """What a verb writes to a terminal of so many columns."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, width, 0, 0))
    with os.fdopen(ours, "rb", buffering=0) as screen:
        done = subprocess.Popen(
            [*COMMAND, *words],
            stdin=subprocess.DEVNULL,
            stdout=theirs,
            stderr=subprocess.PIPE,
            cwd=shell.folder,
            env={**shell.surroundings(words), "TERM": "dumb", "NO_COLOR": "1"},
        )
        os.close(theirs)
        seen = b""
        try:
            while piece := screen.read(4096):
                seen += piece
        except OSError:  # the other end is closed: that is how a terminal ends on Linux
            pass
        assert done.stderr is not None
        with done.stderr:
            assert done.wait(timeout=60) == 0, done.stderr.read()
    return seen.decode().replace("\r\n", "\n")


def test_a_narrow_terminal_shows_names_that_can_be_typed_again(desk: Shell) -> None:
    shell = desk
    text = "workflow: a-rather-long-name-of-a-workflow\nnodes: {ask: {action: {kind: human, title: Really?}}}\n"
    shell.write("ask.yaml", text)
    with shell.going("engine", "--deploy", "ask.yaml", until="coordinates"):
        shell("run", "a-rather-long-name-of-a-workflow", "--no-wait", "--tag", "one-of-many-tags-somebody-gave")
        table = on_a_terminal(shell, 80, "runs", "list")
        assert max(map(len, table.splitlines())) <= 80
        shown = table.splitlines()[1].split()[0]
        assert shown.startswith("…")
        assert shell.json("runs", "show", shown)["workflow"] == "a-rather-long-name-of-a-workflow"
        gate = on_a_terminal(shell, 60, "gates", "list").splitlines()[1].split()[0]
        shell("gates", "complete", gate)


def test_settings_are_not_cut_but_go_on_below(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    shell.write("treadle.toml", 'store = "postgresql://a-rather-long-name.example.org/with_a_long_name"\n')
    for words, shown in (("config",), "(PostgreSQL)"), (("config", "--origin"), "…treadle.toml"):
        table = on_a_terminal(shell, 80, *words)
        assert max(map(len, table.splitlines())) <= 80
        assert shown in table and "with_a_long" in table
