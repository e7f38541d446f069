"""Fetches one pinned wheel from the package index with the standard library alone.

Owns: reading the index settings people already have (uv's, else pip's), and the download of last resort
for a machine with neither uv nor a working pip. Promises: a file whose sha256 is not in
`requirements.lock` is never used. Must not: install anything, or know what the wheel is for.
"""

from __future__ import annotations

import configparser
import hashlib
import html.parser
import os
import platform
import re
import ssl
import sys
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path

# Where pip, too, looks when nobody has said otherwise. Any configured index wins over it.
PUBLIC_INDEX = "https://pypi.org/simple"


class Unobtainable(Exception):
    """The wheel cannot be had; the message says why and what to do."""


def pip_setting(name: str) -> str | None:
    """A `[global]` or `[install]` setting as pip would see it: environment first, then its files."""
    from_environment = os.environ.get("PIP_" + name.upper().replace("-", "_"))
    if from_environment:
        return from_environment
    for file in pip_files():
        parser = configparser.RawConfigParser()
        try:
            parser.read(file, encoding="utf-8")
        except (configparser.Error, OSError, UnicodeDecodeError):
            continue  # a broken pip.conf is pip's to complain about
        for section in ("install", "global"):
            value = parser.get(section, name, fallback="").strip()
            if value:
                return " ".join(value.split())
    return None


def pip_files() -> Iterator[Path]:
    """pip's configuration files, the most specific first."""
    home = Path(os.environ.get("HOME") or "/nonexistent")
    if os.environ.get("PIP_CONFIG_FILE"):
        yield Path(os.environ["PIP_CONFIG_FILE"])
    yield Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config") / "pip" / "pip.conf"
    yield home / ".pip" / "pip.conf"
    yield Path("/etc/pip.conf")


def trusted_certificates() -> str | None:
    """The file of certificate authorities this machine trusts, if it has one."""
    named = os.environ.get("SSL_CERT_FILE") or pip_setting("cert")
    found = named or ssl.get_default_verify_paths().cafile or "/etc/ssl/certs/ca-certificates.crt"
    return found if Path(found).is_file() else None


def index_url() -> str:
    named = os.environ.get("UV_DEFAULT_INDEX") or os.environ.get("UV_INDEX_URL") or pip_setting("index-url")
    return (named or PUBLIC_INDEX).rstrip("/")


class Links(html.parser.HTMLParser):
    """Every link of a PEP 503 index page, made absolute."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.page = page
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        target = dict(attrs).get("href")
        if tag == "a" and target:
            self.found.append(urllib.parse.urljoin(self.page, target))


def pin(lock: Path, package: str) -> tuple[str, set[str]]:
    """Version and accepted sha256 sums of a package in the lock file."""
    match = re.search(
        rf"^{re.escape(package)}==(\S+)[^\n]*((?:\n +--hash=sha256:\w+[ \\]*)+)",
        lock.read_text("utf-8"),
        re.M,
    )
    if match is None:
        raise Unobtainable(f"{lock.name} does not pin {package}")
    return match[1], set(re.findall(r"sha256:(\w+)", match[2]))


def fits_this_machine(wheel: str) -> bool:
    """Whether a `py3-none-<platform>` wheel runs here. A musl build is static, so it fits any Linux."""
    tags = wheel.removesuffix(".whl").rsplit("-", 1)[-1]
    machine = platform.machine().lower()
    if sys.platform == "darwin":
        return tags.startswith("macosx") and tags.endswith(machine)
    libc = "manylinux" if platform.libc_ver()[0] == "glibc" else "musllinux"
    return any(tag.startswith(libc) and tag.endswith(machine) for tag in tags.split("."))


def read(url: str, what: str) -> bytes:
    """The body at `url`, with progress on a terminal.

    Without any trusted certificate (Debian without ca-certificates) the connection is not verified. That
    is safe only because everything used afterwards is checked against a sum from this repository.
    """
    certificates = trusted_certificates()
    context = ssl.create_default_context(cafile=certificates)
    if certificates is None and not context.get_ca_certs():
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    chunks: list[bytes] = []
    try:
        with urllib.request.urlopen(url, timeout=60, context=context) as answer:
            size = int(answer.headers.get("Content-Length") or 0)
            while chunk := answer.read(1 << 18):
                chunks.append(chunk)
                if size and sys.stderr.isatty():
                    percent = 100 * sum(map(len, chunks)) // size
                    print(f"\r  {what}: {percent:3d} %", end="", file=sys.stderr, flush=True)
    except (OSError, ValueError) as error:
        raise Unobtainable(f"{what}: {urllib.parse.urlsplit(url).hostname} did not answer: {error}") from error
    if sys.stderr.isatty():
        print("\r\033[K", end="", file=sys.stderr)
    return b"".join(chunks)


def fetch(lock: Path, package: str, into: Path) -> Path:
    """Downloads the pinned wheel of `package` for this machine and returns the file."""
    version, sums = pin(lock, package)
    page = f"{index_url()}/{package}/"
    links = Links(page)
    links.feed(read(page, f"{package} index").decode("utf-8", "replace"))
    for link in links.found:
        name = urllib.parse.unquote(urllib.parse.urlsplit(link).path.rsplit("/", 1)[-1])
        if name.startswith(f"{package}-{version}-") and name.endswith(".whl") and fits_this_machine(name):
            body = read(urllib.parse.urldefrag(link).url, f"{package} {version}")
            if hashlib.sha256(body).hexdigest() not in sums:
                raise Unobtainable(f"{name} from the index does not match any hash in {lock.name}")
            into.mkdir(parents=True, exist_ok=True)
            file = into / name
            file.write_bytes(body)
            return file
    raise Unobtainable(f"the index has no {package} {version} for {sys.platform} {platform.machine()}")
