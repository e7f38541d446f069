"""Small habits, checked on every file: no loose ends, no sleeping tests, nothing of one machine."""

from __future__ import annotations

import ast
import re

import pytest

from tests.arch import house, source

# Written so that no pattern finds itself.
LOOSE_END = re.compile(r"\b(?:TO[D]O|FIX[M]E|XX[X])\b(?!\(#\d+\))")
MACHINE_PATH = re.compile(r"(?<![\w.$)}-])/(?:root|work|home)(?![\w-])")
REGISTRY = re.compile(r"\b(?:pypi|pythonhosted|npmjs|yarnpkg|npmmirror)\.(?:org|com)\b")
CREDENTIAL = re.compile(r"://[^/\s:@\"'{}]+:[^/\s:@\"'{}]+@|-----BEGIN [A-Z ]*PRIVATE KEY|\bAKIA[0-9A-Z]{16}\b")

CODE = (".py", ".sql", ".ts", ".tsx", ".css", ".toml", "dev", "run")


def found(pattern: re.Pattern[str], files: list[source.Path]) -> list[str]:  # type: ignore[name-defined]
    return [
        f"{source.shown(file)}:{number} {line.strip()[:100]}"
        for file in files
        for number, line in enumerate(source.text(file).splitlines(), 1)
        if pattern.search(line)
    ]


RIDDLE = re.compile(r"\b(?:who(?:so)?ever|what of)\b", re.IGNORECASE)
QUESTION = re.compile(r"(?:What|How|Which|Who|Whose|Whom|Where|Whether)\b")


def test_sentences_name_the_person_or_the_process() -> None:
    files = [
        file
        for file in [*source.files("src/treadle", suffix=".py"), *source.files("src/treadle", suffix=".sql")]
        if "migrations" not in file.parts  # what a database was made with stays
    ]
    problems = found(RIDDLE, files)
    problems += [
        f"{source.shown(file)}:1 {docstring[:100]}"
        for file in files
        if file.suffix == ".py"
        and QUESTION.match(docstring := (ast.get_docstring(source.tree(file)) or "").partition("\n")[0])
    ]
    assert not problems, source.report(
        "sentences that leave the reader to guess:", problems, "name the thing, then say what it does"
    )


def test_a_loose_end_names_its_issue() -> None:
    problems = found(LOOSE_END, [file for file in source.files() if file.name.endswith(CODE)])
    assert not problems, source.report(
        "loose ends without an issue:", problems, "finish it, or open an issue and write its number: (#12)"
    )


def test_no_path_of_one_machine() -> None:
    problems = found(MACHINE_PATH, source.files())
    assert not problems, source.report(
        "paths that exist on one machine only:",
        problems,
        "use a path relative to the repository, or tmp_path",
    )


def test_no_registry_host() -> None:
    files = [file for file in source.files() if source.shown(file) not in house.FILES_NAMING_A_REGISTRY]
    problems = found(REGISTRY, files)
    assert not problems, source.report(
        "package registries named in the repository:",
        problems,
        "leave the host to the user's configuration; see docs/decisions/0001-lock-file-without-hosts.md",
    )


def test_no_credential() -> None:
    problems = found(CREDENTIAL, source.files())
    assert not problems, source.report("credentials:", problems, "take them out, and revoke them")


def test_tests_do_not_sleep() -> None:
    problems = []
    for file in source.files("tests", suffix=".py"):
        if source.shown(file) in house.TESTS_THAT_SLEEP or source.shown(file).startswith(house.VIRTUAL_TIME):
            continue
        for node in ast.walk(source.tree(file)):
            if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] == "sleep":
                problems.append(f"{source.shown(file)}:{node.lineno} {ast.unparse(node)}")
    assert not problems, source.report(
        "tests that sleep:", problems, "wait on a signal with a deadline, or let the virtual clock jump"
    )


@pytest.mark.parametrize(
    ("pattern", "text", "matches"),
    [
        (LOOSE_END, "# TO" + "DO: later", True),
        (LOOSE_END, "# TO" + "DO(#12): later", False),
        (MACHINE_PATH, "open('/wo" + "rk/main/x')", True),
        (MACHINE_PATH, "see /ho" + "me/ann/x", True),
        (MACHINE_PATH, "GET /workflows/7 and src/root/x", False),
        (REGISTRY, "https://files.pythonhosted" + ".org/packages/x", True),
        (REGISTRY, "a pypi mirror", False),
        (CREDENTIAL, "https://ann:secret" + "@host/simple", True),
        (CREDENTIAL, "https://host/a:b", False),
    ],
)
def test_the_patterns_find_what_they_should(pattern: re.Pattern[str], text: str, matches: bool) -> None:
    assert bool(pattern.search(text)) is matches
