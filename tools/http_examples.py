"""Plays the examples of a page about HTTP, so that every answer in it was given by a service.

    .venv/bin/python -m tools.http_examples docs/reference/http-examples.md

A block ```` ```console ```` holds commands and answers. `$ t [-X METHOD] [-d BODY] PATH [| jq PATH]` is a request below
/api/v1 with a key; `$ NAME=$(t …)` keeps its answer for later blocks. What differs from one playing to the next is
written in a fixed way: ids, instants, durations, hashes, cursors. tests/server/test_http_examples.py fails while a page
is not what this writes.
"""

from __future__ import annotations

import json
import re
import shlex
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

Json = Any
Ask = Callable[[str, str, bytes | None, str], tuple[int, bytes]]
"""Method, path, body and its media type → status and body."""

BLOCK = re.compile(r"```console\n(.*?)```\n", re.DOTALL)
UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
KEPT = re.compile(r"(\w+)=\$\((.*)\)", re.DOTALL)
INSTANT = 1_790_000_000_000
"""Stands for every instant."""


class Playing:
    """One page, from its first block to its last."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        self._kept: dict[str, str] = {}
        self._ids: dict[str, str] = {}

    def page(self, text: str) -> str:
        """The page with the answers that were given now."""
        return BLOCK.sub(lambda block: f"```console\n{self._block(block[1])}```\n", text)

    def _block(self, text: str) -> str:
        lines: list[str] = []
        for command in _commands(text):
            lines.append(f"$ {command}")
            kept = KEPT.fullmatch(command)
            answer = self._play(kept[2] if kept else command)
            if kept:
                self._kept[kept[1]] = answer if isinstance(answer, str) else json.dumps(answer)
            else:
                lines.append(
                    answer if isinstance(answer, str) else json.dumps(self._fixed(answer), indent=2, ensure_ascii=False)
                )
        return "\n".join(lines) + "\n"

    def _play(self, command: str) -> Json:
        request, _, filter_ = command.partition(" | jq ")
        words = shlex.split(self._filled(request))
        assert words.pop(0) == "t", command
        method, body, kind, path = "GET", None, "application/json", ""
        while words:
            word = words.pop(0)
            if word == "-X":
                method = words.pop(0)
            elif word == "-d":
                body, method = words.pop(0).encode(), "POST" if method == "GET" else method
            elif word == "-H":
                kind = words.pop(0).partition(": ")[2]
            else:
                path = word
        _status, answer = self._ask(method, path, body, kind)
        if not answer:
            return "(no body)"
        try:
            value = json.loads(answer)
        except ValueError:
            return self._fixed(answer.decode().strip())
        return _found(value, filter_.strip().removeprefix("-r ")) if filter_ else value

    def _filled(self, text: str) -> str:
        for name, value in self._kept.items():
            text = text.replace(f"${name}", value)
        return text

    def _fixed(self, value: Json, key: str = "") -> Json:
        """The value without what differs from one playing to the next."""
        if isinstance(value, dict):
            return {name: self._fixed(each, name) for name, each in value.items()}
        if isinstance(value, list):
            return [self._fixed(each, key) for each in value]
        if isinstance(value, str):
            if key in ("next", "request_id", "owner", "node_name"):
                return "…"
            if re.fullmatch(r"(sha256:)?[0-9a-f]{64}", value):
                return f"{value[:12]}…" if key != "hash" else "5f0e…"
            return UUID.sub(lambda match: self._id(match[0]), value)
        if isinstance(value, int) and not isinstance(value, bool):
            if value > 1_500_000_000_000:
                return INSTANT
            if key.endswith("_ms") and key not in ("every_ms", "elapsed_ms", "jitter_ms"):
                return 3
        return value

    def _id(self, text: str) -> str:
        return self._ids.setdefault(text, f"019a0000-0000-7000-8000-{len(self._ids) + 1:012d}")


def _commands(text: str) -> list[str]:
    """The commands of a block; one may go over several lines that are indented."""
    found: list[str] = []
    inside = False
    for line in text.splitlines():
        if line.startswith("$ "):
            found.append(line[2:])
            inside = True
        elif inside and line.startswith("    "):
            found[-1] += f"\n{line}"
        else:
            inside = False
    return found


def _found(value: Json, path: str) -> Json:
    for name, index in re.findall(r"\.([A-Za-z_]\w*)|\[(\d+)\]", path):
        value = value[name] if name else value[int(index)]
    return value


def main() -> None:
    """Writes pages anew."""
    from tests.server.client import Served

    for name in sys.argv[1:]:
        page = Path(name)
        with tempfile.TemporaryDirectory() as folder, Served(str(Path(folder) / "t.db"), Path(folder)) as served:
            page.write_text(Playing(asking(served)).page(page.read_text("utf-8")), "utf-8")


def asking(served: Any) -> Ask:
    """Requests with an admin's key."""
    caller = served.as_("admin")

    def ask(method: str, path: str, body: bytes | None, kind: str) -> tuple[int, bytes]:
        headers = {"Content-Type": kind} if body is not None else {}
        reply = caller(method, f"/api/v1{path}", body, headers)
        return reply.status, reply.raw

    return ask


if __name__ == "__main__":
    main()
