"""The table of settings: the name, type, default and meaning of each.

`settings.py` reads them. Must not read anything by itself."""

from __future__ import annotations

from typing import Any, NamedTuple


class Setting(NamedTuple):
    """One setting: its name, type, default and meaning."""

    name: str
    """The name in `treadle.toml`: `store`, `engine.grace_ms`."""
    kind: type
    default: Any
    help: str
    choices: tuple[str, ...] = ()

    @property
    def variable(self) -> str:
        """`engine.grace_ms` → `TREADLE_ENGINE_GRACE_MS`."""
        return "TREADLE_" + self.name.replace(".", "_").upper()


SETTINGS = (
    Setting("store", str, "treadle.db", "where everything is kept: a SQLite file, or postgresql://HOST/DATABASE"),
    Setting("server", str, None, "address of a service that verbs ask instead of a store; TREADLE_KEY is its key"),
    Setting("output", str, "text", "format of answers", ("text", "json", "jsonl")),
    Setting("workflows", str, "workflows", "the folder `treadle dev` deploys from"),
    Setting("library", str, None, "a file with `tasks` and `actions` that definitions use by name"),
    Setting(
        "workers", dict, {}, "what a canvas's `workerType` stands for: type → an action, with a queue if it has one"
    ),
    Setting(
        "log.level",
        str,
        "warning",
        "lowest level that an engine or worker logs, on stderr",
        ("info", "warning", "error"),
    ),
    Setting(
        "functions.allow",
        list,
        ["."],
        "modules, and folders of modules, whose functions workflows may call by name; `.`: the project's folder",
    ),
    Setting("engine.attempts_max", int, 1_000, "attempts executed at once"),
    Setting("engine.threads_max", int, None, "threads for functions that are not async"),
    Setting("engine.processes_max", int, None, "processes for `process: true`"),
    Setting("engine.payload_max", int, 64 * 1024, "size in bytes from which a value is kept outside the history"),
    Setting("engine.cel_bytes_max", int, 4 * 1024 * 1024, "bytes of data that one CEL expression may read"),
    Setting(
        "engine.open_wait_ms", int, 60_000, "how long an engine that starts waits for a store that does not answer"
    ),
    Setting(
        "engine.tracebacks", bool, True, "whether the traceback of a function that raises is kept with its attempt"
    ),
    Setting("engine.grace_ms", int, 5_000, "how long attempts may go on when an engine closes"),
    Setting(
        "engine.lease_ms",
        int,
        10_000,
        "how long an engine may be silent before others take over its runs, 1000 at least (PostgreSQL)",
    ),
    Setting(
        "engine.claim_ms",
        int,
        15_000,
        "how long a worker may be silent before its work is offered again, 1000 at least (PostgreSQL)",
    ),
    Setting("engine.queues", dict, None, "queues an engine works for, each with its attempts at once; none given: all"),
    Setting("keep.age_ms", int, None, "how long finished runs are kept, and their keys; none given: for good"),
    Setting("keep.count", int, None, "how many finished runs of each workflow are kept"),
    Setting(
        "keep.history_age_ms",
        int,
        None,
        "how long finished runs keep their whole history; afterwards only the first and the last event",
    ),
    Setting(
        "keep.workflows", dict, {}, "workflows with a rule of their own: tables with age_ms, count, history_age_ms"
    ),
    Setting(
        "secrets.key_file",
        str,
        None,
        "file with the key that seals stored secrets, the same on every node; none given: the store's own secret",
    ),
    Setting(
        "traces.enabled",
        bool,
        False,
        "whether runs are traced by OpenTelemetry (extra `otel`); the variables OTEL_… say where spans go",
    ),
    Setting("net.allow", list, [], "addresses that are not public and may be reached nevertheless"),
    Setting("shell.enabled", bool, False, "whether `shell` actions run at all"),
    Setting("shell.sandbox", str, "bubblewrap", "sandbox of `shell` actions", ("bubblewrap", "none")),
    Setting("shell.allow", list, None, "programs that `shell` actions may run; none given: any"),
    Setting("shell.env", list, [], "variables of the engine that `shell` actions see"),
    Setting(
        "shell.user",
        int,
        None,
        "user id of programs in the sandbox of an engine that is root; none given: the user `nobody`",
    ),
    Setting("shell.processes_max", int, 64, "most processes at once in a sandbox"),
    Setting("shell.memory_max", int, 1024 * 1024 * 1024, "most bytes of data of each process in a sandbox"),
    Setting("shell.file_max", int, 256 * 1024 * 1024, "most bytes of each file written in a sandbox"),
    Setting("shell.disk_max", int, 256 * 1024 * 1024, "most bytes of all files in a sandbox's own folders"),
    Setting(
        "webhooks.public_url",
        str,
        None,
        "address at which webhook workers reach this engine: the start of callback addresses",
    ),
    Setting("webhooks.signing_secret", str, None, "name of the secret that signs webhooks without one of their own"),
    Setting("webhooks.subscriptions", list, [], "addresses that events are sent to: tables with url, types and secret"),
    Setting("server.hosts", list, [], "names under which the service may be asked for, beside loopback; `*`: any"),
    Setting("server.origins", list, [], "origins whose pages may call the API from a browser, with a key (CORS)"),
    Setting("server.proxies", list, [], "addresses of proxies in front, whose X-Forwarded-For is believed"),
    Setting("server.metrics_from", list, [], "addresses that may read /metrics without a key"),
    Setting("server.body_max", int, 1024 * 1024, "most bytes of a request's body"),
    Setting("server.artifact_max", int, 64 * 1024 * 1024, "most bytes of an uploaded artifact"),
    Setting(
        "server.requests_per_s", int, None, "requests a second of each key and of each address; none given: no limit"
    ),
    Setting("server.requests_burst", int, 100, "requests that may come at once before that limit counts"),
    Setting("server.failures_per_min", int, 30, "wrong keys a minute from one address before it must wait"),
    Setting("server.session_idle_ms", int, 12 * 3_600_000, "how long a browser session lives without being used"),
    Setting("server.session_max_ms", int, 7 * 24 * 3_600_000, "how long a browser session lives at most"),
    Setting("server.oidc", dict, None, "an OpenID provider people sign in with: issuer, client_id, …"),
    Setting("llm.profiles", list, [], "language models: tables with name, provider, base_url, api_key, model, …"),
    Setting("llm.default", str, None, "the profile of `llm` actions without one of their own"),
    Setting("llm.proxy", str, None, "an HTTP proxy for all providers"),
    Setting("mcp.servers", list, [], "MCP servers: tables with name and command, or name and url"),
)
BY_NAME = {setting.name: setting for setting in SETTINGS}
