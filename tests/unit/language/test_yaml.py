"""Two YAML parsers, one meaning: libyaml reads, ruamel.yaml judges, and neither works longer than it must."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.language.test_text import BOMB, refusal_of, value_of
from treadle.language import yaml_text
from treadle.language.limits import BOUNDS, Bounds
from treadle.language.source import Mark, Marks, Refusal, Spot
from treadle.language.text import read_text

ROOT = Path(__file__).parents[3]
PARSERS = ("libyaml", "ruamel.yaml")


class Work:
    """What the parsers did: counted, not timed."""

    def __init__(self) -> None:
        self.events = 0
        """Events libyaml has told."""
        self.characters = 0
        """Characters ruamel.yaml has moved over."""


@pytest.fixture
def work(monkeypatch: pytest.MonkeyPatch) -> Work:
    from ruamel.yaml.reader import Reader
    from yaml.cyaml import CParser

    work = Work()
    forward = Reader.forward

    class Counting(CParser):  # type: ignore[misc]
        def get_event(self) -> Any:
            work.events += 1
            return super().get_event()

    def counting(self: Any, length: int = 1) -> None:
        work.characters += length
        forward(self, length)

    if yaml_text.CParser is not None:  # type: ignore[attr-defined]  # `parser` may have taken it away
        monkeypatch.setattr(yaml_text, "CParser", Counting)
    monkeypatch.setattr(Reader, "forward", counting)
    return work


@pytest.fixture(params=PARSERS)
def parser(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    name: str = request.param
    if name != "libyaml":
        monkeypatch.setattr(yaml_text, "CParser", None)
    return name


def flat(mark: Mark) -> Any:
    """Marks as plain data, to be compared."""
    if not isinstance(mark, Marks):
        return mark
    parts = mark.parts.items() if isinstance(mark.parts, dict) else enumerate(mark.parts)
    return mark.at, {step: flat(part) for step, part in parts}, mark.keys


def both(text: str) -> Iterator[Any]:
    """What each parser makes of a text: documents, or the fact that it is none."""
    from yaml.cyaml import CParser

    for used in (CParser, None):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(yaml_text, "CParser", used)
            try:
                documents = yaml_text.read_yaml(text, BOUNDS, relaxed=True)
                yield [(value, flat(mark)) for value, mark in documents]
            except Refusal:
                yield None


@pytest.mark.slow
@pytest.mark.parametrize(
    "file",
    [
        *sorted(ROOT.glob("examples/*.yaml")),
        ROOT / "tests/unit/language/sound.yaml",
        *sorted(ROOT.glob("tests/patterns/wcp_0*.scenario.yaml"))[:2],
    ],
    ids=lambda file: file.name,
)
def test_both_parsers_find_the_same_values_in_the_same_places(file: Path) -> None:
    """A sample of our own files: ruamel.yaml takes twenty times as long."""
    fast, careful = both(file.read_text("utf-8"))
    assert fast == careful
    assert fast


PIECES = [
    *("a", "b", "1", "x y", "true", "~", "http://x", "0x1", "é", "<<", "=", "%", "@", ".", "...", "---"),
    *("  ", "\n", "\n  ", "\r\n", " #c", "- ", ": ", ":", "? ", ", ", "[", "]", "{", "}", "'", '"', "\\n", "\\x41"),
    *("|\n", "|-\n", ">\n", "&a ", "*a", "!!str ", "!!int ", "a: ", "a: b\n", "- a\n", "{a: b}", "[a, b]", "'it''s'"),
]


@given(st.lists(st.sampled_from(PIECES), max_size=12).map("".join))
def test_whatever_both_parsers_read_means_the_same(text: str) -> None:
    """Inside a map, as in every file of ours: there are differences at the top of a document without one."""
    fast, careful = both("top:\n" + "".join(f"  {line}\n" for line in text.split("\n")))
    if fast is not None and careful is not None:
        assert [value for value, _ in fast] == [value for value, _ in careful]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("on: [yes, 0o17, 2020-01-01]", {"on": ["yes", 15, "2020-01-01"]}),
        ("a: &x {b: 1}\nc: *x", {"a": {"b": 1}, "c": {"b": 1}}),
        ("a: !!str 12\nb: !!float 1\nc: !!map {}\nd: !!seq []", {"a": "12", "b": 1.0, "c": {}, "d": []}),
        ('a: "\\L\\x41"', {"a": "\u2028A"}),
        ("a: |\n  x\n  y\nb: >-\n  x\n  y", {"a": "x\ny\n", "b": "x y"}),
        ("a: 1\r\nb: 2\r\n", {"a": 1, "b": 2}),
    ],
)
def test_a_text_is_read_with_or_without_libyaml(text: str, value: Any, parser: str) -> None:
    assert value_of(text) == value


@pytest.mark.parametrize(
    ("text", "says", "spot"),
    [
        (BOMB, "once aliases are expanded", (5, 23)),
        ("- " * 100, "nested", (1, 129)),
        ("x: {a: 1, b: {a: 2, a: 3}}", "stands twice", (1, 21)),
        ("a: 1\n1: b", "not text", (2, 1)),
        ("? {a: b}\n: c", "not a list or map", (1, 3)),
        ("a: !mine x", "tags", (1, 4)),
        ("a: !mine .nan", "tags", (1, 4)),
        ("a: !mine {1: 2}", "tags", (1, 4)),
        ("%TAG ! tag:mine,2020:\n---\na: !x y", "tags", (1, 1)),
        ("a: 1\nb: !!int x", "tag !!int says", (2, 4)),
        ("a: !!seq {}", "tag !!seq says", (1, 4)),
        ("a: !!int true", "tag !!int says", (1, 4)),
        ("a: .inf", "JSON number", (1, 4)),
        ("a: &a [*a]", "stands for nothing", (1, 8)),
        ("a: b\n\u2028c: d", "U+2028", (2, 1)),
        ("a: b\r\nc: \x07", "U+0007", (2, 4)),
        ("a: b\rc: \x85", "U+0085", (2, 4)),
    ],
)
def test_what_is_refused_is_refused_with_or_without_libyaml(
    text: str, says: str, spot: tuple[int, int], parser: str
) -> None:
    refusal = refusal_of(text)
    assert says in refusal.message
    assert refusal.spot == spot


def test_what_libyaml_refuses_is_judged_by_ruamel() -> None:
    assert [source.value for source in read_text("a: 1\n...\nb: 2\n", "doc")] == [{"a": 1}, {"b": 2}]
    refusal = refusal_of("a: [1, 2\nb: 3")
    assert (refusal.message, refusal.spot) == (
        "not valid YAML: expected ',' or ']', but got ':' while parsing a flow sequence",
        Spot(2, 2),
    )


@pytest.mark.parametrize("mistake", ["b: [1, 2\nc: 3", "...\nb: 2", "\tb: 2", "b: 'x"])
def test_a_long_text_is_not_read_twice(mistake: str, work: Work) -> None:
    """It would take ruamel.yaml a minute to judge a megabyte of the right kind."""
    lines = 10_000
    refusal = refusal_of("a: b\n" + "# comment\n" * lines + mistake)
    assert "not valid YAML" in refusal.message
    assert refusal.spot is not None
    assert lines + 1 < refusal.spot.line < lines + 5
    assert work.characters == 0


def test_a_long_text_in_braces_is_not_read_twice_either(work: Work) -> None:
    items = '{"a": 1},'
    assert "not valid JSON" in refusal_of("[" + items * 5_000 + "b]").message
    assert work.events == work.characters == 0
    assert value_of("[" + items * 1_000 + "b]")[-1] == "b"
    assert value_of("[b," + items * 5_000 + "]")[:2] == ["b", {"a": 1}]


@pytest.mark.parametrize(
    "text", ["[" * 100_000, "{" * 100_000, "- " * 50_000, BOMB, "!" * 100_000, "a: !x " + "!" * 100_000]
)
def test_refusing_looks_at_no_more_text_than_it_must(text: str, parser: str, work: Work) -> None:
    refusal_of(text)
    assert work.events < (300 if parser == "libyaml" else 1)
    assert work.characters < (1_000 if parser == "ruamel.yaml" else 1)


@pytest.mark.parametrize(
    "unit", ["- x\n", "- {}\n", "- [x]\n", "- {a: x}\n", "- &a x\n", "- {a: [b, {c: d}]}\n", "---\na: b\n"]
)
def test_values_are_counted_as_they_come(unit: str, work: Work) -> None:
    """No more than two events for a value, an opening and an end, and then it is over; keys count, too."""
    refusal = refusal_of(unit * 2_000, Bounds(values=500, documents=2_000))
    assert "more than 500 values" in refusal.message
    assert work.events < 2 * 501 + 500


@pytest.mark.parametrize("blank", ["\n", "#\n", "# comment\n", "    \n", "\r\n"])
def test_nothing_is_read_quickly(blank: str, work: Work) -> None:
    assert read_text(blank * 100_000, "doc") == []
    assert work.events < 5
    assert work.characters == 0
