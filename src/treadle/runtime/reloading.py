"""Fresh Python for new attempts: the modules of functions, imported again when their files have changed.

For `treadle dev`. Owns which loaded modules are the project's (those an operator's folders cover, `tasks/trust.py`) and
when they were read. Promises:
 1. All of them are imported again together, because any may have imported the one that changed. An attempt that is
    under way ends with the code it began with; the next one has the new.
 2. If one cannot be imported, all stay as they were and the problem is told.
 3. Processes for `process: true` are replaced as they become free.
 4. A file that changes between the first import of its module and the next look is noticed, too.

Must not be used where runs matter: a module that keeps state in variables loses it.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType

from msgspec import Struct

from treadle.runtime.engine import Engine

Stamp = tuple[int, int]
"""When a file was written, by its own word, and its size."""
DOUBT_MS = 50
"""Clocks of file systems are that much behind."""


class Reloaded(Struct, frozen=True):
    """What a look at the modules has come to."""

    changed: tuple[str, ...] = ()
    """Modules whose files are not what they were."""
    problem: str | None = None
    """Why the code before stays."""


class Reloader:
    """Looks at the modules of one engine's functions."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._looked = engine.now()
        self._seen, _ = self._stamps()

    def look(self) -> Reloaded:
        """Imports anew if something has changed. Runs modules: not on the event loop."""
        before, self._looked = self._looked, self._engine.now()
        now, touched = self._stamps()
        changed = tuple(
            name
            for name, stamp in now.items()
            # Of a module that is new here nobody knows whether it has read what was written since the last look.
            if self._seen.get(name, stamp) != stamp or (name not in self._seen and touched[name] >= before - DOUBT_MS)
        )
        self._seen = now
        if not changed:
            return Reloaded()
        problem = self._import_anew()
        self._seen = self._stamps()[0] | {name: now[name] for name in changed}
        return Reloaded(changed, problem)

    def _import_anew(self) -> str | None:
        importlib.invalidate_caches()
        before = {name: sys.modules[name] for name in self._modules()}
        for name in before:
            del sys.modules[name]
        try:
            after = {name: importlib.import_module(name) for name in before}
        except BaseException as problem:  # somebody's module, half written
            for name in self._modules():
                del sys.modules[name]
            sys.modules.update(before)
            return f"{type(problem).__name__}: {problem}"
        self._register(before, after)
        self._engine.workshop.processes.renew()
        return None

    def _register(self, before: dict[str, ModuleType], after: dict[str, ModuleType]) -> None:
        """Functions known by a name of their own are those of the new modules."""
        functions = self._engine.registry.functions
        for key, function in tuple(functions.items()):
            home = getattr(function, "__module__", None)
            name = getattr(function, "__name__", "")
            if home in before and getattr(before[home], name, None) is function and hasattr(after[home], name):
                functions[key] = getattr(after[home], name)

    def _modules(self) -> list[str]:
        trust = self._engine.registry.trust
        names = [name for name, module in tuple(sys.modules.items()) if getattr(module, "__file__", None)]
        return [name for name in names if name != "__main__" and trust.covers(name)]

    def _stamps(self) -> tuple[dict[str, Stamp], dict[str, int]]:
        """The stamps of the modules' files, and when the file system touched each last, in milliseconds."""
        found: dict[str, Stamp] = {}
        touched: dict[str, int] = {}
        for name in self._modules():
            try:
                status = Path(str(sys.modules[name].__file__)).stat()
            except OSError:  # gone, or being written
                continue
            found[name] = (status.st_mtime_ns, status.st_size)
            touched[name] = status.st_ctime_ns // 1_000_000
        return found, touched
