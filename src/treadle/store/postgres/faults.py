"""Translation of errors of PostgreSQL and of the network into the port's exceptions.

Promises that no error is swallowed: one that is neither the server's nor the network's is a bug of ours and is passed
on unchanged. Must not decide what to do about an error, except for which ones a transaction is simply retried.
"""

from __future__ import annotations

import re

import asyncpg

from treadle.errors import StorePlaceError, StoreUnavailable

RETRIED = (
    asyncpg.SerializationError,
    asyncpg.DeadlockDetectedError,
    asyncpg.InvalidCachedStatementError,
    asyncpg.OutdatedSchemaCacheError,
)
"""40001, 40P01, and statements prepared before another node has migrated: nothing has happened, and the same again may
succeed."""

LOST = (asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError, OSError)
"""Errors while a connection is reset for its next user: it cannot be used again."""

SEAL = "treadle_sealed"
"""The constraint on a database that is being moved, or was."""

_REMEDIES: dict[type[BaseException], str] = {
    asyncpg.DiskFullError: "the server's disk is full: make room, the store goes on by itself",
    asyncpg.TooManyConnectionsError: "the server takes no more connections: raise max_connections, or use fewer",
    asyncpg.InsufficientResourcesError: "the server has run out of something: look at its log",
    asyncpg.OperatorInterventionError: "the server stops, starts or was told to cancel this: try again",
    asyncpg.LockNotAvailableError: "a lock was not given in time: look for long transactions",
    asyncpg.IdleInTransactionSessionTimeoutError: "this process stood still in the middle of a transaction",
    asyncpg.ReadOnlySQLTransactionError: "the server only reads: is it a standby?",
    asyncpg.TargetServerAttributeNotMatched: "name the primary, or promote a standby; the store goes on by itself then",
    # asyncpg raises this for a connection that the server has closed between two statements.
    asyncpg.InternalClientError: "the connection is gone: try again",
    asyncpg.PostgresConnectionError: "the connection is gone: try again",
    asyncpg.PostgresSystemError: "the server reports an error of its system: look at its log",
    TimeoutError: "the server did not answer in time",
    OSError: "the server cannot be reached",
}

_RIGHTS = "let this user read and write the tables of the store, or use the one who owns them"

_WRONG_PLACE: dict[type[BaseException], str] = {
    asyncpg.InvalidCatalogNameError: "create the database first",
    asyncpg.InvalidAuthorizationSpecificationError: "look at user and password",
    asyncpg.InsufficientPrivilegeError: (
        "let this user create tables there (CREATE on the schema), or start an engine or `treadle deploy` as the user"
        " who owns them"
    ),
    asyncpg.DuplicateTableError: "choose another database, or a schema of its own (?search_path=…)",
    asyncpg.InvalidSchemaNameError: "create the schema first",
}

WRONG_OPTIONS = (
    asyncpg.UndefinedObjectError,
    asyncpg.InvalidParameterValueError,
    asyncpg.CantChangeRuntimeParamError,
    asyncpg.ClientConfigurationError,
)
"""Errors about options of the address: an option behind the ? that the client does not know is passed to the server."""

UNPREPARED = (asyncpg.InvalidSQLStatementNameError, asyncpg.DuplicatePreparedStatementError)
"""A statement prepared by name is unknown, or another has the name: a pooler has changed the connection behind this
one."""

_OWN_LIMIT = {"role": "ALTER ROLE … CONNECTION LIMIT", "database": "ALTER DATABASE … CONNECTION LIMIT"}


def _remedy_of(problem: BaseException, remedy: str) -> str:
    """A role or a database may have a limit of its own, below the server's."""
    for word, statement in _OWN_LIMIT.items():
        if isinstance(problem, asyncpg.TooManyConnectionsError) and f"for {word}" in str(problem):
            return f"this {word} may have no more connections: raise its limit ({statement}), or use fewer"
    return remedy


def said(problem: BaseException) -> str:
    """The problem's message; our own words if the message is about a library's internals."""
    if isinstance(problem, asyncpg.TargetServerAttributeNotMatched):
        return "it only reads"
    return str(problem) or type(problem).__name__


def unavailable(problem: BaseException, place: str, *, outcome_unknown: bool = False) -> BaseException:
    """The exception that callers see; the problem itself if it is a bug."""
    for kind, remedy in _REMEDIES.items():
        if isinstance(problem, kind):
            return _made(problem, place, _remedy_of(problem, remedy), outcome_unknown)
    if isinstance(problem, asyncpg.CheckViolationError) and problem.constraint_name == SEAL:
        text = f"{place}: nothing is written here any more: it is being moved, or was; open it again to learn where to"
        made = StoreUnavailable(text, final=True)
        made.__cause__ = problem
        return made
    if isinstance(problem, asyncpg.InsufficientPrivilegeError):
        made = StoreUnavailable(f"{place}: {problem}: {_RIGHTS}", final=True)
        made.__cause__ = problem
        return made
    if isinstance(problem, asyncpg.ObjectNotInPrerequisiteStateError) and "accepting connections" in str(problem):
        return _made(problem, place, "the database accepts no connections at the moment", outcome_unknown)
    # asyncpg uses the same class for mistakes of a caller; only these messages are about the connection.
    if isinstance(problem, asyncpg.InterfaceError) and re.search("clos|released back to the pool", str(problem)):
        return _made(problem, place, "the connection or the store is closed", outcome_unknown)
    return problem


def is_verdict(problem: BaseException) -> bool:
    """Whether the server itself reported the failure of a statement: then it had no effect. A server that stops or
    crashes may report an error after the statement has become durable."""
    gone = (asyncpg.PostgresConnectionError, asyncpg.AdminShutdownError, asyncpg.CrashShutdownError)
    return isinstance(problem, asyncpg.PostgresError) and not isinstance(problem, gone)


def misplaced(problem: BaseException, place: str) -> BaseException:
    """Like `unavailable`, for a store that is being opened."""
    for kind, remedy in _WRONG_PLACE.items():
        if isinstance(problem, kind):
            made = StorePlaceError(place, str(problem), remedy)
            made.__cause__ = problem
            return made
    return unavailable(problem, place)


def _made(problem: BaseException, place: str, remedy: str, outcome_unknown: bool) -> StoreUnavailable:
    text = said(problem)
    made = StoreUnavailable(f"{place}: {text}: {remedy}", outcome_unknown=outcome_unknown)
    made.__cause__ = problem
    return made
