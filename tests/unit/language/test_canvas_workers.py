"""Who does the work of a canvas's Worker: an address, a type of the setting `workers`, an action; never nobody."""

from __future__ import annotations

from typing import Any

import pytest

from treadle.language import load_value
from treadle.model import definition as d


def action_of(data: dict[str, Any], kind: str = "Worker", **known: Any) -> d.Action:
    row = {"id": "a", "type": kind, "data": data}
    task = load_value({"workflow": "w", "nodes": [row], "edges": [], **known}).require().nodes["a"].task
    assert task is not None
    return task.steps[0].action


@pytest.mark.parametrize(
    ("data", "action"),
    [
        (
            {"webhookUrl": "https://x.example/w", "model": "m1", "label": "Draw", "secret": "hook"},
            d.Action("webhook", {"url": "https://x.example/w", "secret": "hook", "config": {"model": "m1"}}),
        ),
        (
            {"webhookUrl": "https://x.example/w", "payload": "stitch", "size": 1},
            d.Action("webhook", {"url": "https://x.example/w", "payload": "stitch", "config": {"size": 1}}),
        ),
        (
            {"webhookUrl": "https://x.example/w", "payload": {"a": 1}},
            d.Action("webhook", {"url": "https://x.example/w", "config": {"payload": {"a": 1}}}),
        ),
        (
            {"workerType": "claude", "webhookUrl": "https://x.example"},
            d.Action("webhook", {"url": "https://x.example", "config": {"workerType": "claude"}}),
        ),
        (
            {"workerType": "http", "config": {"url": "https://x.example", "method": "POST"}},
            d.Action("http", {"url": "https://x.example", "method": "POST"}),
        ),
        ({"action": {"kind": "emit", "type": "x"}}, d.Action("emit", {"type": "x"})),
    ],
)
def test_a_worker_is_a_webhook_or_an_integrated_action(data: dict[str, Any], action: d.Action) -> None:
    assert action_of(data) == action


def test_a_worker_type_may_be_an_action_of_the_document() -> None:
    actions = {"narrate": {"kind": "llm", "prompt": "Tell"}}
    assert action_of({"workerType": "narrate"}, actions=actions) == d.Action("llm", {"prompt": "Tell"})


WORKERS = {
    "claude": {"kind": "llm", "profile": "claude", "temperature": 0},
    "render": {"kind": "webhook", "url": "https://render.example/jobs", "secret": "RENDER"},
    "score": {"kind": "python", "function": "shop:score", "queue": "gpu"},
}


@pytest.mark.parametrize(
    ("data", "action", "queue"),
    [
        (
            {"workerType": "claude", "config": {"prompt": "Tell", "temperature": 1}, "label": "L", "color": "red"},
            d.Action("llm", {"profile": "claude", "temperature": 1, "prompt": "Tell"}),
            None,
        ),
        (
            {"workerType": "render", "quality": "high", "icon": "film"},
            d.Action(
                "webhook",
                {
                    "url": "https://render.example/jobs",
                    "secret": "RENDER",
                    "config": {"workerType": "render", "quality": "high"},
                },
            ),
            None,
        ),
        ({"workerType": "score"}, d.Action("python", {"function": "shop:score"}), "gpu"),
        ({"workerType": "score", "queue": "cpu"}, d.Action("python", {"function": "shop:score"}), "cpu"),
    ],
)
def test_a_worker_type_is_what_the_setting_says(data: dict[str, Any], action: d.Action, queue: str | None) -> None:
    row = {"id": "a", "type": "Worker", "data": data}
    loaded = load_value({"workflow": "w", "nodes": [row], "edges": []}, workers=WORKERS)
    node = loaded.require().nodes["a"]
    assert node.task is not None
    assert node.task.steps[0].action == action
    assert node.queue == queue
    assert load_value(loaded.document).workflow == loaded.workflow  # a version needs the setting no longer


@pytest.mark.parametrize(
    ("data", "at", "hint"),
    [
        ({"workerType": "claude"}, "nodes[0].data.workerType", "setting `workers`"),
        ({"workerType": "pyton"}, "nodes[0].data.workerType", "did you mean `python`?"),
        ({}, "nodes[0]", "address"),
        ({"webhookUrl": ""}, "nodes[0].data.webhookUrl", "address"),
        ({"webhookUrl": "/jobs"}, "nodes[0].data.url", "in full"),
        ({"webhookUrl": "ftp://x.example"}, "nodes[0].data.url", "only http and https"),
    ],
)
def test_a_worker_nobody_would_work_for_cannot_be_deployed(data: dict[str, Any], at: str, hint: str) -> None:
    problems = load_value({"workflow": "w", "nodes": [{"id": "a", "type": "Worker", "data": data}]}).errors
    assert [(problem.code, problem.at) for problem in problems] == [("BAD_VALUE", at)]
    assert hint in (problems[0].hint or "")


@pytest.mark.parametrize("kind", ["http", "webhook"])
@pytest.mark.parametrize("url", ["", "   ", "/relative", "host/path", "https://", "http:///x", "mailto:a@b", 7])
def test_an_address_that_reaches_nobody_cannot_be_deployed(kind: str, url: Any) -> None:
    loaded = load_value({"workflow": "w", "nodes": {"a": {"action": {"kind": kind, "url": url}}}})
    assert [(problem.code, problem.at) for problem in loaded.errors] == [("BAD_VALUE", "nodes.a.action.url")]


@pytest.mark.parametrize("kind", ["http", "webhook"])
@pytest.mark.parametrize("url", ["https://x.example", "HTTP://[::1]:8/p?q=1#f", "$.input.url", {"cel": "input.url"}])
def test_a_whole_address_or_a_source_of_one_is_taken(kind: str, url: Any) -> None:
    assert load_value({"workflow": "w", "nodes": {"a": {"action": {"kind": kind, "url": url}}}}).errors == []


def test_a_ux_node_asks_a_person() -> None:
    form = {"type": "object"}
    assert action_of({"label": "Approve?", "form": form}, "UX") == d.Action(
        "human", {"form": form, "title": "Approve?"}
    )
