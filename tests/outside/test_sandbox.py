"""Bubblewrap around `shell`: what a program must not reach. Skipped only where bubblewrap cannot run."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.outside.peers import answering, error, output, peer, run
from tests.outside.programs import BOXED, execute, is_gone, needs_bubblewrap, shell, told
from treadle.actions.sandbox import SandboxLimits, wrapped
from treadle.actions.shell import ShellPolicy

LIMITS = SandboxLimits(processes=9, memory=1 << 30, file=1 << 20, disk=1 << 20)


@pytest.fixture
def shared(tmp_path: Path) -> Iterator[Path]:
    """A folder that the user programs run as may enter and write to. `tmp_path` lies below one that only its owner may
    enter."""
    with tempfile.TemporaryDirectory(prefix="treadle-test-") as folder:
        Path(folder).chmod(0o777)
        yield Path(folder)


def test_a_required_sandbox_that_is_missing_is_a_refusal_with_the_remedy(tmp_path: Path) -> None:
    marker = tmp_path / "ran"
    policy = ShellPolicy(enabled=True, bwrap="no-such-bwrap", cwd=str(tmp_path))
    problem = error(shell({"argv": ["touch", str(marker)]}, policy=policy))
    assert "Install bubblewrap" in problem.message
    assert "sandbox='none'" in problem.message
    assert not marker.exists()


def test_a_sandbox_that_cannot_start_is_a_refusal_and_says_why(shared: Path) -> None:
    broken, marker = shared / "bwrap", shared / "ran"
    broken.write_text("#!/bin/sh\necho 'bwrap: no permissions to create a namespace' >&2\nexit 1\n")
    policy = ShellPolicy(enabled=True, bwrap=str(broken), cwd=str(shared))
    broken.chmod(0o755)
    problem = error(shell({"argv": ["touch", str(marker)]}, policy=policy))
    assert "no permissions to create a namespace" in problem.message
    assert not marker.exists()


def test_the_command_line_names_no_variable_and_shares_no_network_unless_told() -> None:
    command = wrapped(
        "bwrap", ["prog", "arg"], work="/w", chdir="/w/x", readable=("/usr",), network=False, limits=LIMITS
    )
    assert command[:4] == ["bwrap", "--unshare-all", "--unshare-user", "--disable-userns"]
    assert command[-2:] == ["prog", "arg"]
    assert "--bind /w /w --remount-ro / --chdir /w/x -- " in " ".join(command)
    assert not {"--share-net", "--setenv"} & set(command)
    assert "--share-net" in wrapped("bwrap", ["p"], work="/w", chdir="/w", readable=(), network=True, limits=LIMITS)


@needs_bubblewrap
def test_a_program_runs_inside_and_writes_into_its_directory_only(shared: Path) -> None:
    policy = ShellPolicy(enabled=True, cwd=str(shared))
    script = "echo hi > here; (echo no > /usr/there) 2>/dev/null || echo refused; cat here"
    assert output(shell({"argv": ["sh", "-c", script]}, policy=policy))["stdout"] == "refused\nhi\n"
    assert (shared / "here").read_text() == "hi\n"


@needs_bubblewrap
@pytest.mark.parametrize("path", ["{other}/database.db", "~/.ssh", "/etc/shadow", "/proc/{pid}/environ"])
def test_what_is_not_the_programs_business_is_not_there(path: str, tmp_path: Path) -> None:
    (tmp_path / "database.db").write_text("private")
    place = path.format(other=tmp_path, pid=os.getpid()).replace("~", os.path.expanduser("~"))  # noqa: PTH111
    problem = error(shell({"argv": ["cat", place]}, policy=BOXED))
    assert "No such file" in problem.details["stderr"]


@needs_bubblewrap
def test_there_is_no_network_inside() -> None:
    async def whole() -> Any:
        async with peer(answering()) as server:
            code = f"exec 3<>/dev/tcp/127.0.0.1/{server.port}"
            assert shutil.which("bash"), "the probe needs bash"
            return await execute({"argv": ["bash", "-c", code]}, policy=BOXED), server

    reply, server = run(whole())
    assert error(reply).details["exit_code"] != 0
    assert server.seen == []


@needs_bubblewrap
def test_secrets_reach_the_program_by_its_environment() -> None:
    config = {"argv": ["sh", "-c", 'test "$KEY" = s3cret-value && echo yes'], "env": {"KEY": {"secret": "KEY"}}}
    assert output(shell(config, policy=BOXED, secrets={"KEY": "s3cret-value"}))["stdout"] == "yes\n"


@needs_bubblewrap
def test_nobody_escapes_by_leaving_the_group(shared: Path) -> None:
    """`setsid` leaves session and group, not the sandbox; seen from outside by the pipe it holds open."""
    fifo = shared / "told"
    policy = ShellPolicy(enabled=True, cwd=str(shared), grace_ms=100)
    script = "setsid sh -c 'trap \"\" TERM; exec 9>held; echo 1 > told; read x < never' & wait"
    for name in ("told", "held", "never"):
        os.mkfifo(shared / name)
        (shared / name).chmod(0o666)

    async def whole() -> None:
        held = asyncio.create_task(asyncio.to_thread((shared / "held").read_bytes))
        task = asyncio.create_task(execute({"argv": ["sh", "-c", script]}, policy=policy))
        await told(fifo)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await held == b""  # its end: nobody holds the pipe any more

    run(whole())


def test_the_probe_knows_the_living_from_the_dead() -> None:
    assert not is_gone(os.getpid())
    assert is_gone(2**22 + 1)
    assert sys.platform == "linux"
