"""One reading of one definition: collects every problem and remembers where each part was written.

A `Place` is a pair of paths. `written` is how the author spelled it, for problems; `canonical` is where it
ends up in the `Workflow`, for the checks that come later and know nothing of spellings. Where the two part
ways the reading notes it, so that `Reading.problem_in` can lead a canonical path back to the author's
line.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, Literal, NamedTuple

from treadle.expression.names import escaped
from treadle.language.limits import BOUNDS, Bounds
from treadle.language.problem import ADVICE, WARNINGS, Path, Problem, did_you_mean, path_text
from treadle.language.source import Refusal, Source, Spot

Json = Any


class Place(NamedTuple):
    """A place, as the author wrote it and as it will be in the canonical definition."""

    written: Path
    canonical: Path

    def key(self, name: str, spelled: str | None = None) -> Place:
        return Place((*self.written, name if spelled is None else spelled), (*self.canonical, name))

    def item(self, index: int) -> Place:
        return Place((*self.written, index), (*self.canonical, index))


ROOT = Place((), ())


class Settings(NamedTuple):
    """Facts the caller knows beside the document itself."""

    library: Mapping[str, Mapping[str, Json]] | None = None
    """Shared `tasks` and `actions`, written as in a document."""
    functions: Callable[[str], bool] | None = None
    """Whether a Python function exists; None: not checked."""
    kinds: Mapping[str, Collection[str] | None] | None = None
    """Third-party action kinds and their config keys (None: any)."""
    workers: Mapping[str, Json] | None = None
    """The actions that a canvas's `workerType`s stand for, as in a document, with a `queue` if they have one."""
    answered: bool = False
    """The caller answers for the Workers itself, as a scenario does: one without an address is no mistake."""
    bounds: Bounds = BOUNDS
    strict: bool = False
    """Authoring warnings are errors, whatever the document says."""
    signatures: Callable[[str], Callable[..., Any] | None] | None = None
    """Finds a function, so that inputs are checked against its signature. None from it: not known here, not checked. An
    exception from it says why there is none."""
    callbacks: bool = True
    """Whether workers of webhooks have an address to call back to. False: a webhook gets a warning."""


NOTHING_KNOWN = Settings()


