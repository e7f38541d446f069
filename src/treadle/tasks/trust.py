"""Trust: which functions a workflow may call by `module:function`. The border between operators and authors.

The author of a workflow chooses the name. Without a border it could be `os:getenv` or `subprocess:getoutput`, and the
gates for network, shell and secrets would not bind authors. So a name leads to a function only if

 1. the operator allows its module: by name (`shop.tasks`, with everything below it), or by a folder the module's file
    lies in. The folder `.` is the project's own: where the process was started, and where its program lies;
 2. the function is the module's own: defined in a module that is allowed too, or put forward by the allowed one (in
    `__all__`, or marked with `@task`). `shop:os.system` and a `getenv` that `shop` merely imports are neither;
 3. no part of the name is private (`_x`), and no part is a module.

A folder never covers the standard library, installed packages (an environment may lie in the project) or Treadle
itself; an operator allows these by name. A module is judged before it is imported, because importing runs its code.
Registered functions need no trust: the operator's program has handed them over.

Asks the import system where modules are; must not import what it refuses.
"""

from __future__ import annotations

import sys
import sysconfig
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

from treadle.tasks.decorator import options_of

SETTING = "functions.allow"
"""The operator's setting, as messages name it."""
PROJECT = "."
_PACKAGES = frozenset({"site-packages", "dist-packages"})


class Trust:
    """The operator's list of allowed modules: names, and folders (`.`, or with a slash)."""

    def __init__(self, allow: Iterable[str] = (PROJECT,)) -> None:
        self.allow = tuple(allow)
        self._modules = tuple(entry for entry in self.allow if not _is_folder(entry))
        self._folders = tuple(folder for entry in self.allow if _is_folder(entry) for folder in _folders(entry))
        self._known: set[str] = set()
        """Modules that were found to be allowed: their files need not be looked up for every attempt."""

    def allows(self, module: str) -> bool:
        """Whether workflows may call functions of a module. Imports at most those of its packages that are allowed."""
        if module not in self._known and not self._looks_allowed(module):
            return False
        self._known.add(module)
        return True

    def covers(self, module: str) -> bool:
        """Whether a loaded module lies in one of the folders, rather than being allowed by name only."""
        return bool(self._folders) and self._is_inside(module)

    def refusal(self, inside: ModuleType, path: list[str], found: Any) -> str | None:
        """Why workflows may not call an object of an allowed module; None if they may."""
        if len(path) == 1 and (path[0] in getattr(inside, "__all__", ()) or options_of(found) is not None):
            return None
        if any(part.startswith("_") for part in path):
            return "its name begins with an underscore; put it into `__all__`, or mark it with @task, if workflows may"
        home = _home(found)
        if isinstance(found, ModuleType) or not isinstance(home, str) or not self.allows(home):
            where = (
                f"is defined in {home!r}, which {SETTING} does not cover" if isinstance(home, str) else "has no module"
            )
            return f"it {where}; put it into `__all__` of {inside.__name__!r}, or register it, if workflows may"
        return None

    def __str__(self) -> str:
        """The list as messages show it."""
        words = [f"the module {name!r}" for name in self._modules]
        words += dict.fromkeys(f"the folder {folder}" for folder in self._folders)
        return ", ".join(words) or "nothing"

    def _looks_allowed(self, module: str) -> bool:
        if any(module == name or module.startswith(f"{name}.") for name in self._modules):
            return True
        parts = module.split(".")
        if not self._folders or "__main__" in parts or not all(part.isidentifier() for part in parts):
            return False
        # From the outermost package inwards: looking for `a.b` imports `a`.
        return all(self._is_inside(".".join(parts[: end + 1])) for end in range(len(parts)))

    def _is_inside(self, module: str) -> bool:
        if module.partition(".")[0] == __name__.partition(".")[0]:
            return False
        return any(
            path.is_relative_to(folder) and not _is_installed(path, folder)
            for path in _places(module)
            for folder in self._folders
        )


def exists(module: str) -> bool:
    """Whether the import system knows a module. Imports nothing, so it does not look below a package that has not been
    imported yet."""
    if module in sys.modules:
        return True
    outer, dot, _ = module.rpartition(".")
    if dot and outer not in sys.modules:
        return exists(outer)
    try:
        return find_spec(module) is not None
    except (ImportError, ValueError, AttributeError):
        return False


def _home(found: Any) -> Any:
    """The module that defines an object. A method of a C type has none; then the module of its class."""
    owner = getattr(found, "__self__", None)
    if getattr(found, "__module__", None) is None and isinstance(owner, type):
        return owner.__module__ if getattr(found, "__name__", None) in vars(owner) else None
    return getattr(found, "__module__", None)


def _is_folder(entry: str) -> bool:
    return entry == PROJECT or "/" in entry


def _folders(entry: str) -> Iterator[Path]:
    yield Path(entry).resolve()
    program = _folder_of_program() if entry == PROJECT else None
    if program is not None:
        yield program


def _folder_of_program() -> Path | None:
    """The folder of the running script; of `python -m shop.main` that of `shop`. None for an installed program."""
    main = sys.modules.get("__main__")
    file = getattr(main, "__file__", None)
    if file is None:
        return None
    folder = Path(file).resolve().parent
    package = getattr(getattr(main, "__spec__", None), "parent", None) or ""
    for _ in filter(None, package.split(".")):
        folder = folder.parent
    return None if _is_installed(Path(file).resolve(), Path(folder.anchor)) else folder


def _places(module: str) -> list[Path]:
    """The module's file; for a namespace package, which has none, its folders; else nothing."""
    loaded = sys.modules.get(module)
    if loaded is not None:
        file, folders = getattr(loaded, "__file__", None), getattr(loaded, "__path__", ())
    else:
        try:
            spec = find_spec(module)
        except (ImportError, ValueError, AttributeError):
            spec = None
        if spec is None:
            return []
        file, folders = (spec.origin if spec.has_location else None), spec.submodule_search_locations or ()
    return [Path(place).resolve() for place in ([file] if file else folders)]


def _is_installed(path: Path, folder: Path) -> bool:
    """Whether a file below a folder belongs to Python or to an installed package, not to the folder."""
    if not _PACKAGES.isdisjoint(path.relative_to(folder).parts):
        return True
    return any(path.is_relative_to(place) and place.is_relative_to(folder) for place in _places_of_python())


@cache
def _places_of_python() -> frozenset[Path]:
    names = ("stdlib", "platstdlib", "purelib", "platlib", "scripts")
    return frozenset(Path(sysconfig.get_path(name)).resolve() for name in names)
