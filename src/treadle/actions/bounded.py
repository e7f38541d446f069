"""Templates rendered within bounds: fuel, memory, time, and size of the text. A bomb fails its attempt, nothing else.

minijinja bounds the number of instructions, not the memory of one instruction: forty that double a string make a
terabyte, and a failed allocation ends the process. So a template is rendered in this process only if it merely puts
values into a text, whose size is known beforehand. Every other template is rendered in a child process with limited
memory (`template_child.py`), which is kept for the next rendering. Measured on a busy machine: 0.03 ms here, 1 ms in an
idle child, 200 ms in a new one.

Owns the children. Promises that `render` never takes more than the limits, and that the death of a child fails only one
rendering. Blocks while a child works: call it where blocking is allowed.
"""

from __future__ import annotations

import json
import re
import struct
import subprocess
import sys
from pathlib import Path
from threading import Lock, Timer
from typing import Any

import msgspec
from minijinja import Environment, TemplateError

from treadle.actions.failure import TaskFailure

Json = Any
FUEL = 1_000_000
"""Instructions per rendering: a list of some 100,000 lines, well under a second."""
TEXT_MAX = 4 * 1024 * 1024
"""Characters of a rendered text, as many bytes as an expression may read: more is an artifact, not a message."""
MEMORY = 384 * 1024 * 1024
"""Bytes a child may map: many times the largest text, and what Python itself maps."""
SECONDS = 20.0
"""Fuel ends a rendering in a second or two; copying large values over and over may take longer."""
IDLE_MAX = 2
"""Children kept for the next rendering, a few MiB each."""

_NAME = r"[A-Za-z_]\w*"
_PLACE = rf"{_NAME}(?:\.\w+|\[(?:\d+|'[^'\\]*'|\"[^\"\\]*\")\])*"
_HOLE = re.compile(rf"\{{\{{-?\s*{_PLACE}\s*(?:\|\s*(?:upper|lower|trim|title|capitalize|length|safe)\s*)*-?\}}\}}")
"""`{{ input.name | upper }}`: a value, and filters that at most double its length."""

_ENVIRONMENT = Environment(undefined_behavior="strict", fuel=FUEL, keep_trailing_newline=True)


class BrokenTemplate(TaskFailure):
    """A template that cannot be rendered: `line` says where."""

    def __init__(self, message: str, line: int | None) -> None:
        super().__init__(message, details={"line": line})


def render(template: str, name: str, variables: dict[str, Json]) -> str:
    """The rendered text. Raises BrokenTemplate, or TaskFailure of the kind LIMIT_EXCEEDED."""
    if is_small(template, variables):
        try:
            text: str = _ENVIRONMENT.render_str(template, name, **variables)
        except TemplateError as problem:
            raise BrokenTemplate(problem.message, problem.line) from None
        return text
    return CHILDREN.render(template, name, variables)


def is_small(template: str, variables: dict[str, Json]) -> bool:
    """Whether a template only puts values into a text that cannot become too long, and is rendered in place."""
    rest, holes = _HOLE.subn("", template)
    if "{" in rest and any(sign in rest for sign in ("{{", "{%", "{#")):
        return False
    return holes == 0 or len(template) + 2 * holes * len(msgspec.json.encode(variables)) <= TEXT_MAX


class Children:
    """The child processes that render: one for each rendering under way."""

    def __init__(self) -> None:
        self._idle: list[subprocess.Popen[bytes]] = []
        self._lock = Lock()

    def render(self, template: str, name: str, variables: dict[str, Json]) -> str:
        """Renders in a child process, which is killed if it takes too long."""
        asked = json.dumps({"template": template, "name": name, "variables": variables}).encode()
        child = self._taken()
        last_call = Timer(SECONDS, child.kill)
        last_call.daemon = True
        last_call.start()
        try:
            answer = _exchange(child, asked)
        finally:
            last_call.cancel()
            self._back(child)
        return _text(answer)

    def close(self) -> None:
        """Ends the idle children; the next rendering starts a new one."""
        with self._lock:
            idle, self._idle = self._idle, []
        for child in idle:
            _end(child)

    def _taken(self) -> subprocess.Popen[bytes]:
        with self._lock:
            while self._idle:
                child = self._idle.pop()
                if child.poll() is None:
                    return child
        limits = map(str, (MEMORY, FUEL, TEXT_MAX))
        return subprocess.Popen(
            [sys.executable, "-I", str(Path(__file__).with_name("template_child.py")), *limits],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )

    def _back(self, child: subprocess.Popen[bytes]) -> None:
        with self._lock:
            if child.poll() is None and len(self._idle) < IDLE_MAX:
                self._idle.append(child)
                return
        _end(child)


CHILDREN = Children()


def _exchange(child: subprocess.Popen[bytes], asked: bytes) -> dict[str, Json] | None:
    """The child's answer; None if the child died while it rendered."""
    assert child.stdin is not None
    assert child.stdout is not None
    try:
        child.stdin.write(struct.pack(">I", len(asked)) + asked)
        child.stdin.flush()
        head = child.stdout.read(4)
        if len(head) == 4:
            answer: dict[str, Json] = json.loads(child.stdout.read(struct.unpack(">I", head)[0]))
            return answer
    except (OSError, ValueError):
        pass
    child.kill()
    child.wait()
    return None


def _text(answer: dict[str, Json] | None) -> str:
    if answer is None:
        raise TaskFailure(
            f"the template takes more than a template may: {MEMORY >> 20} MiB of memory, or {SECONDS:.0f} s",
            kind="LIMIT_EXCEEDED",
        )
    if "size" in answer:
        text = f"the template makes a text of {answer['size']:,} characters; {TEXT_MAX:,} are allowed"
        raise TaskFailure(text, kind="LIMIT_EXCEEDED")
    if "error" in answer:
        raise BrokenTemplate(answer["error"], answer["line"])
    made: str = answer["text"]
    return made


def _end(child: subprocess.Popen[bytes]) -> None:
    for pipe in (child.stdin, child.stdout):
        if pipe is not None:
            pipe.close()
    child.kill()
    child.wait()
