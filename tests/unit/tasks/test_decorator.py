"""`@task`: a function stays a function, and a flow knows how to call it."""

from __future__ import annotations

import asyncio
import pickle
from datetime import date
from typing import Any

import pytest

from tests.unit.tasks import shop
from treadle.language import load_value
from treadle.language.builder import Flow
from treadle.language.parts import python, retry, step
from treadle.language.parts import task as task_part
from treadle.tasks import name_of, options_of, task
from treadle.tasks.decorator import duration_ms

PAY = f"{shop.__name__}:pay"


def test_a_task_is_the_function_it_was_and_can_be_called_without_an_engine() -> None:
    assert shop.pay(shop.Order("o1", 5)) == shop.Receipt("ch-o1", 5)
    assert asyncio.run(shop.look_up({"name": "Ann", "born": date(1990, 1, 2)}))["year"] == 1990
    assert pickle.loads(pickle.dumps(shop.crunch)) is shop.crunch


def test_what_the_decorator_said_is_noted_on_the_function() -> None:
    noted = options_of(shop.pay)
    assert noted is not None
    assert (noted.retry, noted.timeout_ms, noted.queue, noted.compensate) == (
        {"max_attempts": 3},
        30_000,
        "bank",
        shop.refund,
    )
    assert options_of(shop.refund) is None


@pytest.mark.parametrize(
    ("text", "ms"),
    [("30s", 30_000), ("250ms", 250), ("1h 30m", 5_400_000), ("1.5s", 1_500), ("2d", 172_800_000), (7, 7)],
)
def test_a_duration_is_said_in_words_or_milliseconds(text: Any, ms: int) -> None:
    assert duration_ms(text) == ms


@pytest.mark.parametrize("text", ["", "30", "s", "5 weeks", "1h and a bit", "-5s"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is no duration"):
        duration_ms(text)


def test_parameters_that_no_input_could_name_are_refused() -> None:
    with pytest.raises(TypeError, match="`first: 'int'` has no name"):
        task(shop.by_position)
    with pytest.raises(TypeError, match="has no name"):
        task(lambda *values: values)


def test_an_async_function_cannot_ask_for_a_process() -> None:
    async def slow() -> None: ...

    with pytest.raises(TypeError, match="slow is async"):
        task(process=True)(slow)


def test_a_node_of_a_task_behaves_as_the_decorator_said() -> None:
    flow = Flow("shop")
    flow.node("pay", shop.pay, input={"order": "$.input.order"}, output={"output.charge": "$.charge"})
    node = flow.build().nodes["pay"]
    assert node.task is not None
    assert node.task.steps[0].action.config == {"function": PAY}
    assert node.retry is not None
    assert (node.retry.max_attempts, node.timeout_ms, node.queue) == (3, 30_000, "bank")
    assert node.compensate is not None
    assert node.compensate.task.steps[0].action.config == {"function": name_of(shop.refund)}
    assert node.compensate.input_mapping == {"order": "$.input.order", "charge": "$.output.charge"}


def test_what_the_node_says_goes_before_what_the_decorator_said() -> None:
    flow = Flow("shop")
    flow.node("pay", shop.pay, input={"order": "$.input.order"}, retry=retry(1), timeout_ms=5, queue="other")
    node = flow.build().nodes["pay"]
    assert node.retry is not None
    assert (node.retry.max_attempts, node.timeout_ms, node.queue) == (1, 5, "other")


def test_a_flow_with_functions_is_the_canonical_document_and_back() -> None:
    flow = Flow("shop")
    flow.node("pay", shop.pay, input={"order": "$.input.order"}).to(
        flow.node("square", shop.crunch, input={"number": 3})
    )
    document = flow.document()
    assert load_value(document).workflow == flow.build()
    assert document["nodes"]["square"]["task"]["steps"][0]["action"] == {
        "kind": "python",
        "function": name_of(shop.crunch),
        "process": True,
    }


def test_a_function_nobody_can_import_is_registered_with_the_flow_by_its_bare_name() -> None:
    def judge(topic: str) -> str:
        return topic

    flow = Flow("local")
    flow.node("judge", judge, output={"output.v": "$.result"})
    flow.node("vote", action=python(judge)).to(flow.node("end", steps=[step(judge, "again")]))
    assert flow.functions == {"judge": judge}
    task = flow.load(signatures=None).require().nodes["judge"].task
    assert task is not None
    assert task.steps[0].action.config == {"function": "judge"}


def test_two_functions_of_one_bare_name_are_refused() -> None:
    flow = Flow("local")
    flow.node("a", lambda: 1)
    with pytest.raises(ValueError, match="already has another function '<lambda>'"):
        flow.node("b", lambda: 2)


def test_a_node_runs_one_task() -> None:
    with pytest.raises(ValueError, match="a function and `action`"):
        Flow("twice").node("a", shop.greet, action="mail")


def test_as_a_step_the_decorators_retry_and_timeout_are_the_actions() -> None:
    @task(retry=2, timeout="1s")
    def fetch(url: str) -> str:
        return url

    flow = Flow("steps")
    flow.node("a", task=task_part(step(fetch, "f"), step(shop.greet, "g")))
    found = flow.load(signatures=None).require().nodes["a"].task
    assert found is not None
    execution = found.steps[0].action.execution
    assert execution is not None
    assert execution.retry_policy is not None
    assert (execution.timeout_ms, execution.retry_policy.max_attempts) == (1_000, 2)


def test_a_step_has_no_queue_and_no_compensation_of_its_own() -> None:
    with pytest.raises(ValueError, match="which only a node can have"):
        step(shop.pay)
