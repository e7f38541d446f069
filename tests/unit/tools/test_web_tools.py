"""What the build of the canvas checks: types made from the service as it is, and a first load that stays small."""

from __future__ import annotations

import json
from pathlib import Path

from tools import web_size, web_types


def test_the_types_of_the_canvas_are_made_from_the_service_as_it_is() -> None:
    assert web_types.KEPT.read_text("utf-8").strip() == web_types.hash_of(web_types.description()), "./dev web types"


def test_a_description_is_written_the_same_way_each_time() -> None:
    assert web_types.description() == web_types.description()


def built(folder: Path, run_kb: int) -> Path:
    """A built canvas: a shell, a run page whose graph is fetched apart, a worker, and a menu that is fetched later."""
    (folder / "assets").mkdir()
    sizes = {"shell.js": 50, "run.js": run_kb, "graph.js": 60, "run.css": 5, "menu.js": 900, "layout.worker-abc.js": 15}
    for number, (name, kb) in enumerate(sizes.items()):
        noise = b"".join(((n * 2654435761 + number) % 2**32).to_bytes(4, "big") for n in range(kb * 250))
        start = b'"layout.worker-abc.js"' if name == "graph.js" else b""
        (folder / "assets" / name).write_bytes(start + noise)
    for name in ("index.html", "icons.svg"):
        (folder / name).write_text("<svg/>", "utf-8")
    manifest = {
        "index.html": {"file": "assets/shell.js", "dynamicImports": ["src/views/run/index.tsx"]},
        "src/views/run/index.tsx": {"file": "assets/run.js", "imports": ["index.html"], "css": ["assets/run.css"]},
        "src/views/run/graph/graph.tsx": {"file": "assets/graph.js", "imports": ["index.html"]},
        "src/ui/menu.tsx": {"file": "assets/menu.js"},
    }
    (folder / "manifest.json").write_text(json.dumps(manifest), "utf-8")
    return folder


def test_a_first_load_has_the_shell_the_page_its_graph_and_its_workers_and_no_menu(tmp_path: Path) -> None:
    (size,) = web_size.first_loads(built(tmp_path, 100)).values()
    assert 225_000 < size < 240_000
    assert web_size.too_large(tmp_path) == []


def test_a_first_load_above_the_limit_is_told(tmp_path: Path) -> None:
    (told,) = web_size.too_large(built(tmp_path, 140))
    assert "src/views/run/index.tsx" in told
    assert "more than 250" in told