class Reading:
    """The state of one reading. Never raises: every mistake becomes a problem, and reading goes on."""

    def __init__(self, source: Source, settings: Settings) -> None:
        self.source = source
        self.settings = settings
        self.problems: list[Problem] = []
        self.strict = settings.strict
        self.failed = False
        """Whether anything so far forbids deploying."""
        self.dropped = 0
        """Problems beyond the bound: counted, not kept."""
        self.cycles_allowed = True
        """False for a canvas, whose edges cannot carry what would end a cycle."""
        self._written: dict[Path, Path] = {}
        self._named: dict[tuple[str, str], Any] = {}
        self.local: Mapping[str, Json] = source.value if isinstance(source.value, dict) else {}

    def problem(
        self, code: str, at: Place | Path, message: str, hint: str | None = None, *, on_key: bool = False
    ) -> None:
        """Records a problem at a place as written. `on_key` points at the key rather than at its value."""
        path = at.written if isinstance(at, Place) else at
        self._record(code, path, message, hint, self.source.spot(path, key=on_key))

    def problem_in(self, code: str, canonical: Path, message: str, hint: str | None = None) -> None:
        """Records a problem at a place of the canonical definition."""
        self.problem(code, self.written(canonical), message, hint)

    def is_known_wrong(self, canonical: Path) -> bool:
        """Whether a problem was reported at exactly this place before: reporting that it is also missing would only
        confuse."""
        at = path_text((*self.source.root, *self.written(canonical)))
        return any(problem.at == at for problem in self.problems)

    def refused(self, refusal: Refusal) -> None:
        """Records that a document could not even be read."""
        spot = refusal.spot or self.source.spot(refusal.path)
        self._record("BAD_VALUE", refusal.path, refusal.message, refusal.hint, spot)

    def _record(self, code: str, path: Path, message: str, hint: str | None, spot: Spot | None) -> None:
        severity = self._severity(code)
        if self.is_full():
            self.drop(code)
            return
        self.failed = self.failed or severity == "error"
        at = path_text((*self.source.root, *path))
        line, column = spot if spot is not None else (None, None)
        self.problems.append(
            Problem(code, message, severity, at, self.source.file, line=line, column=column, hint=hint)
        )

    def _severity(self, code: str) -> Literal["error", "warning"]:
        return "warning" if code in ADVICE or (code in WARNINGS and not self.strict) else "error"

    def is_full(self) -> bool:
        """Whether further problems are only counted; finding a hint for them would be work for nobody."""
        return len(self.problems) >= self.settings.bounds.problems

    def drop(self, code: str) -> None:
        """Counts a problem beyond the bound. It is not shown, but an error stays an error."""
        self.dropped += 1
        self.failed = self.failed or self._severity(code) == "error"

    def rest(self) -> Problem:
        """The message about the problems beyond the bound."""
        severity: Literal["error", "warning"] = "error" if self.failed else "warning"
        message = f"{self.dropped} more problems are not shown"
        return Problem("BAD_VALUE", message, severity, "", self.source.file, hint="mend the first ones first")

    def unknown(self, code: str, at: Place | Path, what: str, name: str, known: Iterable[str]) -> None:
        """Records a name that does not exist, with the nearest one that does."""
        candidates = list(known)
        hint = did_you_mean(name, candidates)
        if hint is None and 0 < len(candidates) <= 8:
            hint = "known: " + ", ".join(f"`{candidate}`" for candidate in candidates)
        self.problem(code, at, f"there is no {what} `{escaped(name[:80])}`", hint)

    def note(self, place: Place) -> None:
        """Remembers that the value at `place.canonical` was written elsewhere."""
        if place.written != place.canonical:
            self._written[place.canonical] = place.written

    def forget(self, place: Place) -> None:
        """Drops the notes below a canonical place that will not exist after all."""
        length = len(place.canonical)
        for path in [path for path in self._written if path[:length] == place.canonical]:
            del self._written[path]

    def moved(self, old: Path, new: Path) -> None:
        """Renumbers the notes: a part of the canonical definition has taken another place."""
        if old == new:
            return
        self._written[new] = self.written(old)
        for path, written in list(self._written.items()):
            if path[: len(old)] == old and path != old:
                self._written[(*new, *path[len(old) :])] = written

    def written(self, canonical: Path) -> Path:
        """The place where the author wrote the value at a canonical path: the longest noted beginning decides."""
        for length in range(len(canonical), 0, -1):
            if (start := self._written.get(canonical[:length])) is not None:
                path = (*start, *canonical[length:])
                # A named task is spelled where it is defined, not where it is used.
                return self.written(path) if start[0] in ("tasks", "actions") else path
        return canonical

    def named(self, section: str, name: str, read: Reader) -> Any:
        """The task or action of that name, read once; None if neither the document nor the library has it."""
        if (section, name) not in self._named:
            self._named[section, name] = self._read_named(section, name, read)
        return self._named[section, name]

    def _read_named(self, section: str, name: str, read: Reader) -> Any:
        here = self.local.get(section)
        if isinstance(here, dict) and name in here:
            return read(here[name], Place((section, name), (section, name)), self)
        shared = (self.settings.library or {}).get(section, {})
        if name not in shared:
            return None
        # A library is another file: its problems must not be given lines of this one.
        other = Reading(Source(shared[name], f"library {section} `{name}`"), self.settings._replace(library=None))
        other.local = self.settings.library or {}
        result = read(shared[name], ROOT, other)
        self.problems.extend(other.problems)
        self.failed = self.failed or other.failed
        return result

    def known_names(self, section: str) -> list[str]:
        """Every task or action name in reach."""
        here = self.local.get(section)
        names = list(here) if isinstance(here, dict) else []
        return [*names, *(self.settings.library or {}).get(section, {})]


Reader = Callable[[Json, Place, Reading], Any]
