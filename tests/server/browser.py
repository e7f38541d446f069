"""A browser as the service sees it: keeps a cookie, sends Origin and Sec-Fetch-Site with what its pages ask for."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from tests.server.client import Caller, Reply, Served


class Browser:
    """One browser with the cookies of one service."""

    def __init__(self, served: Served, prefix: str = "", forwarded_host: str | None = None) -> None:
        self._caller = Caller(served.url, None)
        self.prefix = prefix
        self.cookies: dict[str, str] = {}
        self.host = forwarded_host

    @property
    def origin(self) -> str:
        return self._caller.url if self.host is None else f"https://{self.host}"

    def __call__(self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None) -> Reply:
        sent = dict(headers or {})
        if self.host is not None:
            sent.setdefault("Host", self.host)
        if self.cookies and "Cookie" not in sent:
            sent["Cookie"] = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        reply = self._caller(method, self.prefix + path, body, {name: value for name, value in sent.items() if value})
        if "set-cookie" in reply.headers:
            name, _, value = reply.headers["set-cookie"].partition(";")[0].partition("=")
            self.cookies[name] = value
            if not value:
                del self.cookies[name]
        return reply

    def send_form(self, path: str, fields: Mapping[str, str], **headers: str) -> Reply:
        """A form of one of the service's own pages."""
        sent = {"Content-Type": "application/x-www-form-urlencoded", "Origin": self.origin}
        sent |= {"Sec-Fetch-Site": "same-origin"}
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        return self("POST", path, urlencode(fields).encode(), sent)

    def sign_in(self, key: str) -> Reply:
        return self.send_form("/sign-in", {"key": key})

    def csrf(self) -> str:
        token: str = self("GET", "/api/v1/session").json["csrf"]
        return token

    def write(self, method: str, path: str, body: Any = None, **headers: str) -> Reply:
        """What a script of the service's own page sends."""
        sent = {"Origin": self.origin, "Sec-Fetch-Site": "same-origin", "X-CSRF-Token": self.csrf()}
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        return self(method, f"/api/v1{path}", body, sent)


def start_up_path(served: Served) -> str:
    """The path of the newest start-up link that a service has printed."""
    found = re.findall(r"once: http://[^/]+(/\S*)", served.said())
    assert found, served.said()
    path: str = found[-1]
    return path
