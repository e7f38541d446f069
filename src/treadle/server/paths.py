"""Finding the route of a request, by its path as it was sent.

A path is split before it is decoded, so that `%2F` stays inside its segment. Lookup is by segment, so its time does not
grow with the number of routes. Promises that two routes never fit one path and method: building the tree refuses it.
"""

from __future__ import annotations

from collections.abc import Iterable

from treadle.server.routes import Route


class _Place:
    """One segment of the tree."""

    def __init__(self) -> None:
        self.named: dict[str, _Place] = {}
        self.any: _Place | None = None
        self.routes: dict[str, Route] = {}


class RouteTree:
    """All routes of an application."""

    def __init__(self, routes: Iterable[Route]) -> None:
        self._root = _Place()
        self._plain: dict[str, dict[str, Route]] = {}
        """Routes of paths without parameters."""
        for route in routes:
            self._add(route)

    def _add(self, route: Route) -> None:
        place = self._root
        for segment in route.full_path.split("/")[1:]:
            if segment.startswith("{"):
                place.any = place.any or _Place()
                place = place.any
            else:
                place = place.named.setdefault(segment, _Place())
        if route.method in place.routes:
            raise ValueError(f"{route.method} {route.full_path} is declared twice")
        place.routes[route.method] = route
        if not route.parameters:
            self._plain[route.full_path] = place.routes

    def find(self, path: str) -> tuple[dict[str, Route], list[str]]:
        """The routes at a path by method, and the texts of its parameters, still encoded. Nothing there: no routes."""
        plain = self._plain.get(path)
        if plain is not None:
            return plain, []
        segments = path.split("/")[1:]
        return self._find(self._root, segments, 0, [])

    def _find(
        self, place: _Place, segments: list[str], at: int, texts: list[str]
    ) -> tuple[dict[str, Route], list[str]]:
        if at == len(segments):
            return place.routes, texts
        named = place.named.get(segments[at])
        if named is not None:
            found = self._find(named, segments, at + 1, texts)
            if found[0]:
                return found
        if place.any is not None and segments[at]:
            return self._find(place.any, segments, at + 1, [*texts, segments[at]])
        return {}, []
