"""Reading the settings (`setting_table.py`) from flags, the environment and `treadle.toml`.

A flag wins over the environment, the environment over `treadle.toml` (the nearest one, from the current folder
upwards), that over the default. Everything that is wrong is reported at once. Must not read secrets: they are no
settings; the action that sends one looks it up.
"""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

from treadle.errors import SettingsInvalid
from treadle.project.setting_table import BY_NAME as BY_NAME
from treadle.project.setting_table import SETTINGS as SETTINGS
from treadle.project.setting_table import Setting
from treadle.store.places import StoreLocation

FILE = "treadle.toml"
Output = Literal["text", "json", "jsonl"]


class Value(NamedTuple):
    """A setting's value and where it comes from: `--store`, `TREADLE_STORE`, `/…/treadle.toml`, `default`."""

    value: Any
    origin: str


class Configuration:
    """All settings, resolved. `flags` holds only the flags that were given. Raises SettingsInvalid."""

    def __init__(
        self,
        flags: Mapping[str, Any] | None = None,
        environment: Mapping[str, str] | None = None,
        folder: Path | None = None,
    ) -> None:
        self.file = find_file(folder or Path.cwd())
        self.trusted: list[str] = []
        """Additions to `functions.allow`: modules of --functions, folders of definitions on the command line."""
        self._problems: list[str] = []
        written = self._read_file()
        given = flags or {}
        variables = os.environ if environment is None else environment
        self.values = {one.name: self._resolve(one, given, variables, written) for one in SETTINGS}
        self._problems += [_stray(name) for name in sorted(variables) if _is_stray(name)]
        if self._problems:
            raise SettingsInvalid("; ".join(self._problems))

    def __getitem__(self, name: str) -> Any:
        return self.values[name].value

    @property
    def store(self) -> StoreLocation:
        """A file named in `treadle.toml` is relative to its folder, any other to the current folder."""
        value, origin = self.values["store"]
        place = StoreLocation(value)
        if place.path is not None and self.file is not None and origin == str(self.file):
            return StoreLocation(self.file.parent / place.path)
        return place

    @property
    def workflows(self) -> Path:
        """The folder `treadle dev` deploys from; relative as the store is."""
        return self._beside("workflows")

    @property
    def library(self) -> Path | None:
        """The file of shared tasks and actions; relative as the store is."""
        return self._beside("library") if self["library"] is not None else None

    def _beside(self, name: str) -> Path:
        value, origin = self.values[name]
        return self.file.parent / value if self.file is not None and origin == str(self.file) else Path(value)

    @property
    def project(self) -> Path:
        """The project's folder: that of `treadle.toml`, else the current folder."""
        return self.file.parent if self.file is not None else Path.cwd()

    @property
    def allow(self) -> tuple[str, ...]:
        """`functions.allow` with full paths of its folders, and the additions of the command line."""
        entries = [
            str(self.project / entry) if entry == "." or "/" in entry else entry for entry in self["functions.allow"]
        ]
        return (*entries, *self.trusted)

    def _resolve(
        self, one: Setting, flags: Mapping[str, Any], variables: Mapping[str, str], written: Mapping[str, Any]
    ) -> Value:
        if flags.get(one.name) is not None:
            return Value(flags[one.name], f"--{one.name.replace('.', '-').replace('_', '-')}")
        if variables.get(one.variable):
            return Value(self._parsed(one, variables[one.variable]), one.variable)
        if one.name in written:
            return Value(self._checked(one, written[one.name], str(self.file)), str(self.file))
        return Value(one.default, "default")

    def _parsed(self, one: Setting, text: str) -> Any:
        """A variable's text, converted to the setting's type."""
        if one.kind is bool:
            known = {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}
            if text.lower() not in known:
                self._problems.append(f"{one.variable}={text}: expected true or false")
            return known.get(text.lower(), one.default)
        if one.kind is int:
            if not text.lstrip("-").isdigit():
                self._problems.append(f"{one.variable}={text}: expected a number")
                return one.default
            return self._checked(one, int(text), one.variable)
        if one.kind in (list, dict) and text[:1] in "[{":
            return self._json(one, text)
        return self._checked(one, text.split(",") if one.kind is list else text, one.variable)

    def _json(self, one: Setting, text: str) -> Any:
        try:
            value = json.loads(text)
        except ValueError as problem:
            self._problems.append(f"{one.variable}: not JSON: {problem}")
            return one.default
        return self._checked(one, value, one.variable)

    def _checked(self, one: Setting, value: Any, origin: str) -> Any:
        if not isinstance(value, one.kind) or (one.kind is int and isinstance(value, bool)):
            self._problems.append(f"{origin}: {one.name} must be {_WORDS[one.kind]}, not {value!r}")
        elif isinstance(value, int) and value < 0:
            self._problems.append(f"{origin}: {one.name} must not be negative")
        elif one.choices and value not in one.choices:
            self._problems.append(f"{origin}: {one.name} must be one of {', '.join(one.choices)}, not {value!r}")
        return value

    def _read_file(self) -> dict[str, Any]:
        """The settings of the file by dotted name. Unknown names are mistakes: nothing would read them."""
        if self.file is None:
            return {}
        try:
            document = tomllib.loads(self.file.read_text("utf-8"))
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as problem:
            raise SettingsInvalid(f"{self.file}: {problem}") from problem
        flat: dict[str, Any] = {}
        for name, value in document.items():
            is_setting = name in BY_NAME and BY_NAME[name].kind is dict  # `server` is an address, [server] its settings
            room = isinstance(value, dict) and not is_setting
            flat |= {f"{name}.{inner}": v for inner, v in value.items()} if room else {name: value}
        for name in flat.keys() - BY_NAME.keys():
            self._problems.append(f"{self.file}: there is no setting {name!r}{_near(name)}")
        return flat


