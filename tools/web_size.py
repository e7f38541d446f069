"""The first load of the canvas: what a browser fetches before it shows a screen, compressed.

Owns the limit and the list of what counts. A screen counts with the shell, everything it imports, style sheets, icons
and the workers it starts; the run page also with its graph, which is fetched apart and shown at once. Parts that are
fetched when somebody uses them (menus, dialogs, the inspector, the text editor) do not count.
"""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path

LIMIT = 250_000
"""Bytes after gzip. A phone on a slow line (1.6 Mbit/s) has the screen in about a second and a half."""
EDITOR = "src/views/editor/index.tsx"
EDITOR_LIMIT = 320_000
"""The editor reads and writes YAML and has menus from the start: 281 KB. It is nobody's first screen."""
SHOWN_AT_ONCE = {"src/views/run/index.tsx": ("src/views/run/graph/graph.tsx",)}
_WORKER = re.compile(rb"[\w.-]+\.worker-[\w-]+\.js")

Manifest = dict[str, dict[str, object]]


def first_loads(built: Path) -> dict[str, int]:
    """Bytes that each screen needs at first, by the name of its module."""
    manifest: Manifest = json.loads((built / "manifest.json").read_text("utf-8"))
    screens = [name for name in manifest if re.fullmatch(r"src/views/[\w-]+(/index)?\.tsx", name)]
    return {name: _load_of(built, manifest, name) for name in screens}


def too_large(built: Path) -> list[str]:
    """The screens above the limit, as sentences."""
    return [
        f"the first load of {name} is {size / 1000:.1f} KB, more than {limit / 1000:.0f}"
        for name, size in sorted(first_loads(built).items())
        if size > (limit := EDITOR_LIMIT if name == EDITOR else LIMIT)
    ]


def _load_of(built: Path, manifest: Manifest, screen: str) -> int:
    chunks: set[str] = set()
    for name in ("index.html", screen, *SHOWN_AT_ONCE.get(screen, ())):
        _add_with_imports(manifest, name, chunks)
    files = {built / "index.html", built / "icons.svg"}
    for name in chunks:
        files.add(built / str(manifest[name]["file"]))
        files.update(built / css for css in _names(manifest[name].get("css")))
    workers = {worker for file in files for worker in _WORKER.findall(file.read_bytes())}
    files.update(built / "assets" / worker.decode() for worker in workers)
    return sum(len(gzip.compress(file.read_bytes(), 9)) for file in files if file.exists())


def _add_with_imports(manifest: Manifest, name: str, chunks: set[str]) -> None:
    if name in chunks:
        return
    chunks.add(name)
    for imported in _names(manifest[name].get("imports")):
        _add_with_imports(manifest, imported, chunks)


def _names(value: object) -> list[str]:
    return [str(one) for one in value] if isinstance(value, list) else []
