"""Starts that the limits of their workflow refuse (6.7), over HTTP."""

from __future__ import annotations

from uuid import uuid4

from tests.server.client import Served


def test_a_start_beyond_the_rate_is_told_when_the_next_has_room(served: Served) -> None:
    name, operator = f"rate/{uuid4().hex[:10]}", served.as_("operator")
    served.deploy(f"workflow: {name}\nrate: {{limit: 1, per_ms: 3600000, on_limit: skip}}\nnodes: {{a: {{}}}}\n")
    assert operator.api("POST", "/runs", {"workflow": name}).status == 201
    refused = operator.api("POST", "/runs", {"workflow": name})
    assert (refused.status, refused.json["code"]) == (429, "RATE_LIMITED")
    assert 3_500 < int(refused.headers["retry-after"]) <= 3_600


def test_a_start_that_is_skipped_names_the_run_in_its_way(served: Served) -> None:
    name, operator = f"skip/{uuid4().hex[:10]}", served.as_("operator")
    ask = "{ask: {action: {kind: human}}}"
    served.deploy(f"workflow: {name}\nconcurrency: {{limit: 1, on_limit: skip}}\nnodes: {ask}\n")
    first = operator.api("POST", "/runs", {"workflow": name}).json["run"]
    refused = operator.api("POST", "/runs", {"workflow": name})
    assert (refused.status, refused.json["code"]) == (409, "DUPLICATE")
    assert first in refused.json["detail"]
