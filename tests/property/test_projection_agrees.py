"""Two readers of one history: what expectations see of a run is what the engine believes of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from treadle.kernel.lifecycle import LIVE
from treadle.testing import World, run_file

FILES = sorted((Path(__file__).parents[1] / "scenarios").glob("*.scenario.yaml"))[::5]


@pytest.mark.slow
@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name.partition(".")[0])
def test_visits_read_from_history_are_the_tokens_of_the_state(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check_run = World._check_run

    def check_both(world: World, run: object) -> list[str]:
        found = check_run(world, run)  # type: ignore[arg-type]
        state, projection = world.state(run), world.projection(run)  # type: ignore[arg-type]
        assert projection.status == state.status
        tokens = {t.id: (t.state, t.waiting, t.attempts) for t in state.tokens.values() if t.state in LIVE}
        visits = {v.token: (v.state, v.waiting, v.attempts) for v in projection.visits.values() if v.live}
        assert tokens == visits
        return found

    monkeypatch.setattr(World, "_check_run", check_both)
    broken = [str(result) for result in run_file(file) if "AssertionError" in (result.reason or "")]
    assert not broken, broken[0]
