"""The readers of strangers' input, each fed by Atheris with bytes that reach ever more of its code.

Runs inside one process, without HTTP: a million inputs take minutes. A reader may refuse by its own exception and may
raise nothing else. Atheris is no dependency: `./dev fuzz` runs this where it is installed.

    python -m tests.fuzz.coverage_guided json -max_total_time=60
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import atheris

with atheris.instrument_imports(include=["treadle.server", "treadle.language", "treadle.runtime.service"]):
    from treadle.errors import DefinitionError
    from treadle.language import load_text
    from treadle.runtime.service.signatures import SOURCES, is_signed
    from treadle.server.bodies import read_json
    from treadle.server.cursors import read_cursor
    from treadle.server.markdown import markdown
    from treadle.server.posted_form import read_form
    from treadle.server.problems import HttpProblem


def text_of(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def json(data: bytes) -> None:
    read_json(data)


def cursor(data: bytes) -> None:
    read_cursor(b"key", text_of(data), b"filters")


def form(data: bytes) -> None:
    head, _, body = data.partition(b"\x00")
    read_form("multipart/form-data; boundary=" + head.decode("latin-1"), body)
    read_form("application/x-www-form-urlencoded", body)


def signature(data: bytes) -> None:
    stamp, _, rest = text_of(data).partition("\x00")
    names = ("x-signature-256", "x-hub-signature-256", "webhook-signature", "stripe-signature", "x-slack-signature")
    headers = {**dict.fromkeys(names, rest), "webhook-id": "a", "webhook-timestamp": stamp}
    headers["x-slack-request-timestamp"] = stamp
    for source in SOURCES:
        assert source == "none" or not is_signed(source, "whsec_" + "a" * 32, headers, data, 1e9), source


def definition(data: bytes) -> None:
    load_text(text_of(data), "<fuzz>")


def page(data: bytes) -> None:
    assert "<script" not in str(markdown(text_of(data))).lower()


READERS: dict[str, Callable[[bytes], Any]] = {
    read.__name__: read for read in (json, cursor, form, signature, definition, page)
}


def main() -> None:
    read = READERS[sys.argv[1]]

    def fed(data: bytes) -> None:
        with suppress(HttpProblem, DefinitionError):  # a refusal
            read(data)

    atheris.Setup([sys.argv[0], *sys.argv[2:]], fed)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
