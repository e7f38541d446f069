"""Inputs drawn at random for the places where strangers write what the service reads, and what must come of each.

Owns the strategies and the rule: whatever comes in, the answer is below 500, comes soon, and is a problem document if
it refuses (a page for people where the address is one for people).
"""

from __future__ import annotations

import base64
import json
import os
from time import monotonic
from typing import Any
from urllib.parse import quote

from hypothesis import settings
from hypothesis import strategies as st

from tests.server.client import Caller, Reply

WITHIN_S = 45.0
"""Far beyond what any of these takes (a simulation 15 s at most, after its turn has come): it finds hangs on a busy
machine, not slowness."""
EXAMPLES = int(os.environ.get("TREADLE_FUZZ_EXAMPLES", "40"))
"""Inputs of each kind; `./dev fuzz` sets more."""
drawn = settings(max_examples=EXAMPLES)

texts = st.text(max_size=60) | st.sampled_from(
    ["", "\x00", "\u202e", "😀", "%00", "../", "a" * 3_000, "null", "$.a", "'"]
)
numbers = st.integers() | st.floats() | st.sampled_from([2**31, 2**53, 2**63, 2**64, -1, 0, 10**400, 1e308, 5e-324])
values = st.recursive(
    st.none() | st.booleans() | numbers | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)
printable = st.text(st.characters(min_codepoint=32, max_codepoint=255, exclude_characters="\x7f"), max_size=80)
"""What a header can carry."""
YAML_LINES = ["workflow: a", "nodes:", "  a: {}", "  b: {action: {kind: set, values: {x: $.y}}}", "transitions:"]
YAML_LINES += ["- {from: a, to: b}", "<<: *x", "|", ">", "---", "...", "%YAML 1.1", "on: yes"]
YAML_MARKS = [
    "&x ",
    "*x",
    "!!int ",
    "? ",
    "{",
    "}",
    "[",
    "]",
    ", ",
    ": ",
    "#",
    '"',
    "'",
    "\t",
    "\ufeff",
    "0x1F",
    ".nan",
    "~",
]
yaml_texts = st.lists(
    st.sampled_from(YAML_LINES).map(lambda line: f"{line}\n") | st.sampled_from(YAML_MARKS) | st.text(max_size=8),
    max_size=25,
).map("".join)
FORM_TYPES = [
    "application/x-www-form-urlencoded",
    "multipart/form-data; boundary=b",
    'multipart/form-data; boundary="b b"',
    "multipart/form-data",
    "multipart/form-data; boundary*=utf-8''%62",
]
form_bodies = st.lists(
    st.sampled_from([b"--b", b"--b--", b"\r\n", b"\n", b"Content-Disposition: form-data; ", b'name="', b"ok", b'"'])
    | st.sampled_from([b"filename=", b"name*=utf-8''%ff", b"Content-Type: ", b"&", b"=", b"true", b"%", b"%zz", b";"])
    | st.binary(max_size=6),
    max_size=30,
).map(b"".join) | st.binary(max_size=200)


def mutated(text: str) -> st.SearchStrategy[str]:
    """A right text with something wrong: cut, doubled, with other characters in it."""
    places = st.integers(0, len(text))
    return st.builds(lambda at, to, put: text[:at] + put + text[to:], places, places, st.text(max_size=5)) | texts


def encoded(value: Any) -> bytes:
    """JSON, with all that Python writes and JSON does not know: NaN, half surrogates, numbers of any length."""
    return json.dumps(value, ensure_ascii=True).encode()


def positions() -> st.SearchStrategy[str]:
    """What may be taken for the position of a stream or of a list."""
    numbers = st.integers(-5, 2**70).map(str)
    made = st.lists(st.integers(-(2**40), 2**40).map(str) | st.text(max_size=4), max_size=6).map("-".join)
    blobs = st.binary(max_size=60).map(lambda data: base64.urlsafe_b64encode(data).decode())
    return numbers | made | blobs | texts


def sent(
    caller: Caller, method: str, path: str, body: bytes | None = None, headers: dict[str, str] | None = None
) -> Reply:
    """Sends one request and looks whether its answer keeps to the rule."""
    began = monotonic()
    reply = caller(method, path, body, headers, timeout_s=60)
    assert monotonic() - began < WITHIN_S, (method, path, reply)
    assert reply.status < 500, (method, path, body, headers, reply)
    if reply.status >= 400:
        kind = reply.headers["content-type"].partition(";")[0]
        is_page = path.startswith(("/answer/", "/sign-in")) and kind == "text/html"
        assert is_page or kind == "application/problem+json", (method, path, reply)
        assert is_page or reply.json["status"] == reply.status
    return reply


def in_path(text: str) -> str:
    """A text as one segment of a path."""
    return quote(text.encode("utf-8", "surrogatepass"), safe="") or "%20"
