"""`treadle queues …`: work that waits for workers, and the limits and weights of each queue.

Exit codes: 0 done · 2 an option is written wrongly · 4 the store has no queues of its own · 5 the store cannot be used.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import App, Parameter

from treadle.cli.frame.exits import OK, USAGE, VerbFailed
from treadle.cli.frame.options import OutputOption, StoreOption, configuration
from treadle.cli.watch.queue_words import limits

if TYPE_CHECKING:
    from treadle.cli.screen.tables import Gives
    from treadle.runtime.client import Client
    from treadle.runtime.queue.queue_settings import QueueRules

app = App(name="queues", help="Queues of workers: list, set.", help_format="plaintext")

COLUMNS = ("queue", "waiting", "claimed", "held", "oldest", "workers", "limits", "weights")
GIVES: tuple[Gives, ...] = (
    ("leave", "held"),
    ("cut", "weights"),
    ("cut", "workers"),
    ("leave", "weights"),
    ("cut", "limits"),
    ("cut", "queue"),
    ("leave", "limits"),
)
LimitOption = Annotated[str | None, Parameter(help="A number, or `none` to remove the limit.")]
RateOption = Annotated[str | None, Parameter(help="5/s, 100/m, 20/h, or `none`.")]
NONE = "none"


@app.default
@app.command(name="list")
def list_(*, store: StoreOption = None, output: OutputOption = None) -> int:
    """Show the waiting and claimed work and the workers of each queue."""

    async def act(client: Client, out: Any) -> int:
        from treadle.cli.screen.output import builtins, duration

        rows = []
        for one in await client.queues():
            words = {
                "queue": one.queue or "(engines)",
                "held": one.held or "",
                "oldest": duration(one.oldest_ms) if one.waiting else "",
                "workers": ", ".join([*counted([_worker(name, one.lacks) for name in one.workers]), *one.outside])
                or "nobody",
                "limits": ", ".join(limits(one.rules)),
                "weights": ", ".join(_weights(one.rules)),
            }
            rows.append({**builtins(one), **(words if out.text else {})})
        out.rows(COLUMNS, rows, "no queue has work, workers or rules", GIVES)
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
        tuple[str, ...],
        Parameter(help="KEY=WEIGHT: turns of a key for each turn of another (1); repeat it.", negative=""),
    ] = (),
    store: StoreOption = None,
    output: OutputOption = None,
) -> int:
    """Limit a queue over all its workers, or weigh its keys. Rules that are not named stay as they are."""

    async def act(client: Client, out: Any) -> int:
        from treadle.cli.screen.output import builtins, say

        known = {one.queue: one for one in await client.queues()}
        given = {"concurrency": concurrency, "rate": rate, "key_concurrency": key_concurrency, "key_rate": key_rate}
        rules = changed(known[queue].rules if queue in known else None, given, weight)
        await client.set_queue(queue, rules)
        said = ", ".join([*limits(rules), *(f"weight {words}" for words in _weights(rules))]) or "no limits"
        out.done({"queue": queue, **builtins(rules)}, f"{queue}: {said}")
        if queue not in known:
            say(f"queue {queue!r} has had no work yet, and no worker names it{_near(queue, known)}")
        return OK

    return _ask(act, store, output)


def changed(before: QueueRules | None, given: dict[str, str | None], weights: tuple[str, ...]) -> QueueRules:
    """The rules of a queue, changed by the options that were given. Raises VerbFailed."""
    from msgspec.structs import replace

    from treadle.cli.frame.inputs import split_pair
    from treadle.errors import CommandRefused
    from treadle.runtime.queue.queue_settings import NO_RULES, check_rules, read_rate

    rules = before or NO_RULES
    news: dict[str, Any] = {}
    for name, text in given.items():
        if text is None:
            continue
        try:
            news[name] = None if text == NONE else read_rate(text) if "rate" in name else _number(name, text)
        except CommandRefused as refused:
            raise VerbFailed(USAGE, f"--{name.replace('_', '-')} {text}: {refused.message}") from None
    pairs = dict(rules.weights)
    for pair in weights:
        key, value = split_pair(pair, "--weight")
        try:
            pairs[key] = float(value)
        except ValueError:
            raise VerbFailed(USAGE, f"--weight {pair}: expected KEY=NUMBER") from None
    kept = {key: value for key, value in pairs.items() if value != 1}
    made = replace(rules, **news, weights=kept)
    try:
        check_rules(made)
    except CommandRefused as refused:
        raise VerbFailed(USAGE, refused.message) from None
    return made


def _number(name: str, text: str) -> int:
    if not text.isdecimal():
        raise VerbFailed(USAGE, f"--{name.replace('_', '-')} {text}: expected a number, or `{NONE}`")
    return int(text)


def _weights(rules: QueueRules) -> list[str]:
    return [f"{key}={weight:g}" for key, weight in rules.weights.items()]


def _worker(name: str, lacks: dict[str, tuple[str, ...]]) -> str:
    return f"{name} (lacks {', '.join(lacks[name])})" if name in lacks else name


def counted(names: Sequence[str]) -> list[str]:
    """`red`, `blue ×2`: each name once, with its count."""
    return [name if count == 1 else f"{name} ×{count}" for name, count in Counter(names).items()]


def _near(queue: str, known: Iterable[str]) -> str:
    from difflib import get_close_matches

    close = get_close_matches(queue, [name for name in known if name], n=1)
    return f"; did you mean {close[0]}? (`--concurrency none` removes a limit)" if close else ""


def _ask(act: Any, store: str | None, output: Any) -> int:
    from treadle.cli.frame.opening import ask

    return ask(configuration(store, output), act)
