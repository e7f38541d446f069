"""Every example runs offline on a real engine with a real file; what its scenario says of it holds there too."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.runtime.executing import on_loop
from treadle.language import load_file
from treadle.model.references import EntityRef
from treadle.model.states import RunStatus
from treadle.runtime.engine import Engine

EXAMPLES = Path(__file__).parents[2] / "examples"

RUNS: list[tuple[list[str], dict[str, Any], Any]] = [
    (["order.yaml"], {"sku": "loom", "amount": 5}, {"shipment": "s-1", "payment": "p-1"}),
    (["write_verify.yaml"], {"text": "Warp and weft"}, None),
    (["account.yaml", "onboarding.yaml"], {"name": "Ada", "systems": ["mail", "mainframe"]}, None),
    (["panel.yaml"], {"draft": "On looms"}, None),
]


@pytest.mark.parametrize(("files", "input", "output"), RUNS, ids=lambda value: value[-1] if type(value) is list else "")
@on_loop
async def test_an_example_completes(tmp_path: Path, files: list[str], input: dict[str, Any], output: Any) -> None:
    async with Engine(tmp_path / "treadle.db") as engine:
        deployed = [await engine.deploy(load_file(EXAMPLES / file)) for file in files]
        run = await engine.start(deployed[-1].workflow, input)
        ended = await run.wait(20)
    assert ended.status is RunStatus.COMPLETED, ended
    assert output is None or ended.output == output


@on_loop
async def test_a_lead_that_says_yes_becomes_a_customer(tmp_path: Path) -> None:
    async with Engine(tmp_path / "treadle.db") as engine:
        entity = EntityRef(id="lead-1", type="lead", name="Loomworks")
        company = {"company": "Loomworks", "employees": 120}
        run = await engine.start(load_file(EXAMPLES / "lead.yaml"), company, entity=entity)
        seen = (await run.info()).seq  # before looking: what happens in between is an event behind it
        while not (gates := await engine.gates(run.id)):
            seen = (await anext(aiter(run.events(after=seen)))).seq
        await engine.complete_gate(run.id, gates[0].token, {"won": True}, by="sales")
        assert await run.result(10) == {"outcome": "customer"}
        assert [row.run for row in await engine.runs(entity="lead/lead-1")] == [run.id]
        position = (await run.state()).position
    assert position is not None
    assert (position.completed_as, position.type) == ("success", "customer")


@on_loop
async def test_an_approval_waits_for_a_person_and_survives_a_restart(tmp_path: Path) -> None:
    store = tmp_path / "treadle.db"
    async with Engine(store) as engine:
        run_id = (await engine.start(load_file(EXAMPLES / "approval.yaml"), {"request": "a new loom"})).id
    async with Engine(store) as engine:
        [gate] = await engine.gates(run_id)
        assert gate.assign == ["team"]
        await engine.complete_gate(run_id, gate.token, {"approved": True}, by="ann")
        assert await engine.run(run_id).result(10) == {"approved": True, "by": "team"}


def said_by(script: str) -> str:
    done = subprocess.run([sys.executable, EXAMPLES / script], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_models_vote_and_race_offline() -> None:
    said = said_by("judges.py")
    assert "'verdict': '" in said, "three of five, whoever answers first"
    assert "… Dear author" in said, "text is seen while it streams"


def test_a_canvas_calls_webhook_workers_and_takes_their_callbacks() -> None:
    said = said_by("content.py").splitlines()
    assert sorted(line.split()[0] for line in said) == [
        "completed",
        *["draw"] * 3,
        "outline",
        "publish",
        *["write"] * 3,
    ]
