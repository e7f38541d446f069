"""`shell {argv, cwd?, env?, stdin?, ok_exit_codes?}`: runs a program with a list of arguments.

Off unless the operator enables it. No shell interprets anything: data reaches the program as arguments, environment or
input. Secrets are passed by `env` or `stdin` only, because every user of the machine can read arguments. The
environment holds only the variables that the policy passes through and those that the action sets.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct

from treadle.actions.configured import Settled, with_secrets
from treadle.actions.failure import TaskFailure
from treadle.actions.protocol import Call, Done, Failed, Reply, failed
from treadle.actions.sandbox import OWN, READABLE, Bubblewrap, SandboxLimits, other_user, wrapped
from treadle.actions.secrets import SecretProvider, holds_secret, revealed
from treadle.actions.shell_process import ProcessEnd, Program, run_program

Json = Any
PATH = "/usr/local/bin:/usr/bin:/bin"
EXCERPT = 2_000
"""Characters of each stream kept in an error: its end, where programs say what went wrong."""
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


class ShellPolicy(Struct, frozen=True, kw_only=True):
    """The operator's rules for programs. None may run unless `enabled`."""

    enabled: bool = False
    sandbox: Literal["bubblewrap", "none"] = "bubblewrap"
    allow: tuple[str, ...] | None = None
    """Allowed programs, by name or path; None: any. An allowed program may start any other that the sandbox has."""
    strings: bool = False
    """Whether a text may stand for `argv`; it is then given to `/bin/sh -c`."""
    env: tuple[str, ...] = ()
    """Variables of the engine that programs see; they see no others."""
    cwd: str | None = None
    """The one directory programs may work in, writable; None: a fresh one per attempt, gone afterwards."""
    path: str = PATH
    readable: tuple[str, ...] = READABLE
    """In the sandbox: folders that can be read."""
    network: bool = False
    """In the sandbox: whether there is a network."""
    output_max: int = 1024 * 1024
    """Bytes of each stream that are kept."""
    processes_max: int = 64
    """In the sandbox: processes at once."""
    memory_max: int = 1024 * 1024 * 1024
    """In the sandbox: bytes of data of each process."""
    file_max: int = 256 * 1024 * 1024
    """In the sandbox: bytes of each file that is written."""
    disk_max: int = 256 * 1024 * 1024
    """In the sandbox: bytes of `/tmp` and of the fresh directory together; `cwd` is the operator's own file system."""
    user: int | None = None
    """User id of programs in the sandbox when the engine is root; None: `nobody` (65534). That user must be able to
    write to `cwd`."""
    grace_ms: int = 2_000
    """Time between SIGTERM and SIGKILL."""
    bwrap: str = "bwrap"


