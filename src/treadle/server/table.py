"""The table of all routes: every noun's, in the order in which people read about them."""

from __future__ import annotations

from treadle.server import (
    answering,
    artifacts,
    batch,
    callbacks,
    canvas_pages,
    dead_letters,
    docs,
    entities,
    gates,
    history,
    hooks,
    info,
    keeping,
    links,
    many_gates,
    metrics,
    migrations,
    nodes,
    queues,
    run_changes,
    run_commands,
    run_list,
    run_queue,
    run_views,
    runs,
    schedules,
    simulate,
    stream,
    subscriptions,
    tasks,
    workflow_views,
    workflows,
)
from treadle.server.routes import Route

NOUNS = (
    info,
    metrics,
    workflows,
    run_list,
    runs,
    tasks,
    queues,
    artifacts,
    gates,
    many_gates,
    links,
    answering,
    stream,
    history,
    entities,
    callbacks,
    hooks,
    run_views,
    run_commands,
    run_changes,
    batch,
    migrations,
    workflow_views,
    run_queue,
    simulate,
    schedules,
    dead_letters,
    nodes,
    subscriptions,
    keeping,
    docs,
    canvas_pages,
)


def all_routes() -> tuple[Route, ...]:
    """Every route of the service."""
    return tuple(route for noun in NOUNS for route in noun.ROUTES)
