"""The lock file fits pyproject.toml and names no host."""

from __future__ import annotations

import re
import tomllib

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.arch import source

LOCK = source.ROOT / "requirements.lock"


def pins() -> dict[str, list[str]]:
    """Package → the versions pinned for it; a universal lock may hold several, for different Pythons."""
    found: dict[str, list[str]] = {}
    for name, version in re.findall(r"^([\w.-]+)==([^\s;\\]+)", source.text(LOCK), re.MULTILINE):
        found.setdefault(canonicalize_name(name), []).append(version)
    return found


def test_everything_we_ask_for_is_pinned() -> None:
    project = tomllib.loads(source.text(source.ROOT / "pyproject.toml"))
    asked = [*project["project"]["dependencies"], *project["dependency-groups"]["dev"]]
    asked += project["build-system"]["requires"]
    problems = []
    for requirement in map(Requirement, asked):
        versions = pins().get(canonicalize_name(requirement.name), [])
        if not versions or not all(requirement.specifier.contains(version, prereleases=True) for version in versions):
            problems.append(f"{requirement}: {'pinned at ' + ', '.join(versions) if versions else 'not pinned'}")
    assert not problems, source.report("requirements.lock is behind pyproject.toml:", problems, "run ./dev lock")


def test_every_pin_has_hashes() -> None:
    entries = re.split(r"^(?=\w)", source.text(LOCK), flags=re.MULTILINE)
    bare = [entry.split()[0] for entry in entries if "==" in entry and "--hash=sha256:" not in entry]
    assert not bare, source.report("pins without hashes:", bare, "run ./dev lock")


def test_the_lock_names_no_host() -> None:
    assert "://" not in source.text(LOCK), "requirements.lock must work with anybody's index: run ./dev lock"