class ShellKind:
    """Runs programs as one policy allows."""

    name = "shell"

    def __init__(self, policy: ShellPolicy, secrets: SecretProvider) -> None:
        self._policy = policy
        self._secrets = secrets
        self._limits = SandboxLimits(
            processes=policy.processes_max, memory=policy.memory_max, file=policy.file_max, disk=policy.disk_max
        )
        self._bubblewrap = Bubblewrap(policy.bwrap, self._limits, policy.user)

    def run(self, call: Call) -> Reply:
        if not self._policy.enabled:
            return failed("shell actions are off; the operator enables them with ShellPolicy(enabled=True)")
        return with_secrets(call, self._secrets, self._execute)

    async def _execute(self, settled: Settled) -> Done | Failed:
        argv = self._argv(settled.get("argv"))
        env = self._environment(settled.get("env"))
        stdin = _input(settled.get("stdin"))
        codes = _codes(settled.get("ok_exit_codes"))
        limit, grace_s = self._policy.output_max, self._policy.grace_ms / 1000
        with self._directory(settled.get("cwd")) as (work, cwd):
            if self._policy.sandbox == "bubblewrap":
                argv = await self._boxed(argv, work, cwd)
                program = Program(argv, env, "/", stdin, limit, grace_s, user=other_user(self._policy.user))
            else:
                program = Program(argv, env, cwd, stdin, limit, grace_s)
            ended = await run_program(program)
        return _outcome(ended, codes)

    async def _boxed(self, argv: list[str], work: str, cwd: str) -> list[str]:
        mine = self._policy.cwd is None
        return wrapped(
            await self._bubblewrap.path(),
            argv,
            work=None if mine else work,
            chdir=OWN if mine else cwd,
            readable=self._policy.readable,
            network=self._policy.network,
            limits=self._limits,
        )

    def _argv(self, value: Json) -> list[str]:
        if holds_secret(value):
            raise TaskFailure("a secret must not stand in `argv`, where everybody can read it: use `env` or `stdin`")
        if isinstance(value, str):
            if not self._policy.strings:
                raise TaskFailure("`argv` is a list of arguments; the operator does not allow a text for a shell")
            value = ["/bin/sh", "-c", value]
        if not isinstance(value, list) or not value:
            raise TaskFailure("`argv` must be a list: the program, then its arguments")
        arguments = [_argument(item) for item in value]
        return [self._program(arguments[0]), *arguments[1:]]

    def _program(self, name: str) -> str:
        """The program's file; raises TaskFailure if it is not allowed or not there."""
        found = shutil.which(name, path=self._policy.path) if name else None
        allow = self._policy.allow
        if allow is not None and (
            found is None or found not in {shutil.which(p, path=self._policy.path) for p in allow}
        ):
            raise TaskFailure(f"the operator does not allow the program {name[:200]!r}; allowed: {', '.join(allow)}")
        if found is None or not Path(found).is_absolute():
            raise TaskFailure(f"there is no program {name[:200]!r} in {self._policy.path}", kind="NOT_FOUND")
        return found

    def _environment(self, value: Json) -> dict[str, str]:
        if value is not None and not isinstance(value, dict):
            raise TaskFailure("`env` must be a map from names to texts")
        env = {name: os.environ[name] for name in self._policy.env if name in os.environ}
        env.setdefault("PATH", self._policy.path)
        for name, item in (value or {}).items():
            if not _VARIABLE.match(name) or name.startswith("LD_"):
                raise TaskFailure(f"the environment variable {name[:80]!r} cannot be set")
            if item is not None:
                env[name] = _argument(revealed(item))
        return env

    @contextmanager
    def _directory(self, cwd: Json) -> Iterator[tuple[str, str]]:
        """The writable directory, and the place in it where the program begins."""
        if cwd is not None and not isinstance(cwd, str):
            raise TaskFailure("`cwd` must be text")
        if self._policy.cwd is not None:
            yield _within(self._policy.cwd, cwd or ".")
            return
        if cwd is not None:
            raise TaskFailure("`cwd` needs a directory of the operator's: ShellPolicy(cwd=…)")
        if self._policy.sandbox == "bubblewrap":
            yield OWN, OWN
            return
        with tempfile.TemporaryDirectory(prefix="treadle-shell-", ignore_cleanup_errors=True) as work:
            yield work, work


def _within(root: str, cwd: str) -> tuple[str, str]:
    """Resolved, so that neither `..` nor a symbolic link leads out."""
    top = Path(root).resolve()
    place = (top / cwd).resolve()
    if not place.is_relative_to(top) or not place.is_dir():
        raise TaskFailure(f"`cwd` {cwd[:200]!r} is no directory inside the one the operator allows")
    return str(top), str(place)


def _argument(value: Json) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise TaskFailure(f"arguments and variables are text or numbers, not {type(value).__name__}")
    text = str(value)
    if "\0" in text:
        raise TaskFailure("arguments and variables cannot hold a NUL character")
    return text


def _input(value: Json) -> bytes:
    value = revealed(value)
    if value is None:
        return b""
    return value.encode() if isinstance(value, str) else msgspec.json.encode(value)


def _codes(value: Json) -> frozenset[int]:
    if value is None:
        return frozenset([0])
    if not isinstance(value, list) or not all(type(code) is int for code in value):
        raise TaskFailure("`ok_exit_codes` must be a list of whole numbers")
    return frozenset(value)


def _outcome(ended: ProcessEnd, ok: frozenset[int]) -> Done | Failed:
    code = ended.exit_code
    stdout = _text(ended.stdout, ended.dropped.get("stdout"))
    stderr = _text(ended.stderr, ended.dropped.get("stderr"))
    if code in ok:
        return Done({"exit_code": code, "stdout": stdout, "stderr": stderr})
    how = f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}"
    last = stderr.strip().rpartition("\n")[2][:300]
    details = {"exit_code": code, "stdout": stdout[-EXCERPT:], "stderr": stderr[-EXCERPT:]}
    return failed(f"the program {how}" + (f": {last}" if last else ""), details=details)


def _text(output: bytes, dropped: int | None) -> str:
    text = output.decode(errors="replace")
    return f"{text}\n[… {dropped} bytes more were dropped]" if dropped else text
