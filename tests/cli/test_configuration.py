"""Flags win over the environment, that over treadle.toml, that over defaults; mistakes are all said at once."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from treadle.cli.frame.exits import INVALID, code_of
from treadle.cli.frame.opening import engine_settings
from treadle.cli.upkeep.config import masked
from treadle.errors import SettingsInvalid
from treadle.project.settings import SETTINGS, Configuration, _is_stray, find_file


def test_each_place_wins_over_the_next_and_says_so(tmp_path: Path) -> None:
    file = tmp_path / "treadle.toml"
    inner = tmp_path / "deep" / "inside"
    inner.mkdir(parents=True)

    def resolved(flag: str | None, variable: str | None) -> tuple[Path | None, str]:
        variables = {"TREADLE_STORE": variable} if variable else {}
        config = Configuration({"store": flag}, variables, inner)
        return config.store.path, config.values["store"].origin

    assert resolved(None, None) == (Path("treadle.db"), "default")
    file.write_text('store = "data/here.db"\n')
    assert resolved(None, None) == (tmp_path / "data/here.db", str(file)), "relative to the file that says it"
    assert resolved(None, "env.db") == (Path("env.db"), "TREADLE_STORE")
    assert resolved("flag.db", "env.db") == (Path("flag.db"), "--store")
    assert find_file(inner) == file


def test_everything_wrong_is_said_at_once_with_the_nearest_name(tmp_path: Path) -> None:
    (tmp_path / "treadle.toml").write_text('stroe = "x"\noutput = "xml"\n[engine]\ngrace_ms = "soon"\n')
    with pytest.raises(SettingsInvalid) as caught:
        Configuration({}, {"TREADLE_SHELL_ENABLED": "maybe", "TREADLE_ENGINE_ATTEMPTS_MAX": "-1"}, tmp_path)
    assert code_of(caught.value) == INVALID
    for words in ("did you mean 'store'", "one of text, json, jsonl", "grace_ms must be", "maybe", "not be negative"):
        assert words in str(caught.value)


def test_a_file_that_is_no_toml_is_named(tmp_path: Path) -> None:
    (tmp_path / "treadle.toml").write_text("store = = 1\n")
    with pytest.raises(SettingsInvalid, match=r"treadle\.toml"):
        Configuration({}, {}, tmp_path)


def test_the_engine_is_given_what_the_operator_says(tmp_path: Path) -> None:
    (tmp_path / "treadle.toml").write_text(
        '[engine]\ngrace_ms = 7\n[net]\nallow = ["127.0.0.1:*"]\n[shell]\nenabled = true\nallow = ["ls"]\n'
    )
    settings = engine_settings(Configuration({}, {"TREADLE_ENGINE_ATTEMPTS_MAX": "5"}, tmp_path))
    assert (settings.grace_ms, settings.attempts_max) == (7, 5)
    assert settings.outside is not None
    assert settings.outside.net.allow == ("127.0.0.1:*",)
    assert settings.outside.shell.enabled
    assert settings.outside.shell.allow == ("ls",)


def test_profiles_and_servers_are_tables_in_the_file_or_json_in_a_variable(tmp_path: Path) -> None:
    (tmp_path / "treadle.toml").write_text(
        '[[llm.profiles]]\nname = "local"\nbase_url = "http://127.0.0.1:1/v1"\nmodel = "m"\n[engine.queues]\nslow = 2\n'
        "[keep]\ncount = 5\n[keep.workflows.audit]\nage_ms = 9\n"
    )
    variables = {"TREADLE_MCP_SERVERS": '[{"name": "tools", "command": ["serve"]}]'}
    settings = engine_settings(Configuration({}, variables, tmp_path))
    assert settings.llm is not None
    assert settings.llm.profile(None).name == "local"
    assert settings.mcp is not None
    assert settings.mcp.server("tools").command == ("serve",)
    assert settings.queues == {"slow": 2}
    assert (settings.keep.count, settings.keep_of["audit"].age_ms) == (5, 9)


def test_a_table_that_does_not_fit_is_a_mistake_of_the_user(tmp_path: Path) -> None:
    (tmp_path / "treadle.toml").write_text('[[llm.profiles]]\nname = "local"\n')
    with pytest.raises(SettingsInvalid, match="model"):
        engine_settings(Configuration({}, {}, tmp_path))


def test_a_typo_in_the_rule_of_one_workflow_is_a_mistake_of_the_user(tmp_path: Path) -> None:
    (tmp_path / "treadle.toml").write_text("[keep.workflows.audit]\nage_m = 9\n")
    with pytest.raises(SettingsInvalid, match=r"`age_m`.*keep\.workflows"):
        engine_settings(Configuration({}, {}, tmp_path))


def test_what_may_be_confidential_in_settings_is_not_shown() -> None:
    server = {"name": "x", "headers": {"Authorization": "canary"}, "env": {"K": {"secret": "canary"}}, "command": ["a"]}
    shown = masked([server, f"http://user:{'canary'}@host/"])
    assert "canary" not in str(shown)
    assert shown[0]["command"] == ["a"]


def test_defaults_are_the_engines_own(tmp_path: Path) -> None:
    from treadle.runtime.engine import EngineSettings

    engine = EngineSettings()
    ours = {one.name.partition(".")[2]: one.default for one in SETTINGS if one.name.startswith("engine.")}
    assert ours == {name: getattr(engine, name) for name in ours}
    assert engine_settings(Configuration({}, {}, tmp_path)).grace_ms == engine.grace_ms


def test_one_mistake_is_said_once(tmp_path: Path) -> None:
    with pytest.raises(SettingsInvalid) as failure:
        Configuration({}, {"TREADLE_ENGINE_QUEUES": "{cpu=2}"}, tmp_path)
    assert str(failure.value).startswith("TREADLE_ENGINE_QUEUES: not JSON: ")
    assert "must be" not in str(failure.value)


def test_a_variable_nobody_reads_is_a_mistake_like_a_name_in_the_file(tmp_path: Path) -> None:
    near = r"TREADLE_ENGINE_GRACE: .*did you mean TREADLE_ENGINE_GRACE_MS\?"
    with pytest.raises(SettingsInvalid, match=near) as refused:
        Configuration({}, {"TREADLE_ENGINE_GRACE": "5", "TREADLE_XYZZY": "1"}, tmp_path)
    assert "TREADLE_XYZZY: there is no such setting" in str(refused.value)
    others = ("SECRET_OPENAI", "PYTHON", "NATIVE", "DEBUG", "TEST_POSTGRES", "SERVICE_HOST", "PORT_8787_TCP")
    assert Configuration({}, {f"TREADLE_{name}": "1" for name in others}, tmp_path)["output"] == "text"


def test_variables_of_our_tools_are_no_typing_errors(tmp_path: Path) -> None:
    """Tools hand their variables on to every process they start, the command line included."""
    root = Path(__file__).parents[2]
    sources = [*(root / "tools").glob("*.py"), *(root / "web" / "e2e").glob("*.ts"), root / "tests" / "seed.py"]
    named = {name for file in sources for name in re.findall(r"TREADLE_[A-Z_]+", file.read_text("utf-8"))}
    assert {"TREADLE_TEST_SEED", "TREADLE_DEV_PACKAGE"} <= named
    strays = sorted(name for name in named if _is_stray(name))
    assert not strays, "rename them so that they begin with a prefix of NO_SETTINGS"
