"""The checks of `treadle doctor` on a PostgreSQL database. Each line is ok, warn or bad, and has a remedy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from treadle.cli.screen.output import duration, now_ms
from treadle.cli.upkeep.diagnosis import (
    LATE_WARN_MS,
    REFUSED_RECENTLY_MS,
    Diagnosis,
    left_alone,
    refused_requests,
    size,
)
from treadle.store.places import StoreLocation

if TYPE_CHECKING:
    from treadle.runtime.operate.upkeep import DatabaseHealth, StoreHealth

VERSION_MIN = 150_000
"""The oldest server that the tests have run on."""
CLOCK_WARN_MS = 1_000
"""Leases use the server's clock alone. Timers use the engine's: they fire early or late by this difference."""
CONNECTIONS_WARN = 0.8
"""Share of the server's connections in use."""
TRANSACTION_WARN_MS = 600_000
"""Ten minutes: long enough for a report or a backup, too long for hot tables, which are not vacuumed meanwhile."""
PARTITIONS_WARN = 400
"""About a year of daily partitions. A query for a run's whole history is planned over all of them."""


async def lines(place: StoreLocation) -> list[Diagnosis]:
    """All checks of a database."""
    from treadle.errors import StorePlaceError, TreadleError
    from treadle.runtime.operate.upkeep import examine_database

    try:
        health = await examine_database(place)
    except StorePlaceError as problem:
        return [Diagnosis("store", "bad", f"{problem.path}: {problem.problem}", problem.remedy)]
    except (TreadleError, OSError) as problem:
        return [Diagnosis("store", "bad", str(problem), "look at the address and at the server's log")]
    found = [Diagnosis("store", "ok", health.place), *_server(health), _rights(health)]
    if health.store is None:
        return [*found, *_no_tables(health)]
    version = f"version {health.schema_version}, {health.store.shards} shards, {size(health.store.bytes)}"
    seen = [*_tables(health.store), *_nodes(health.store), *_work(health.store)]
    return [
        *found,
        Diagnosis("tables", "ok", version),
        *seen,
        *([] if health.lacking else await _requests_and_queues(place)),
    ]


def _rights(health: DatabaseHealth) -> Diagnosis:
    if not health.lacking:
        return Diagnosis("rights", "ok", "everything an engine needs")
    remedy = "let the user of the engines own the tables, or grant it these and CREATE on the schema"
    return Diagnosis("rights", "bad", f"this user lacks {', '.join(health.lacking)}", remedy)


async def _requests_and_queues(place: StoreLocation) -> list[Diagnosis]:
    from treadle.errors import TreadleError
    from treadle.runtime.connecting import connect

    try:
        async with connect(place, wait_s=0) as client:
            queues = await client.queues()
            kept = await client.requests(limit=1_000)
    except TreadleError:  # moved, or being moved: another check reports it
        return []
    since = now_ms() - REFUSED_RECENTLY_MS
    refused = refused_requests(sum(one.status == "refused" and one.asked >= since for one in kept))
    return [refused, *left_alone(queues)]


def _no_tables(health: DatabaseHealth) -> Iterator[Diagnosis]:
    if health.schema_version == health.schema_newest:
        return  # the tables exist but cannot be read: the check of rights reports it
    yield _made_or_not(health)


def _made_or_not(health: DatabaseHealth) -> Diagnosis:
    if health.namesakes:
        told = f"Treadle's tables are missing, and other tables have their names: {', '.join(health.namesakes)}"
        return Diagnosis("tables", "bad", told, "choose another database, or a schema of its own (?search_path=…)")
    if not health.schema_version:
        return Diagnosis("tables", "warn", "Treadle's tables are missing", "treadle run or treadle engine makes them")
    told = f"version {health.schema_version}, this Treadle knows {health.schema_newest}"
    if health.schema_version < health.schema_newest:
        return Diagnosis("tables", "warn", told, "the next engine brings them up to date")
    return Diagnosis("tables", "bad", told, "use the newer Treadle that has written them")


