"""The description of the API: as OpenAPI for programs, as a page for people.

The page is plain HTML without a script: it works everywhere and fetches nothing.
"""

from __future__ import annotations

from functools import cache, lru_cache
from html import escape
from typing import Any

import msgspec

from treadle.server.call import HttpAnswer, HttpCall
from treadle.server.openapi import document
from treadle.server.routes import ANY_KEY, Route

PREFIXES = 16
"""Prefixes below which the application is mounted whose descriptions are kept."""


@cache
def _description(routes: tuple[Route, ...]) -> dict[str, Any]:
    return document(routes)


@lru_cache(PREFIXES)
def _description_bytes(routes: tuple[Route, ...], prefix: str) -> bytes:
    servers = {"servers": [{"url": prefix}]} if prefix else {}
    return msgspec.json.encode({**_description(routes), **servers})


async def openapi(call: HttpCall) -> HttpAnswer:
    return HttpAnswer(_description_bytes(call.service.routes, call.url("")), media_type="application/json")


async def page(call: HttpCall) -> HttpAnswer:
    style = call.url("/api/v1/docs/style.css")
    return HttpAnswer(render(_description(call.service.routes), style).encode(), media_type="text/html; charset=utf-8")


async def style(_call: HttpCall) -> HttpAnswer:
    return HttpAnswer(STYLE.encode(), media_type="text/css; charset=utf-8")


def render(description: dict[str, Any], style: str) -> str:
    """The page for people."""
    by_noun: dict[str, list[str]] = {}
    for path, methods in description["paths"].items():
        for method, operation in methods.items():
            by_noun.setdefault(operation["tags"][0], []).append(_operation(path, method, operation))
    links = " · ".join(f'<a href="#{noun}">{noun}</a>' for noun in by_noun)
    parts = [f'<section id="{noun}"><h2>{noun}</h2>{"".join(rows)}</section>' for noun, rows in by_noun.items()]
    schemas = "".join(
        f'<details id="schema-{name}"><summary><code>{name}</code> {escape(schema.get("description", ""))}</summary>'
        f"<pre>{escape(msgspec.json.format(msgspec.json.encode(schema)).decode())}</pre></details>"
        for name, schema in sorted(description["components"]["schemas"].items())
    )
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Treadle API</title>'
        f'<meta name="viewport" content="width=device-width"><link rel="stylesheet" href="{style}"></head><body><main>'
        f"<h1>Treadle API</h1><p>{escape(description['info']['description'])}</p><nav>{links}</nav>"
        f'{"".join(parts)}<section id="schemas"><h2>schemas</h2>{schemas}</section></main></body></html>'
    )


def _operation(path: str, method: str, operation: dict[str, Any]) -> str:
    parameters = "".join(
        f"<li><code>{escape(one['name'])}</code> ({one['in']}{', required' if one['required'] else ''})</li>"
        for one in operation["parameters"]
        if one["in"] != "header"
    )
    body = ""
    if "requestBody" in operation:
        kinds = operation["requestBody"]["content"].items()
        body = "<p>Body: " + ", ".join(f"{media} {_named(one['schema'])}" for media, one in kinds) + "</p>"
    answers = "".join(
        f"<li><b>{status}</b> {escape(one['description'])} {_named(_schema(one))}</li>"
        for status, one in operation["responses"].items()
    )
    return (
        f'<details><summary><b class="{method}">{method.upper()}</b> <code>{escape(path)}</code> '
        f"{escape(operation['summary'])} <small>{escape(operation['x-role'])}</small></summary>"
        f"<p>{escape(operation.get('description', ''))}</p><ul>{parameters}</ul>{body}<ul>{answers}</ul></details>"
    )


def _schema(answer: dict[str, Any]) -> Any:
    return next((one.get("schema", {}) for one in answer.get("content", {}).values()), {})


def _named(schema: Any) -> str:
    name = schema.get("$ref", "").rpartition("/")[2]
    return f'<a href="#schema-{name}">{name}</a>' if name else ""


STYLE = """
:root { color-scheme: light dark; font: 15px/1.5 system-ui, sans-serif; }
main { max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
code, pre { font: 13px/1.5 ui-monospace, monospace; }
pre { overflow-x: auto; padding: .75rem; border: 1px solid #8884; border-radius: 6px; }
details { border-bottom: 1px solid #8884; padding: .35rem 0; }
summary { cursor: pointer; }
summary b { display: inline-block; min-width: 4.5rem; }
small { opacity: .65; float: right; }
h2 { margin-top: 2.5rem; }
nav { opacity: .8; }
"""

ROUTES = (
    Route(
        method="GET",
        path="/openapi.json",
        handler=openapi,
        access=ANY_KEY,
        about="none",
        noun="service",
        summary="This description, for programs",
        answers={200: dict[str, Any]},
    ),
    Route(
        method="GET",
        path="/docs",
        handler=page,
        access=ANY_KEY,
        about="none",
        noun="service",
        summary="This description, for people",
        answers={200: bytes},
        answer_type="text/html",
    ),
    Route(
        method="GET",
        path="/docs/style.css",
        handler=style,
        access=ANY_KEY,
        about="none",
        noun="service",
        summary="How the description looks",
        answers={200: bytes},
        answer_type="text/css",
    ),
)
