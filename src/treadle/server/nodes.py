"""The processes on the store: which of them coordinate and execute, what each owns, how far behind it is."""

from __future__ import annotations

from msgspec import Struct

from treadle.runtime.client import NodeRow
from treadle.server.call import HttpAnswer, HttpCall
from treadle.server.paging import PageQuery, page_of
from treadle.server.routes import VIEWER, Route


class NodeList(Struct):
    """Processes on the store. A row without a name: nobody coordinates its shards."""

    items: list[NodeRow]
    next: str | None


async def list_nodes(call: HttpCall) -> HttpAnswer:
    return HttpAnswer(NodeList(*page_of(call, await call.client.nodes(), lambda row: [row.node, row.owner])))


ROUTES = (
    Route(
        method="GET",
        path="/nodes",
        handler=list_nodes,
        access=VIEWER,
        about="none",
        noun="operating",
        summary="Engines and workers by name: shards, queues, lag",
        query=PageQuery,
        answers={200: NodeList},
    ),
)