def _server(health: DatabaseHealth) -> Iterator[Diagnosis]:
    told = health.settings
    new = int(told["server_version_num"]) >= VERSION_MIN
    yield Diagnosis(
        "postgresql", "ok" if new else "warn", told["server_version"], "" if new else "use PostgreSQL 15 or newer"
    )
    for name, loss in (
        ("synchronous_commit", "answers may be lost in a crash of the server"),
        ("fsync", "a power cut may destroy the database"),
        ("full_page_writes", "a power cut may destroy pages"),
    ):
        off = told[name] == "off"
        yield Diagnosis(name, "bad" if off else "ok", told[name], f"{loss}: set it to on" if off else "")
    yield from _servers(health)
    far = abs(health.clock_ms) > max(CLOCK_WARN_MS, health.round_trip_ms)
    apart = f"the server's is {abs(health.clock_ms)} ms {'ahead' if health.clock_ms > 0 else 'behind'}"
    yield Diagnosis(
        "clocks", "warn" if far else "ok", apart, "let both machines synchronise their clocks" if far else ""
    )
    yield Diagnosis("round trip", "ok" if health.round_trip_ms < 20 else "warn", f"{health.round_trip_ms:.1f} ms", "")
    most = int(told["max_connections"]) - int(told["superuser_reserved_connections"])
    full = health.connections > CONNECTIONS_WARN * most
    used = f"{health.connections} of {most} in use, {health.connections_ours} by Treadle"
    yield Diagnosis(
        "connections", "warn" if full else "ok", used, "raise max_connections, or use a pooler" if full else ""
    )
    if health.is_pooled:
        between = (
            "connections go through one: each statement is planned anew, and processes notice each other a second late"
        )
        yield Diagnosis(
            "pooler", "warn", between, "let Treadle connect directly; a process needs nine connections at most"
        )
    yield _transactions(health)
    vacuum = told["autovacuum"] == "on"
    yield Diagnosis(
        "autovacuum", "ok" if vacuum else "bad", told["autovacuum"], "" if vacuum else "hot tables grow: set it to on"
    )


def _servers(health: DatabaseHealth) -> Iterator[Diagnosis]:
    """Every server of the address, and whether a failover can lose commits."""
    primaries = [one for one in health.servers if one.role == "primary"]
    for one in health.servers:
        on = f" on timeline {one.timeline}" if one.timeline else ""
        told = f"{one.host}: {one.role}{on}" if one.role else f"{one.host}: {one.problem}"
        if len(primaries) > 1 and one.role == "primary":
            yield Diagnosis("server", "bad", told, "two servers take writes: stop the one on the lower timeline")
        else:
            yield Diagnosis("server", "ok" if one.role else "warn", told, "" if one.role else "look at that server")
    names, commit = health.settings["synchronous_standby_names"], health.settings["synchronous_commit"]
    if health.standbys and (not names or commit == "local"):
        remedy = "name them in synchronous_standby_names" if not names else "set synchronous_commit to on"
        told = f"{health.standbys}, and commits do not wait for them: a failover may lose acknowledged commits"
        yield Diagnosis("standbys", "warn", told, remedy)
    elif names:
        waits = f"{health.standbys} connected, commits wait for {names}"
        yield Diagnosis(
            "standbys", "ok" if health.standbys else "warn", waits, "" if health.standbys else "start a standby"
        )


def _transactions(health: DatabaseHealth) -> Diagnosis:
    if health.prepared:
        remedy = "COMMIT PREPARED or ROLLBACK PREPARED them: nothing is vacuumed while they are there"
        return Diagnosis("transactions", "bad", f"{health.prepared} prepared and not ended", remedy)
    age = health.oldest_transaction_ms or 0
    if age > TRANSACTION_WARN_MS:
        remedy = "hot tables cannot be vacuumed meanwhile: end it"
        return Diagnosis("transactions", "warn", f"open for {duration(age)}: {health.oldest_transaction}", remedy)
    return Diagnosis("transactions", "ok", f"the oldest is open for {duration(age)}" if age else "none is open")


