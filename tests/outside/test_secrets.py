"""A canary through every kind that may hold a secret: it arrives, and it is seen nowhere else."""

from __future__ import annotations

import base64
import io
import logging
import pickle
import sys
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from aiohttp import web

from tests.outside.peers import Answer, error, exchange, output, run
from tests.outside.programs import shell
from tests.unit.actions.calls import output as pure_output
from treadle.actions.failure import TaskFailure
from treadle.actions.redact import RedactingFilter, Redactor, current, redact_event
from treadle.actions.secrets import EnvironmentSecrets, FileSecrets, Secret, fetch

CANARY = 'c4nary/+ "q" ü&=%'
HEADER = "c4nary-for-headers-7"
SECRETS = {"KEY": CANARY, "TOKEN": HEADER}


def forms(value: str) -> list[str]:
    raw = value.encode()
    inside = [base64.b64encode(b"x" * n + b":" + raw).decode()[8:-4] for n in range(3)]
    return [value, quote(value), quote(value, safe=""), base64.b64encode(raw).decode()[:-4], raw.hex(), *inside]


def shows(thing: Any) -> list[str]:
    text = f"{thing!r} {thing}"
    return [form for value in SECRETS.values() for form in forms(value) if form in text]


async def echo(request: web.BaseRequest) -> Answer:
    """Answers with everything it was told, in every encoding it knows."""
    body = (await request.read()).decode()
    token = request.headers.get("Authorization", "")
    told = {"path": request.path_qs, "body": body, "token": token, "b64": base64.b64encode(token.encode()).decode()}
    told["user"] = base64.b64encode(f"user:{token}".encode()).decode()
    told["hex"], told["url"] = body.encode().hex(), quote(body)
    return web.json_response({**told, token: "as a key"}, status=int(request.headers.get("X-Status", "200")))


@pytest.mark.parametrize("status", ["200", "400", "503"])
def test_a_secret_reaches_the_http_peer_and_comes_back_hidden(status: str) -> None:
    config = {
        "url": "/x",
        "method": "POST",
        "query": {"k": {"secret": "KEY"}},
        "headers": {"Authorization": {"secret": "TOKEN", "prefix": "Bearer "}, "X-Status": status},
        "body": {"deep": [{"secret": "KEY"}]},
    }
    reply, server = exchange(echo, config, secrets=SECRETS)
    seen = server.seen[0]
    assert seen.headers["authorization"] == f"Bearer {HEADER}"
    in_query = seen.path.partition("k=")[2]
    assert in_query.startswith("c4nary")
    assert in_query not in repr(reply)
    assert b"c4nary" in seen.body
    assert shows(reply) == []
    assert "***" in repr(reply)


def test_a_secret_address_is_not_told_when_it_fails() -> None:
    reply, server = exchange(echo, {"url": {"secret": "URL"}}, secrets={"URL": "http://127.0.0.1:1/hook/c4nary-path"})
    assert server.seen == []
    assert "c4nary-path" not in repr(reply)


@pytest.mark.parametrize("code", [0, 3])
def test_a_secret_reaches_the_program_and_comes_back_hidden(code: int) -> None:
    script = "import os, sys, base64; v = os.environ['K']; i = sys.stdin.read()"
    said = "print(v, i, base64.b64encode(v.encode()).decode())"
    argv = [sys.executable, "-c", f"{script}; {said}; print(i, file=sys.stderr); sys.exit({code})"]
    reply = shell({"argv": argv, "env": {"K": {"secret": "KEY"}}, "stdin": {"secret": "TOKEN"}}, secrets=SECRETS)
    assert shows(reply) == []
    assert "***" in repr(reply)


def test_a_secret_does_not_go_into_argv() -> None:
    assert "use `env` or `stdin`" in error(shell({"argv": ["echo", {"secret": "KEY"}]}, secrets=SECRETS)).message


@pytest.mark.parametrize("body", ["$.input.body", {"cel": "input.body"}, {"literal": {"secret": "KEY"}}])
def test_a_reference_that_arrives_as_data_stays_data(body: Any) -> None:
    given = {"body": {"secret": "KEY"}, "headers": {}}
    reply, server = exchange(echo, {"url": "/", "method": "POST", "body": body}, given, secrets=SECRETS)
    assert server.seen[0].body == b'{"secret":"KEY"}'
    assert output(reply)["status"] == 200
    _, server = exchange(echo, {"url": "/", "method": "POST"}, given, secrets=SECRETS)
    assert server.seen[0].body == b'{"secret":"KEY"}'


def test_kinds_that_send_nothing_do_not_resolve_references() -> None:
    assert pure_output("set", {"values": {"a": {"secret": "KEY"}}}) == {"a": {"secret": "KEY"}}
    assert pure_output("template", {"template": "${secret.KEY}"}) == {"text": "${secret.KEY}"}


def test_a_missing_or_tiny_secret_is_named_with_its_remedy() -> None:
    for secrets, message in (({}, "there is no secret 'KEY'"), ({"KEY": "abc"}, "shorter than 4")):
        reply, server = exchange(echo, {"headers": {"A": {"secret": "KEY"}}}, secrets=secrets)
        assert message in error(reply).message
        assert server.seen == []


def test_a_secret_bound_to_hosts_goes_to_no_other() -> None:
    config = {"headers": {"A": {"secret": "TOKEN"}}}
    reply, server = exchange(echo, config, secrets=SECRETS, secret_hosts={"TOKEN": ("api.example",)})
    assert "may not be sent to '127.0.0.1'" in error(reply).message
    assert server.seen == []
    assert output(exchange(echo, config, secrets=SECRETS, secret_hosts={"TOKEN": ("127.0.0.1",)})[0])["status"] == 200


def test_secrets_come_from_the_environment_or_from_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TREADLE_SECRET_A", "from-env")
    (tmp_path / "B").write_text("from-file\n")
    assert run(EnvironmentSecrets().get("A")) == "from-env"
    assert run(EnvironmentSecrets().get("HOME")) is None
    assert run(FileSecrets(tmp_path).get("B")) == "from-file"
    assert run(FileSecrets(tmp_path).get("C")) is None


@pytest.mark.parametrize("name", ["../B", "a/b", ".hidden", "", "a\0", "x" * 200, 5, None])
def test_a_name_that_could_be_a_path_is_refused_before_the_provider_sees_it(name: Any, tmp_path: Path) -> None:
    with pytest.raises(TaskFailure, match="name is made of"):
        run(fetch({"secret": name}, FileSecrets(tmp_path)))


def test_a_secret_does_not_show_itself() -> None:
    secret = Secret("KEY", CANARY)
    assert {str(secret), repr(secret), f"{secret}", f"{secret:>3}", f"{[secret]}"} == {"***", "[***]"}
    with pytest.raises(TypeError, match="'KEY' cannot be written down"):
        pickle.dumps(secret)


def test_logs_of_an_attempt_are_scrubbed() -> None:
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.addFilter(RedactingFilter())
    logger = logging.Logger("attempt")
    logger.addHandler(handler)
    token = current.set(Redactor([Secret("TOKEN", HEADER)]))
    try:
        logger.info("sent %s", HEADER)
        try:
            raise ValueError(HEADER)
        except ValueError:
            logger.exception("failed")
        assert redact_event(None, "info", {"event": HEADER}) == {"event": "***"}
    finally:
        current.reset(token)
    assert HEADER not in stream.getvalue()
    assert "ValueError: ***" in stream.getvalue()
