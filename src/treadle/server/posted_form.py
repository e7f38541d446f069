"""Forms that a browser posts: their entries and files, in either of the two encodings."""

from __future__ import annotations

from collections.abc import Iterator
from email.message import EmailMessage
from email.parser import BytesParser
from email.policy import HTTP
from typing import NamedTuple
from urllib.parse import parse_qsl

from treadle.server.problems import HttpProblem

ENTRIES_MAX = 1_000
BOUNDARY_MAX = 200
"""Characters of the text between parts; the standard allows 70."""
HEAD_MAX = 4_096
"""Bytes of the head of a part: two names and a type."""


class PostedFile(NamedTuple):
    """A file of a form."""

    filename: str
    content_type: str
    content: bytes


class PostedForm(NamedTuple):
    """Entries by name, in order; files by the name of their field."""

    entries: dict[str, list[str]]
    files: dict[str, PostedFile]


def read_form(content_type: str, data: bytes) -> PostedForm:
    """The form in a request's body. Raises BAD_REQUEST, MEDIA_TYPE."""
    kind = content_type.partition(";")[0].strip().lower()
    if not data:
        return PostedForm({}, {})
    if kind == "application/x-www-form-urlencoded":
        try:
            pairs = parse_qsl(data.decode(), keep_blank_values=True, errors="strict", max_num_fields=ENTRIES_MAX)
        except ValueError:
            raise HttpProblem("BAD_REQUEST", "the form cannot be read") from None
        form = PostedForm({}, {})
        for name, text in pairs:
            form.entries.setdefault(name, []).append(text)
        return form
    if kind == "multipart/form-data":
        return _multipart(content_type, data)
    raise HttpProblem("MEDIA_TYPE", f"a form is not sent as {kind[:60] or 'nothing'}")


def _multipart(content_type: str, data: bytes) -> PostedForm:
    """Reads a form part by part. Only their heads go through the parser for messages: it takes time that grows with the
    square of a body, and looks for parts in parts."""
    form = PostedForm({}, {})
    for head, content in _parts(content_type, data):
        name = head.get_param("name", header="content-disposition")
        name = name[2] if isinstance(name, tuple) else name
        filename = head.get_filename()
        if not name:
            continue
        if filename:
            form.files[name] = PostedFile(filename, head.get_content_type(), content)
        elif filename is None:
            form.entries.setdefault(name, []).append(content.decode("utf-8", "replace"))
    return form


def _parts(content_type: str, data: bytes) -> Iterator[tuple[EmailMessage, bytes]]:
    """The head and the content of every part. Raises BAD_REQUEST."""
    boundary = str(_head(f"Content-Type: {content_type}".encode("latin-1", "replace")).get_boundary("")).encode()
    mark = b"\r\n--" + boundary
    whole = b"\r\n" + data
    if not 1 <= len(boundary) <= BOUNDARY_MAX or not 1 <= whole.count(mark) <= ENTRIES_MAX:
        raise HttpProblem("BAD_REQUEST", "the form cannot be read")
    for part in whole.split(mark)[1:]:
        head, empty, content = part.partition(b"\r\n\r\n")
        if part.startswith(b"--"):
            return
        if not empty or len(head) > HEAD_MAX:
            raise HttpProblem("BAD_REQUEST", "the form cannot be read")
        yield _head(head.strip()), content


def _head(text: bytes) -> EmailMessage:
    return BytesParser(policy=HTTP).parsebytes(text + b"\r\n\r\n", headersonly=True)
