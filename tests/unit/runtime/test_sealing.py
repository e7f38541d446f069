"""Sealed texts: readable with their key and for their purpose, and in no other way."""

from __future__ import annotations

import secrets
from pathlib import Path

import pytest

from treadle.errors import SettingsInvalid
from treadle.runtime.access.sealing import SealBroken, Sealing, sealing_with

ROOT = b"r" * 32


def test_a_sealed_text_opens_again_and_never_looks_the_same() -> None:
    sealing = Sealing(ROOT)
    kept = sealing.seal("secret:PAY", "hunter2-äöü")
    assert sealing.open("secret:PAY", kept) == "hunter2-äöü"
    assert "hunter2" not in kept
    assert sealing.seal("secret:PAY", "hunter2-äöü") != kept


def test_a_sealed_text_cannot_be_moved_to_another_name() -> None:
    kept = Sealing(ROOT).seal("secret:PAY", "hunter2")
    with pytest.raises(SealBroken):
        Sealing(ROOT).open("secret:OTHER", kept)


@pytest.mark.parametrize("text", ["", "s1", "s1..", "s2.x.y", "hunter2", "s1.000000000000.AAAA"])
def test_what_was_never_sealed_does_not_open(text: str) -> None:
    with pytest.raises(SealBroken):
        Sealing(ROOT).open("secret:PAY", text)


def test_every_changed_character_breaks_the_seal() -> None:
    sealing = Sealing(ROOT)
    kept = sealing.seal("p", "hunter2")
    for at in range(len(kept) - 2):  # the last two characters may hold unused bits of base64
        other = "A" if kept[at] != "A" else "B"
        with pytest.raises(SealBroken):
            sealing.open("p", kept[:at] + other + kept[at + 1 :])


def test_the_root_of_another_store_does_not_open_it() -> None:
    kept = Sealing(ROOT).seal("p", "hunter2")
    with pytest.raises(SealBroken, match="key_file"):
        Sealing(secrets.token_bytes(32)).open("p", kept)


def test_a_key_file_seals_from_now_on_and_what_was_sealed_before_still_opens(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text(secrets.token_hex(32) + "\n")
    before = Sealing(ROOT).seal("p", "old")
    sealing = sealing_with(ROOT, str(file))
    kept = sealing.seal("p", "new")
    assert (sealing.open("p", before), sealing.open("p", kept)) == ("old", "new")
    with pytest.raises(SealBroken):
        Sealing(ROOT).open("p", kept)


def test_a_key_file_that_is_missing_or_short_is_refused_with_its_name(tmp_path: Path) -> None:
    with pytest.raises(SettingsInvalid, match="cannot be read"):
        sealing_with(ROOT, str(tmp_path / "none"))
    (tmp_path / "short").write_text("abc")
    with pytest.raises(SettingsInvalid, match="fewer than 32"):
        sealing_with(ROOT, str(tmp_path / "short"))