_WORDS = {str: "text", int: "a whole number", bool: "true or false", list: "a list", dict: "a table"}


def _near(name: str) -> str:
    from difflib import get_close_matches

    close = get_close_matches(name, BY_NAME, n=1)
    return f" (did you mean {close[0]!r}?)" if close else f"; `{'treadle config'}` lists them"


NO_SETTINGS = (
    *("TREADLE_SECRET_", "TREADLE_TEST_", "TREADLE_PROPERTY_", "TREADLE_TORTURE_", "TREADLE_DEV_"),
    *("TREADLE_SERVICE_", "TREADLE_PORT"),
)
"""Prefixes of variables that are no settings: secrets, variables of our tests and tools, and those that Kubernetes sets
in every pod beside a service called `treadle`."""
TOOLS = frozenset(
    {"TREADLE_CHROMIUM", "TREADLE_DEBUG", "TREADLE_KEY", "TREADLE_NATIVE", "TREADLE_PYTHON", "TREADLE_URLS"}
)
"""Variables of the command line itself, of the installation, and of `./dev`."""
VARIABLES = {one.variable: one for one in SETTINGS}


def _is_stray(variable: str) -> bool:
    """Whether a variable looks like one of Treadle's, and nothing reads it."""
    ours = variable in VARIABLES or variable in TOOLS or variable.startswith(NO_SETTINGS)
    return variable.startswith("TREADLE_") and not ours


def _stray(variable: str) -> str:
    from difflib import get_close_matches

    close = get_close_matches(variable, [*VARIABLES, *TOOLS], n=1)
    hint = f"did you mean {close[0]}?" if close else "`treadle config --origin` lists all of them"
    return f"{variable}: there is no such setting ({hint})"


def find_file(folder: Path) -> Path | None:
    """The nearest `treadle.toml`, in a folder or above it."""
    for place in (folder, *folder.parents):
        if (place / FILE).is_file():
            return place / FILE
    return None
