"""`treadle entities …` beside an engine: records, journeys, moves by hand, positions, conversion."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.served import opened
from tests.cli.shell import Shell
from treadle.cli.frame.exits import OK, REFUSED, USAGE
from treadle.language import load_file

LEAD = Path(__file__).parents[2] / "examples" / "lead.yaml"


@pytest.fixture
def verb(desk: Shell) -> Any:
    """One verb, its exit code, what it printed as JSON or said."""

    def run(*words: str, output: str = "json") -> tuple[int, Any]:
        done = desk.here("entities", *words, "--output", output)
        out = done.stdout
        return done.returncode, (json.loads(out) if out and output == "json" else out or done.stderr)

    return run


def test_an_entity_is_made_followed_and_deleted(desk: Shell, verb: Any) -> None:
    with opened(desk) as engine:
        engine.start(load_file(LEAD), {"company": "Shuttle", "employees": 3}, entity="lead/7").result(20)
        assert verb("create", "lead/8", "--name", "Bea", "--attributes", '{"a": 1}')[0] == OK
        code, said = verb("create", "lead/8")
        assert (code, "already" in said) == (REFUSED, True)
        code, changed = verb("update", "lead/8", "--name", "", "--attributes", '{"a": null, "b": 2}')
        assert (code, changed["name"], changed["attributes"]) == (OK, None, {"b": 2})
        assert [row["entity"] for row in verb("list")[1]] == ["lead/8", "lead/7"]
        assert [row["entity"] for row in verb("list", "--section", "newsletter")[1]] == ["lead/7"]
        code, moved = verb("move", "lead/8", "lead", "--section", "vip", "--reason", "called", "--by", "ana")
        assert (code, moved["positions"][0]["section"]) == (OK, "vip")
        assert verb("move", "lead/8", "lead")[0] == USAGE
        assert verb("show", "nobody")[0] == USAGE
        assert verb("show", "lead/9")[0] == REFUSED
        places = verb("positions", "lead")[1]["places"]
        assert places == [{"count": 1, "section": "newsletter"}, {"count": 1, "section": "vip"}]
        flow = verb("conversion", "lead", "--since", "1d")[1]
        assert [(one["place"], one["entered"]) for one in flow["sections"]] == [("newsletter", 1), ("vip", 1)]
        assert verb("conversion", "lead", "--since", "soon")[0] == USAGE
        (leg,) = verb("journey", "lead/8")[1]
        assert (leg["run"], leg["moves"][0]["by"], leg["moves"][0]["reason"]) == (None, "ana", "called")
        _, table = verb("journey", "lead/7", output="text")
        assert [line.split()[4] for line in table.splitlines()[1:]] == [
            "entered",
            "arrived",
            "departed",
            "arrived",
            "moved",
        ]
        assert verb("delete", "lead/7")[0] == OK
        assert verb("show", "lead/7")[0] == REFUSED
