"""The pages of the canvas: the application reads its own addresses, filters included."""

from __future__ import annotations

import urllib.error
import urllib.request

import pytest

from tests.server.client import Served


@pytest.mark.parametrize(
    "path", ["/runs?status=running&workflow=!nightly", "/gates/some-run/2?mine=true", "/operate/work?q=x"]
)
def test_a_screen_is_served_whatever_filters_its_address_has(served: Served, path: str) -> None:
    try:
        with urllib.request.urlopen(f"{served.url}{path}") as answer:
            status, body = answer.status, answer.read()
    except urllib.error.HTTPError as refused:  # an installation without the built files says so
        status, body = refused.code, refused.read()
    assert (status == 200 and b"<base href=" in body) or (status == 404 and b"not part of this installation" in body)
