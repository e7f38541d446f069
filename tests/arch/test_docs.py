"""Every workflow and scenario shown in the documentation works: it is checked and run here as it stands."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.arch import source

FENCE = re.compile(r"^( *)```yaml[ \t]*\n(.*?)^\1```", re.MULTILINE | re.DOTALL)


class Block(NamedTuple):
    place: str
    text: str


def blocks(first_key: str) -> list[object]:
    """The fenced yaml blocks whose first line that is no comment begins with `first_key`."""
    found: list[object] = []
    for file in source.files(suffix=".md"):
        for match in FENCE.finditer(source.text(file)):
            indent, body = len(match[1]), match[2]
            text = "".join(line[indent:] or "\n" for line in body.splitlines(keepends=True))
            lines = [line for line in text.splitlines() if line.strip() and not line.startswith(("#", "---"))]
            if lines and lines[0].startswith(first_key):
                place = f"{source.shown(file)}:{source.text(file)[: match.start()].count(chr(10)) + 2}"
                found.append(pytest.param(Block(place, text), id=place))
    return found


def references() -> list[object]:
    """Relative links between our own pages, each with the heading it names."""
    found: list[object] = []
    for file in source.files(suffix=".md"):
        for target, heading in re.findall(r"\]\(([^)#\s]*)(?:#([^)]*))?\)", source.text(file)):
            if (target or heading) and "://" not in target and not target.startswith("mailto:"):
                page = file.parent / target if target else file
                found.append(pytest.param(page, heading, id=f"{source.shown(file)} → {target}#{heading}"))
    return found


def anchors(page: Path) -> set[str]:
    """The headings of a page as a link names them: `## 1.7 Joins` is `#17-joins`."""
    titles = re.findall(r"^#+ (.*)$", source.text(page), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title.lower()).strip().replace(" ", "-") for title in titles}


@pytest.mark.parametrize("block", blocks("workflow:"))
def test_a_workflow_in_the_docs_is_valid(block: Block) -> None:
    from treadle.language import load_text

    problems = [str(problem) for problem in load_text(block.text, block.place).problems]
    assert not problems, source.report(f"the workflow at {block.place}:", problems, "docs show only what validates")


@pytest.mark.parametrize("block", blocks("scenario:"))
def test_a_scenario_in_the_docs_passes(block: Block) -> None:
    from treadle.testing import run_text

    failures = [str(result) for result in run_text(block.text, block.place) if not result.ok]
    assert not failures, source.report(f"the scenario at {block.place}:", failures, "docs show only what passes")


PYTHON = re.compile(r"^```python[ \t]*\n(.*?)^```", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", ["README.md", "docs/guides/python.md", "docs/reference/python-api.md"])
def test_the_python_of_a_page_runs_from_top_to_bottom(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = source.text(source.ROOT / page)
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "__main__"}
    found = list(PYTHON.finditer(text))
    assert found
    for match in found:
        line = text[: match.start()].count(chr(10)) + 1
        exec(compile("\n" * line + match[1], page, "exec"), names)  # the page's own lines in a traceback


@pytest.mark.parametrize(("page", "heading"), references())
def test_a_link_between_pages_leads_somewhere(page: Path, heading: str) -> None:
    assert page.exists(), f"{page} does not exist"
    assert not heading or heading in anchors(page), f"{source.shown(page.resolve())} has no heading #{heading}"


def test_the_index_links_every_page() -> None:
    index = source.ROOT / "docs" / "README.md"
    linked = {(index.parent / target).resolve() for target in re.findall(r"\]\(([^)#\s]+)", source.text(index))}
    pages = {file for file in source.files("docs", suffix=".md") if file.parent.name != "decisions"} - {index}
    missing = sorted(source.shown(file) for file in pages - linked)
    assert not missing, source.report("pages that docs/README.md does not link:", missing, "add a row for each")


def test_the_list_of_decisions_agrees_with_its_files() -> None:
    folder = source.ROOT / "docs" / "decisions"
    listed = re.findall(r"^\| \[(\d{4})\]\(([^)]+)\) \| (.*) \|$", source.text(folder / "README.md"), re.MULTILINE)
    files = {file.name: source.text(file).partition("\n")[0] for file in source.files("docs/decisions")}
    files.pop("README.md")
    assert {name: f"# {number} · {title}" for number, name, title in listed} == files
    assert [number for number, _, _ in listed] == [f"{number:04}" for number in range(1, len(files) + 1)]


def test_the_map_of_the_tests_names_every_folder() -> None:
    page = source.text(source.ROOT / "tests" / "README.md")
    folders = {
        file.relative_to(source.ROOT / "tests").parts[0]
        for file in source.files("tests")
        if file.parent.name != "tests"
    }
    assert sorted(folder for folder in folders if f"`{folder}/" not in page) == []


def test_pages_name_the_person_or_the_process() -> None:
    """ "Whoever" leaves the reader to guess; CONTRIBUTING says how sentences are written."""
    problems = [
        f"{source.shown(file)}:{number} {line.strip()[:100]}"
        for file in source.files("docs", suffix=".md")
        for number, line in enumerate(source.text(file).splitlines(), 1)
        if re.search(r"\bwhoever\b|\bwhat of\b", line, re.IGNORECASE)
    ]
    assert not problems, source.report("riddles:", problems, "name the person or the process, then say what it does")
