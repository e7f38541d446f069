"""The picture of a run over HTTP: what a graph shows of it, without its history, on both stores."""

from __future__ import annotations

from tests.server.client import Served

FAN = """
workflow: {name}
nodes:
  plan:
    action: {{kind: set, values: {{ideas: {ideas}}}}}
    output: {{state.ideas: $.ideas}}
  judge:
    action: {{kind: human, title: Judge it}}
  gather: {{}}
transitions:
  - {{id: all, from: plan, to: judge, foreach: {{collection: $.state.ideas, item_var: idea}}}}
  - {{from: judge, to: gather, synchronization: {{sibling_group: all}}}}
"""


def test_every_visit_group_and_transition_is_in_the_picture(served: Served) -> None:
    served.deploy(FAN.format(name="picture", ideas="[tea, rain, bees]"))
    viewer = served.as_("viewer")
    run = served.as_("operator").post("/runs", {"workflow": "picture"})["run"]
    while len((shown := viewer.get(f"/runs/{run}/picture"))["gates"]) < 3:
        pass
    visits = shown["visits"]
    nodes = [visits["nodes"][index] for index in visits["node"]]
    statuses = [visits["statuses"][index] for index in visits["status"]]
    expected = [("plan", "completed"), *[("judge", "waiting")] * 3]
    assert list(zip(nodes, statuses, strict=True)) == expected
    assert [frames[-1][1] for frames in visits["frames"][1:]] == [0, 1, 2]
    assert [(way["transition"], way["count"]) for way in shown["ways"]] == [("all", 3)]
    [group] = shown["groups"]
    assert (group["total"], group["begun"], [site["node"] for site in group["sites"]]) == (3, 3, ["gather"])
    assert (shown["counts"], shown["workflow"]) == ({"completed": 1, "waiting": 3}, "picture")


def test_columns_stay_whole_where_large_values_are_cut(served: Served) -> None:
    served.deploy(FAN.format(name="picture-wide", ideas=list(range(300))))
    viewer = served.as_("viewer")
    run = served.as_("operator").post("/runs", {"workflow": "picture-wide"})["run"]
    while len((shown := viewer.get(f"/runs/{run}/picture?value_max=1000"))["gates"]) < 300:
        pass
    assert len(shown["visits"]["visit"]) == len(shown["live"]) + 1 == 301
    assert "$large" in shown["scope"]["state"]
    assert len(viewer.get(f"/runs/{run}?value_max=1000")["waiting"]) == 300  # a long list is no large value


def test_an_unknown_run_has_no_picture(served: Served) -> None:
    assert served.as_("viewer")("GET", "/api/v1/runs/none/picture").status == 404
