"""`./dev`: the parts that can be wrong without anybody noticing until a fresh machine does."""

from __future__ import annotations

import hashlib
import importlib
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from tests.arch import source


@pytest.fixture
def wheels(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """tools/wheels.py, on a machine where nobody has configured anything."""
    monkeypatch.syspath_prepend(source.ROOT / "tools")
    for name in ("UV_DEFAULT_INDEX", "UV_INDEX_URL", "PIP_INDEX_URL", "PIP_CONFIG_FILE", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", "nowhere")
    return importlib.import_module("wheels")


def verbs() -> set[str]:
    text = source.text(source.ROOT / "tools" / "dev.py")
    found = set(re.findall(r'^    "(\w+)": ', text.partition("VERBS:")[2], re.MULTILINE))
    assert found
    return found | {"help"}


def test_help_lists_every_verb() -> None:
    text = source.text(source.ROOT / "tools" / "dev.py")
    assert verbs() == set(re.findall(r"^\./dev (\w+)", text, re.MULTILINE))


def test_contributing_names_every_verb() -> None:
    page = source.text(source.ROOT / "CONTRIBUTING.md")
    assert verbs() == set(re.findall(r"^\| `\./dev (\w+)", page, re.MULTILINE))


def test_hooks_of_pre_commit_are_verbs_of_dev_and_fetch_nothing() -> None:
    from treadle.language.text import read_text

    (document,) = read_text(source.text(source.ROOT / ".pre-commit-config.yaml"), ".pre-commit-config.yaml")
    for repository in document.value["repos"]:
        assert repository["repo"] == "local"
        for hook in repository["hooks"]:
            assert hook["entry"].split()[0] == "./dev"
            assert hook["entry"].split()[1] in verbs()


def test_help_needs_no_environment() -> None:
    script = source.ROOT / "tools" / "dev.py"
    said = subprocess.check_output([sys.executable, script, "help"], text=True, cwd="/")
    assert "./dev test" in said


def test_the_lock_pins_a_uv_for_the_download_of_last_resort(wheels: ModuleType) -> None:
    version, sums = wheels.pin(source.ROOT / "requirements.lock", "uv")
    assert re.fullmatch(r"\d+\.\d+\.\d+", version)
    assert len(sums) > 5, "one hash per platform"


def test_the_index_is_the_configured_one(wheels: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / ".config" / "pip").mkdir(parents=True)
    (tmp_path / ".config" / "pip" / "pip.conf").write_text("[global]\nindex-url = http://file.example/simple/\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert wheels.index_url() == "http://file.example/simple"
    monkeypatch.setenv("PIP_INDEX_URL", "http://environment.example/simple")
    assert wheels.index_url() == "http://environment.example/simple"
    monkeypatch.setenv("UV_DEFAULT_INDEX", "http://uv.example/simple")
    assert wheels.index_url() == "http://uv.example/simple"


@pytest.mark.parametrize("tampered", [False, True])
def test_a_downloaded_wheel_must_match_the_lock(
    wheels: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, tampered: bool
) -> None:
    monkeypatch.setattr(wheels, "fits_this_machine", lambda name: "here" in name)
    page = "".join(f'<a href="../files/uv-1.2-py3-none-{place}.whl#x"></a>' for place in ("far", "here"))
    monkeypatch.setattr(wheels, "read", lambda url, what: page.encode() if url.endswith("/uv/") else b"wheel")
    expected = hashlib.sha256(b"another wheel" if tampered else b"wheel").hexdigest()
    lock = tmp_path / "requirements.lock"
    lock.write_text(f"tuv==9.9\nuv==1.2 \\\n    --hash=sha256:{'0' * 64} \\\n    --hash=sha256:{expected}\n")
    if tampered:
        with pytest.raises(wheels.Unobtainable, match="does not match any hash"):
            wheels.fetch(lock, "uv", tmp_path / "out")
        assert not (tmp_path / "out").exists()
    else:
        assert wheels.fetch(lock, "uv", tmp_path / "out").read_bytes() == b"wheel"