def _tables(store: StoreHealth) -> Iterator[Diagnosis]:
    if store.mark is not None:
        words = {"leaving": "is being moved to", "left": "was moved to", "arriving": "is incomplete: a move from"}
        remedy = "use that one (--store)" if store.mark.state == "left" else "run `treadle db move` again to go on"
        yield Diagnosis("move", "bad", f"it {words[store.mark.state]} {store.mark.other}", remedy)
    dead = ", ".join(f"{table}: {gone:,} dead rows beside {live:,}" for table, (gone, live) in store.dead_rows.items())
    remedy = "look for long transactions, then VACUUM them" if dead else ""
    yield Diagnosis("dead rows", "warn" if dead else "ok", dead or "cleared away", remedy)
    if store.not_vacuumed:
        yield Diagnosis("autovacuum", "bad", f"off for {', '.join(store.not_vacuumed)}", "ALTER TABLE … RESET it")
    stuck = store.days_behind > 1 and bool(store.nodes)
    many = store.partitions > PARTITIONS_WARN
    remedy = (
        "let the engines' user create tables"
        if stuck
        else "set keep.age_ms, so that old ones are dropped"
        if many
        else ""
    )
    told = f"{store.partitions} of history, the newest begun {store.days_behind} days ago"
    yield Diagnosis("partitions", "warn" if stuck or many else "ok", told, remedy)


def _nodes(store: StoreHealth) -> Iterator[Diagnosis]:
    engines = [node for node in store.nodes if node.coordinates]
    idle = not (store.open_runs or store.requests)
    names = ", ".join(node.name for node in store.nodes)
    counts = ((len(engines), "engine"), (len(store.nodes) - len(engines), "worker"))
    told = ", ".join(f"{count} {noun}{'' if count == 1 else 's'}" for count, noun in counts)
    told += f": {names}" if names else ""
    yield Diagnosis("nodes", "ok" if engines or idle else "warn", told, "" if engines or idle else "treadle engine")
    free = store.shards - store.leases
    if store.orphaned:
        remedy = "they are taken over when their leases run out; look again in ten seconds"
        yield Diagnosis("leases", "warn", f"{store.orphaned} belong to nodes that are gone", remedy)
    elif engines and free:
        yield Diagnosis("leases", "warn", f"{free} of {store.shards} shards have no owner", "look again in ten seconds")
    else:
        yield Diagnosis("leases", "ok", f"{store.leases} of {store.shards} shards are owned")
    late = max((node.behind_ms for node in store.nodes), default=0)
    slow = late > LATE_WARN_MS
    yield Diagnosis(
        "behind", "warn" if slow else "ok", duration(late) if late else "nobody", "add engines" if slow else ""
    )


def _work(store: StoreHealth) -> Iterator[Diagnosis]:
    owned = any(node.coordinates for node in store.nodes)
    yield Diagnosis("runs", "ok", f"{store.open_runs:,} open")
    late = store.oldest_request_ms or 0
    asked = f"{store.requests} unanswered" + (f", the oldest for {duration(late)}" if store.requests else "")
    bad = owned and late > LATE_WARN_MS
    remedy = "look at the engines' logs" if bad else "treadle engine answers them" if store.requests else ""
    yield Diagnosis("requests", "bad" if bad else "warn" if store.requests else "ok", asked, remedy)
    late = store.oldest_timer_ms or 0
    stuck = owned and late > LATE_WARN_MS
    due = f"{store.timers_due} overdue by up to {duration(late)}" if store.timers_due else "none overdue"
    remedy = "look at the engines' logs" if stuck else "treadle engine fires them" if store.timers_due else ""
    yield Diagnosis("timers", "bad" if stuck else "warn" if remedy and not owned else "ok", due, remedy)
    dead = store.dead_letters
    yield Diagnosis(
        "dead letters", "warn" if dead else "ok", str(dead) if dead else "none", "treadle dead list" if dead else ""
    )
