"""What the generator draws is what an author could deploy: every definition passes the language's own checks."""

from __future__ import annotations

from collections import Counter

from msgspec.structs import replace

from tests.simulator.generator import generate
from tests.simulator.generator.versions import upgrades
from tests.simulator.plan import CHANGES, FEATURES, plan_of
from treadle.language import load_value
from treadle.language.document import document_of
from treadle.model.definition import Workflow

SEEDS = range(150)


def drawn() -> list[Workflow]:
    """Everything that is deployed in these seeds, further versions included."""
    found: list[Workflow] = []
    for seed in SEEDS:
        workflows = generate(plan_of(seed))
        found += [*workflows, *(upgrade.workflow for upgrade in upgrades(plan_of(seed), workflows))]
    return found


def test_every_definition_loads_and_is_the_same_again() -> None:
    """Under `strict` warnings are errors; the kernel's half of `strict` is tried all the same."""
    for workflow in drawn():
        lenient = replace(workflow, strict=False)
        loaded = load_value(document_of(lenient))
        assert not loaded.errors, loaded.errors
        assert loaded.workflow == lenient


def test_a_seed_draws_the_same_definition_again() -> None:
    assert [generate(plan_of(seed)) for seed in SEEDS[:20]] == [generate(plan_of(seed)) for seed in SEEDS[:20]]


def test_switching_a_fault_off_leaves_the_definition_alone() -> None:
    plan = plan_of(7)
    assert generate(plan) == generate(plan.without(plan.faults))


def test_every_feature_has_its_turn() -> None:
    turns = Counter(feature for seed in SEEDS for feature in plan_of(seed).features)
    assert turns.keys() == {*FEATURES, *CHANGES}
    assert min(turns.values()) > len(SEEDS) / 5, turns.most_common()[-3:]


def test_definitions_are_as_large_as_they_are_meant_to_be() -> None:
    sizes = sorted(len(workflow.nodes) for workflow in drawn() if workflow.workflow == "main")
    assert sizes[len(sizes) // 2] >= 6, "half of all definitions are tiny"
    assert sizes[-1] <= 60, "some definitions have grown out of hand"
