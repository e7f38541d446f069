"""The engine for code without `async`: the same objects, whose methods wait.

    with treadle.open("treadle.db") as engine:
        run = engine.start(flow, {"topic": "tea"})
        for event in run.events():
            print(event.type)
        print(run.result())

Owns an event loop on a thread of its own, and how to wait for what runs there. The classes are made from the
asynchronous ones: a method that is a coroutine there blocks here, an asynchronous iterator
is an iterator, and what comes back is made blocking too. `blocking_types.pyi` tells type checkers; `tools/blocking.py`
writes it from the same source and a test compares the two. Must not know what any method does.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, TypeVar

from treadle.errors import EngineStopped, TreadleError
from treadle.runtime.client import Client
from treadle.runtime.run import Run
from treadle.store.port import Store

T = TypeVar("T")


class WouldBlock(TreadleError):
    """Something that waits was called where nothing may wait: inside a running event loop."""

    def __init__(self) -> None:
        super().__init__(
            "this would block the event loop that is running here; in async code and in notebooks write "
            "`async with Engine(…) as engine:` and `await` what you call, or call this from a thread"
        )


class BackgroundLoop:
    """An event loop on a thread of its own. The thread does not keep a process alive that has nothing else to do."""

    def __init__(self) -> None:
        self._runner = asyncio.Runner(loop_factory=asyncio.new_event_loop)
        self._loop = self._runner.get_loop()
        self._over = asyncio.Event()
        self._thread = threading.Thread(target=self._live, name="treadle", daemon=True)
        self._thread.start()

    def wait(self, work: Coroutine[Any, Any, T]) -> T:
        """What the work comes to. Interrupted (Ctrl-C), it is cancelled; what it has made durable stays so."""
        try:
            refuse_to_block()
            if not self._thread.is_alive():
                raise EngineStopped("it was closed: use it inside its `with`")
        except TreadleError:
            work.close()
            raise
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def end(self) -> None:
        self._loop.call_soon_threadsafe(self._over.set)
        self._thread.join()

    def _live(self) -> None:
        with self._runner as runner:
            runner.run(self._over.wait())


def refuse_to_block() -> None:
    """Raises WouldBlock on a thread whose event loop is running."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise WouldBlock


class Blocking:
    """What every blocking object has: the object it stands for, and the loop that lives on."""

    def __init__(self, inner: Any, background: BackgroundLoop) -> None:
        self._inner = inner
        self._background = background

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return _blocking(getattr(self._inner, name), self._background)

    def __repr__(self) -> str:
        return f"blocking {self._inner!r}"


def _blocking(value: Any, background: BackgroundLoop) -> Any:
    """What came back, waiting where it can be waited for."""
    if isinstance(value, AsyncIterator):
        return _steps(value, background)
    if isinstance(value, Run):
        return face(Run, Drawn)(value, background)
    kind: type = type(value)
    return face(kind, Blocking)(value, background) if _has_coroutines(kind) else value


@functools.cache
def _has_coroutines(of: type) -> bool:
    """Whether a class is one of ours with methods that wait, such as a group of methods of a client."""
    is_ours = of.__module__.startswith("treadle.runtime.")
    return is_ours and any(inspect.iscoroutinefunction(method) for method in _methods(of).values())


def _steps(stream: AsyncIterator[Any], background: BackgroundLoop) -> Iterator[Any]:
    end = object()

    async def step() -> Any:
        return await anext(stream, end)

    async def leave() -> None:
        if (close := getattr(stream, "aclose", None)) is not None:
            await close()

    try:
        while (value := background.wait(step())) is not end:
            yield _blocking(value, background)
    finally:
        background.wait(leave())


def _method(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """A method that waits. Plain ones are called on the loop as well: nothing there is made for two threads."""

    @functools.wraps(function)
    def call(self: Blocking, *args: Any, **kwargs: Any) -> Any:
        async def work() -> Any:
            answer = getattr(self._inner, name)(*args, **kwargs)
            return await answer if inspect.isawaitable(answer) else answer

        return _blocking(self._background.wait(work()), self._background)

    return call


def _methods(of: type) -> dict[str, Callable[..., Any]]:
    """The public methods of an asynchronous class, those it inherits included."""
    return {name: method for name, method in inspect.getmembers(of, inspect.isfunction) if not name.startswith("_")}


class Opened(Blocking):
    """What has a loop to itself, and ends with it."""

    def __init__(self, opening: AbstractAsyncContextManager[Any]) -> None:
        async def enter() -> Any:
            return await opening.__aenter__()

        refuse_to_block()
        background = BackgroundLoop()
        self._opening = opening
        try:
            super().__init__(background.wait(enter()), background)
        except BaseException:
            background.end()
            raise
        self._closed = False

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Lets work in hand end for a while, then stops; what is left goes on with the next engine. Closing again does
        nothing."""

        async def leave() -> None:
            await self._opening.__aexit__(None, None, None)

        if not self._closed:
            refuse_to_block()
            self._closed = True
            try:
                self._background.wait(leave())
            finally:
                self._background.end()


class Drawn(Blocking):
    """A run, which a notebook shows as its timeline."""

    def _repr_mimebundle_(self, **asked: Any) -> Any:
        try:
            return self.timeline()._repr_mimebundle_(**asked)
        except WouldBlock:
            return self._inner._repr_mimebundle_(**asked)


@functools.cache
def face(of: type, kind: type[Blocking]) -> Callable[..., Any]:
    """The blocking class of an asynchronous one."""
    kept = {name: _method(name, method) for name, method in _methods(of).items() if name not in vars(kind)}
    return type(of.__name__, (kind,), {"__doc__": of.__doc__, "__module__": __name__, **kept})


def open(store: str | Path | Store = "treadle.db", **options: Any) -> Any:
    """An open engine whose methods wait, for code without `async`. Takes what `Engine` takes; `with` closes it."""
    from treadle.runtime.engine import Engine

    refuse_to_block()
    return face(Engine, Opened)(Engine(store, **options))


def opened_client(opening: AbstractAsyncContextManager[Client]) -> Any:
    """What `with connect(…)` gives."""
    return face(Client, Opened)(opening)
