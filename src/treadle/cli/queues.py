"""`treadle queues …`: work that waits for workers, and what is decided about it.

Exit codes: 0 done · 2 an option is written wrongly · 4 the store has no queues of its own · 5 the store cannot be used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import App, Parameter

from treadle.cli.exits import OK, USAGE, Failure
from treadle.cli.options import OutputOption, StoreOption, configuration

if TYPE_CHECKING:
    from treadle.runtime.client import Client
    from treadle.runtime.queues import QueueRules

app = App(name="queues", help="Queues of workers: list, set.", help_format="plaintext")

COLUMNS = ("queue", "waiting", "claimed", "held", "oldest", "workers", "limits", "weights")
LimitOption = Annotated[str | None, Parameter(help="A number, or `none` to take it away.")]
RateOption = Annotated[str | None, Parameter(help="5/s, 100/m, 20/h, or `none`.")]
NONE = "none"


@app.default
@app.command(name="list")
def list_(*, store: StoreOption = None, output: OutputOption = None) -> int:
    """Show what waits, what is claimed, and who works for each queue."""

    async def act(client: Client, out: Any) -> int:
        from treadle.cli.emit import builtins, duration

        rows = []
        for one in await client.queues():
            words = {
                "queue": one.queue or "(engines)",
                "oldest": duration(one.oldest_ms) if one.waiting else "",
                "workers": ", ".join(one.workers) or "nobody",
                "limits": ", ".join(_limits(one.rules)),
                "weights": ", ".join(f"{key}={weight:g}" for key, weight in one.rules.weights.items()),
            }
            rows.append({**builtins(one), **(words if out.text else {})})
        out.rows(COLUMNS, rows, "no queue has work or rules")
        return OK

    return _ask(act, store, output)


@app.command(name="set")
def set_(
    queue: Annotated[str, Parameter(help="The queue's name.")],
    /,
    *,
    concurrency: LimitOption = None,
    rate: RateOption = None,
    key_concurrency: LimitOption = None,
    key_rate: RateOption = None,
    weight: Annotated[
        tuple[str, ...], Parameter(help="KEY=WEIGHT: turns of a key beside others (1); repeat it.", negative="")
    ] = (),
    store: StoreOption = None,
    output: OutputOption = None,
) -> int:
    """Limit a queue over all its workers, or weigh its keys; what is not named stays as it is."""

    async def act(client: Client, out: Any) -> int:
        from treadle.cli.emit import builtins

        before = {one.queue: one.rules for one in await client.queues()}
        given = {"concurrency": concurrency, "rate": rate, "key_concurrency": key_concurrency, "key_rate": key_rate}
        rules = changed(before.get(queue), given, weight)
        await client.set_queue(queue, rules)
        said = ", ".join(_limits(rules)) or "no limits"
        out.done({"queue": queue, **builtins(rules)}, f"{queue}: {said}")
        return OK

    return _ask(act, store, output)


def changed(before: QueueRules | None, given: dict[str, str | None], weights: tuple[str, ...]) -> QueueRules:
    """Rules with what was said on the command line. Raises Failure, CommandRefused."""
    from msgspec.structs import replace

    from treadle.cli.loading import split_pair
    from treadle.runtime.queues import NO_RULES, read_rate

    rules = before or NO_RULES
    news: dict[str, Any] = {}
    for name, text in given.items():
        if text is None:
            continue
        news[name] = None if text == NONE else read_rate(text) if "rate" in name else _number(name, text)
    pairs = dict(rules.weights)
    for pair in weights:
        key, value = split_pair(pair, "--weight")
        try:
            pairs[key] = float(value)
        except ValueError:
            raise Failure(USAGE, f"--weight {pair}: expected KEY=NUMBER") from None
    kept = {key: value for key, value in pairs.items() if value != 1}
    return replace(rules, **news, weights=kept)


def _number(name: str, text: str) -> int:
    if not text.isdecimal():
        raise Failure(USAGE, f"--{name.replace('_', '-')} {text}: expected a number, or `{NONE}`")
    return int(text)


def _limits(rules: QueueRules) -> list[str]:
    from treadle.runtime.queues import write_rate

    limits = [("", rules.concurrency, rules.rate), ("per key ", rules.key_concurrency, rules.key_rate)]
    words = []
    for whose, concurrency, rate in limits:
        words += [f"{whose}{concurrency} at once"] if concurrency is not None else []
        words += [f"{whose}{write_rate(rate)}"] if rate is not None else []
    return words


def _ask(act: Any, store: str | None, output: Any) -> int:
    from treadle.cli.opening import ask

    return ask(configuration(store, output), act)
