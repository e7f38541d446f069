"""The strings that reach a store, and the file that freezes them.

A database outlives the code that wrote it. So every string a row can contain (event, command and effect
tags, the field names of what is encoded, states, error kinds) is listed in `stored_strings.txt`: lines are
added, never changed or removed.

    python -m tests.arch.freeze        appends what is new; refuses if something has vanished

The list is found by introspection: msgspec structs, string enums and frozen sets of
strings defined in the modules below.
"""

from __future__ import annotations

import enum
import importlib
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec

FILE = Path(__file__).with_name("stored_strings.txt")
MODULES = (
    "commands",
    "effects",
    "errors",
    "events",
    "wait_events",
    "change_commands",
    "change_events",
    "references",
    "flow_events",
    "requests",
    "spending",
    "states",
    "budget_events",
)
PART_OF = {
    "wait_events": "events",
    "flow_events": "events",
    "change_commands": "commands",
    "change_events": "events",
    "budget_events": "events",
}
"""A module that was split: its strings are listed where they have always been."""
HEADER = (
    "# Every string a store may contain. Append only: a stored string is never renamed or removed.\n"
    "# New ones are added by `python -m tests.arch.freeze`.\n"
)


def current() -> list[str]:
    """Every stored string the code knows now, as sorted lines `module name` or `module name.part`."""
    found: set[str] = set()
    for part in MODULES:
        module, name = importlib.import_module(f"treadle.model.{part}"), PART_OF.get(part, part)
        for key, value in vars(module).items():
            if isinstance(value, type) and value.__module__ == module.__name__:
                found.update(f"{name} {line}" for line in strings_of(value))
            elif isinstance(value, frozenset):
                # Members of an enum are listed with it.
                plain = (member for member in value if isinstance(member, str) and not isinstance(member, enum.Enum))
                found.update(f"{name} {key} = {member}" for member in plain)
    return sorted(found)


def strings_of(kind: type) -> Iterator[str]:
    if issubclass(kind, enum.Enum) and issubclass(kind, str):
        yield from (f"{kind.__name__} = {member.value}" for member in kind)
    elif issubclass(kind, msgspec.Struct) and (kind.__struct_config__.tag is not None or not kind.__subclasses__()):
        config = kind.__struct_config__
        name = kind.__name__ if config.tag is None else f"{config.tag_field} = {config.tag}"
        if config.tag is not None:
            yield name
        # What is stored as an array has its place in the name: a field may be appended, never inserted or moved.
        places = kind.__struct_encode_fields__ if config.array_like else ()
        yield from (f"{name} [{place}] {field}" for place, field in enumerate(places))
        if not config.array_like:
            yield from (f"{name} . {field}" for field in kind.__struct_encode_fields__)


def frozen() -> list[str]:
    if not FILE.exists():
        return []
    return [line for line in FILE.read_text("utf-8").splitlines() if line and not line.startswith("#")]


def main() -> int:
    now, before = set(current()), set(frozen())
    vanished = sorted(before - now)
    if vanished:
        print("not frozen: these stored strings are gone from the code, and databases contain them:")
        print("\n".join(f"  {line}" for line in vanished))
        print("restore them (a new name can stand beside the old one).")
        return 1
    FILE.write_text(HEADER + "".join(f"{line}\n" for line in sorted(now)), "utf-8")
    print(f"{len(now)} stored strings frozen, {len(now - before)} of them new")
    return 0


if __name__ == "__main__":
    sys.exit(main())
