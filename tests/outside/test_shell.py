"""`shell` with real processes."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from tests.outside.peers import error, output, run
from tests.outside.programs import OPEN, execute, is_gone, shell, told
from treadle.actions.shell import ShellPolicy


def test_shell_actions_are_off_unless_the_operator_enables_them() -> None:
    problem = error(shell({"argv": ["true"]}, policy=ShellPolicy()))
    assert "ShellPolicy(enabled=True)" in problem.message
    assert not problem.retryable


def test_a_program_gives_exit_code_and_both_streams() -> None:
    result = output(shell({"argv": ["sh", "-c", "echo out; echo err >&2"]}))
    assert result == {"exit_code": 0, "stdout": "out\n", "stderr": "err\n"}


INJECTIONS = [
    "; rm -rf /",
    "$(id)",
    "`id`",
    "&& id",
    "| id",
    "> f",
    "\n id",
    "'",
    '"',
    "*",
    "~",
    "-n",
    "$HOME",
    "\\",
    "%s",
]


@pytest.mark.parametrize("text", INJECTIONS)
def test_data_is_an_argument_and_never_read_by_a_shell(text: str) -> None:
    program = [sys.executable, "-c", "import sys; sys.stdout.write(sys.argv[1])", "$.input.text"]
    assert output(shell({"argv": program}, {"text": text}))["stdout"] == text


def test_arguments_environment_and_input_are_sources() -> None:
    code = "import os, sys; print(sys.argv[1:], os.environ['WHO'], sys.stdin.read())"
    config = {
        "argv": [sys.executable, "-c", code, "$.input.a", {"cel": "input.n + 1"}, 2.5],
        "env": {"WHO": "$.input.who", "NOT": "$.input.missing"},
        "stdin": "$.input.doc",
    }
    result = output(shell(config, {"a": "x", "n": 1, "who": "ann", "doc": {"k": [1]}}))
    assert result["stdout"] == "['x', '2', '2.5'] ann {\"k\":[1]}\n"


def test_a_text_for_a_shell_is_refused_unless_the_operator_allows_it() -> None:
    assert "does not allow a text" in error(shell({}, {"argv": "echo hi | tr h H"})).message
    assert output(shell({}, {"argv": "echo hi | tr h H"}, policy=replace(OPEN, strings=True)))["stdout"] == "Hi\n"


@pytest.mark.parametrize("argv", [[], {}, None, 5, ["echo", None], ["echo", ["a"]], ["echo", True], ["echo", "a\0b"]])
def test_what_is_no_list_of_arguments_is_refused(argv: Any) -> None:
    assert not error(shell({"argv": argv})).retryable


def test_the_exit_code_decides_and_the_error_carries_what_was_said() -> None:
    config: dict[str, Any] = {"argv": ["sh", "-c", "echo some; echo broken >&2; exit 3"]}
    problem = error(shell(config))
    assert problem.message == "the program ended with exit code 3: broken"
    assert problem.details == {"exit_code": 3, "stdout": "some\n", "stderr": "broken\n"}
    assert output(shell({**config, "ok_exit_codes": [0, 3]}))["exit_code"] == 3
    assert "killed by signal 9" in error(shell({"argv": ["sh", "-c", "kill -9 $$"]})).message


def test_the_environment_is_empty_but_for_what_is_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TREADLE_SECRET_X", "hidden")
    monkeypatch.setenv("LANG_OF_TEST", "de")
    policy = replace(OPEN, env=("LANG_OF_TEST",))
    config = {"argv": [sys.executable, "-c", "import os, json; print(json.dumps(dict(os.environ)))"], "env": {"A": 1}}
    seen = output(shell(config, policy=policy))["stdout"]
    names = set(__import__("json").loads(seen)) - {"LC_CTYPE"}  # set by Python itself
    assert names == {"PATH", "LANG_OF_TEST", "A"}


@pytest.mark.parametrize("name", ["LD_PRELOAD", "LD_LIBRARY_PATH", "A=B", "", "1A", "A B"])
def test_variables_that_change_what_runs_cannot_be_set(name: str) -> None:
    assert "cannot be set" in error(shell({"argv": ["true"], "env": {name: "x"}})).message


def test_only_listed_programs_run(tmp_path: Path) -> None:
    policy = replace(OPEN, allow=("echo", "/bin/cat"))
    assert output(shell({"argv": ["echo", "hi"]}, policy=policy))["stdout"] == "hi\n"
    impostor = tmp_path / "echo"
    impostor.write_text("#!/bin/sh\nexit 0\n")
    impostor.chmod(0o755)
    for name in ("sh", "/bin/sh", str(impostor), "./echo", "../echo", "no-such-program", ""):
        assert "does not allow the program" in error(shell({"argv": [name]}, policy=policy)).message


def test_a_program_that_is_not_there_is_named() -> None:
    problem = error(shell({"argv": ["no-such-program"]}))
    assert (problem.kind, "'no-such-program'" in problem.message) == ("NOT_FOUND", True)


def test_a_program_works_in_a_fresh_directory_that_is_removed_afterwards() -> None:
    first = output(shell({"argv": ["sh", "-c", "pwd; ls; echo x > left"]}))["stdout"].split()
    assert len(first) == 1
    assert not Path(first[0]).exists()


def test_cwd_stays_inside_the_directory_of_the_operator(tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "in").mkdir(parents=True)
    (root / "out").symlink_to(tmp_path)
    policy = replace(OPEN, cwd=str(root))
    assert output(shell({"argv": ["pwd", "-P"], "cwd": "in"}, policy=policy))["stdout"].strip() == str(root / "in")
    for cwd in ("..", "out", "/etc", "in/../..", "missing"):
        assert "no directory inside" in error(shell({"argv": ["pwd"], "cwd": cwd}, policy=policy)).message
    assert "ShellPolicy(cwd=" in error(shell({"argv": ["pwd"], "cwd": "in"})).message


def test_output_beyond_the_limit_is_dropped_and_marked() -> None:
    policy = replace(OPEN, output_max=1000)
    config = {"argv": [sys.executable, "-c", "import sys; sys.stdout.write('x' * 5_000_000); sys.stderr.write('done')"]}
    result = output(shell(config, policy=policy))
    assert result["stdout"] == "x" * 1000 + "\n[… 4999000 bytes more were dropped]"
    assert result["stderr"] == "done"


def test_a_program_that_does_not_read_its_input_still_ends() -> None:
    assert output(shell({"argv": ["true"], "stdin": "x" * 1_000_000}))["exit_code"] == 0


STUBBORN = """
import os, signal, sys
signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = os.fork()
if child == 0:
    while True: signal.pause()
