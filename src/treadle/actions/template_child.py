"""The child process of `bounded.py`: it renders templates and does nothing else.

A template can ask for more memory than the machine has in a handful of instructions (a string that doubles itself), and
the library then ends its process. So templates are rendered in this process, with a limit on its memory, and not in the
engine's. It reads requests from its standard input, `{template, name, variables}` as JSON behind four bytes of length,
and answers on its standard output in the same way. Run as a script: it imports nothing of Treadle, to start quickly.
"""

from __future__ import annotations

import json
import resource
import struct
import sys

from minijinja import Environment, TemplateError


def main(memory: int, fuel: int, text_max: int) -> None:
    """Answers requests until the engine closes the pipe."""
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    environment = Environment(undefined_behavior="strict", fuel=fuel, keep_trailing_newline=True)
    while len(head := sys.stdin.buffer.read(4)) == 4:
        request = sys.stdin.buffer.read(struct.unpack(">I", head)[0])
        try:
            asked = json.loads(request)
            text = environment.render_str(asked["template"], asked["name"], **asked["variables"])
            answer: dict[str, str | int | None] = {"text": text} if len(text) <= text_max else {"size": len(text)}
        except TemplateError as problem:
            answer = {"error": problem.message, "line": problem.line}
        packed = json.dumps(answer).encode()
        sys.stdout.buffer.write(struct.pack(">I", len(packed)) + packed)
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:4]))
