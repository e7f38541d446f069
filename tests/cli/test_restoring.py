"""The commands of the guide to backups, as they are written there, bring a store back."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
from pathlib import Path

import pytest

from treadle.language import load_text
from treadle.runtime.engine import Engine

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "backups.md"
WAITING = "workflow: waiting\nnodes: {ask: {action: {kind: human, title: Yes?}}}\n"


def blocks() -> list[str]:
    return re.findall(r"```sh\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)


def play(folder: Path, commands: str) -> str:
    """In a shell in which `treadle` is this one."""
    script = f'set -e; treadle() {{ "{sys.executable}" -m treadle.cli.main "$@"; }}\n{commands}'
    done = subprocess.run(["bash", "-c", script], cwd=folder, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


async def start(place: Path, key: str) -> None:
    async with Engine(place) as engine:
        await engine.start(load_text(WAITING, "waiting").require(), {}, key=key)


def test_the_guide_makes_a_backup_and_restores_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TREADLE_STORE", raising=False)
    place = tmp_path / "treadle.db"
    asyncio.run(start(place, "before"))
    key = place.with_name("treadle.db.key").read_text()
    make, restore = blocks()
    play(tmp_path, make)
    asyncio.run(start(place, "after"))
    place.write_bytes(place.read_bytes()[:-4096])  # what a backup is for

    assert "waiting" in play(tmp_path, restore)
    assert (place.stat().st_mode & 0o777, place.with_name("treadle.db.key").read_text()) == (0o600, key)

    async def keys() -> list[str | None]:
        async with Engine(place) as engine:
            return [row.idempotency_key for row in await engine.runs()]

    assert asyncio.run(keys()) == ["before"]