with open(sys.argv[1], "w") as pipe: print(os.getpid(), child, file=pipe)
while True: signal.pause()
"""


def test_cancelling_ends_the_whole_group_also_when_it_ignores_sigterm(tmp_path: Path) -> None:
    fifo = tmp_path / "told"
    os.mkfifo(fifo)

    async def whole() -> list[int]:
        task = asyncio.create_task(execute({"argv": [sys.executable, "-c", STUBBORN, str(fifo)]}))
        pids = await told(fifo)
        assert not any(map(is_gone, pids))
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return pids

    pids = run(whole())
    assert len(pids) == 2
    assert all(map(is_gone, pids))


def test_cancelling_twice_leaves_nothing_behind_either(tmp_path: Path) -> None:
    fifo = tmp_path / "told"
    os.mkfifo(fifo)

    async def whole() -> list[int]:
        task = asyncio.create_task(execute({"argv": [sys.executable, "-c", STUBBORN, str(fifo)]}))
        pids = await told(fifo)
        task.cancel()
        asyncio.get_running_loop().call_soon(lambda: asyncio.get_running_loop().call_soon(task.cancel))
        with pytest.raises(asyncio.CancelledError):
            await task
        return pids

    assert all(map(is_gone, run(whole())))


def test_sigterm_comes_first_and_gives_time_to_tidy_up(tmp_path: Path) -> None:
    fifo, tidied = tmp_path / "told", tmp_path / "tidied"
    os.mkfifo(fifo)
    script = f"""
import os, signal, sys
def tidy(*_): open({str(tidied)!r}, "w").close(); os._exit(0)
signal.signal(signal.SIGTERM, tidy)
with open(sys.argv[1], "w") as pipe: print(os.getpid(), file=pipe)
while True: signal.pause()
"""

    async def whole() -> None:
        config = {"argv": [sys.executable, "-c", script, str(fifo)]}
        task = asyncio.create_task(execute(config, policy=replace(OPEN, grace_ms=10_000)))
        await told(fifo)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    run(whole())
    assert tidied.exists()


def test_a_child_left_in_the_background_does_not_outlive_the_attempt_nor_hold_it_up(tmp_path: Path) -> None:
    fifo = tmp_path / "told"
    os.mkfifo(fifo)
    script = f"""
import os, signal
child = os.fork()
if child == 0:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    with open({str(fifo)!r}, "w") as pipe: print(os.getpid(), file=pipe)
    while True: signal.pause()
with open({str(fifo)!r} + ".ready"): pass
print("bye")
"""
    ready = tmp_path / "told.ready"
    os.mkfifo(ready)

    async def whole() -> Any:
        task = asyncio.create_task(execute({"argv": [sys.executable, "-c", script]}))
        pids = await told(fifo)
        await asyncio.to_thread(ready.write_text, "")
        return pids, await task

    pids, reply = run(whole())
    assert output(reply)["stdout"] == "bye\n"
    assert all(map(is_gone, pids))
