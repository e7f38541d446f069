"""The OpenAPI document, made from the route table and the Structs that check the requests.

Owns how a route is described. msgspec makes the schemas, so that the description and the check cannot differ.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from importlib.metadata import version
from typing import Any

import msgspec

from treadle.server.bodies import INTEGER_MAX
from treadle.server.examples import body_example, example_of, refusal_example
from treadle.server.problems import MEDIA_TYPE, ProblemDocument, status_and_title
from treadle.server.routes import Route

REFERENCE = "#/components/schemas/{name}"
EXAMPLE = "#/components/examples/{name}"
EVERYWHERE = ("RATE_LIMITED", "STORE_UNAVAILABLE", "DRAINING", "BAD_REQUEST")
"""Codes that any route may answer."""
TO_CALLERS = ("UNAUTHENTICATED", "FORBIDDEN")
"""Codes that any route with a caller may answer, too."""
HEADERS = {
    "If-None-Match": "The ETag of what the reader has: if it is still that, the answer is 304 without a body.",
    "If-Match": "The ETag of what was read: anything newer is not overwritten.",
    "If-None-Match: *": "Only if there is none yet.",
    "Range": "`bytes=FIRST-LAST`: only these bytes.",
    "If-Range": "The ETag of what the reader has a part of: `Range` counts only if it is still that.",
    "Last-Event-ID": "The id of the last message that was seen: the stream continues behind it.",
}

Schemas = dict[Hashable, Any]
"""Schemas by what they are of: a route's body, one of its answers or parameters, a problem."""
PROBLEM = "problem"


def document(routes: Iterable[Route]) -> dict[str, Any]:
    """The description of these routes."""
    table = tuple(routes)
    kinds = _kinds(table)
    made, components = msgspec.json.schema_components(kinds.values(), ref_template=REFERENCE)
    schemas: Schemas = dict(zip(kinds, made, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for route in table:
        operation = _operation(route, schemas, table)
        _add_examples(route, operation, components)
        paths.setdefault(route.full_path, {})[route.method.lower()] = operation
    _bound_integers([paths, components])
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Treadle",
            "version": version("treadle"),
            "description": "A durable, token-based workflow engine. Instants are milliseconds since 1970.",
        },
        "paths": paths,
        "components": {
            "schemas": components,
            "examples": {code: {"value": refusal_example(code)} for code in _codes(table)},
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer", "bearerFormat": "tdl_<prefix>_<secret>"}},
        },
    }


def _kinds(table: tuple[Route, ...]) -> dict[Hashable, Any]:
    """Everything that needs a schema."""
    found: dict[Hashable, Any] = {PROBLEM: ProblemDocument}
    for route in table:
        for field in msgspec.structs.fields(route.query) if route.query is not None else ():
            found[route, "query", field.encode_name] = field.type
        for name, kind in (("body", route.body), *route.answers.items()):
            if kind is not None and kind is not bytes:
                found[route, name] = kind
    return found


def _add_examples(route: Route, operation: dict[str, Any], components: dict[str, Any]) -> None:
    """Gives every body, answer and refusal of an operation an example."""
    for media, content in operation.get("requestBody", {}).get("content", {}).items():
        example = body_example(route.full_path, media, content["schema"])
        if example is not None:
            content["example"] = example
    for status, named in _refusals(route).items():
        content = operation["responses"][str(status)]["content"][MEDIA_TYPE]
        content["examples"] = {code: {"$ref": EXAMPLE.format(name=code)} for code in named}
    for answer in operation["responses"].values():
        content = answer.get("content", {}).get("application/json", {})
        if "schema" in content:
            content["example"] = example_of(content["schema"], components)


def _bound_integers(described: Any) -> None:
    """Says the range of integers wherever none is said: `bodies.py` refuses any other."""
    todo = [described]
    while todo:
        part = todo.pop()
        if isinstance(part, dict):
            if part.get("type") == "integer":
                part.setdefault("minimum", -INTEGER_MAX)
                part.setdefault("maximum", INTEGER_MAX)
            todo.extend(part.values())
        elif isinstance(part, list):
            todo.extend(part)


def _name(route: Route) -> str:
    return f"{route.method.lower()}{route.full_path.replace('/', '_').replace('{', '').replace('}', '')}"


def _operation(route: Route, schemas: Schemas, table: tuple[Route, ...]) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "summary": route.summary,
        "operationId": _name(route),
        "tags": [route.noun],
        "parameters": _parameters(route, schemas),
        "responses": _responses(route, schemas, _links(route, table)),
        "x-role": route.access.words,
    }
    if route.description:
        operation["description"] = route.description
    if route.body is not None:
        schema = schemas[route, "body"] if route.body is not bytes else {}
        content = {media: {"schema": schema} for media in route.media_types}
        operation["requestBody"] = {"required": _needs_body(route), "content": content}
    operation["security"] = [] if route.access.open else [{"key": []}]
    return operation


def _needs_body(route: Route) -> bool:
    if not isinstance(route.body, type) or not issubclass(route.body, msgspec.Struct):
        return False  # no body is an empty one
    return any(field.required for field in msgspec.structs.fields(route.body))


def _parameters(route: Route, schemas: Schemas) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}
        for name in route.parameters
    ]
    if route.query is not None:
        for field in msgspec.structs.fields(route.query):
            schema = schemas[route, "query", field.encode_name]
            found.append({"name": field.encode_name, "in": "query", "required": field.required, "schema": schema})
    for name in route.reads_headers:
        found.append(_header(name.partition(":")[0], HEADERS[name]))
    if _takes_key(route):
        words = "The same request with the same key again gives the first answer again."
        found.append(_header("Idempotency-Key", words, maxLength=200))
    return found


def _header(name: str, words: str, **bounds: Any) -> dict[str, Any]:
    schema = {"type": "string", "minLength": 1, **bounds}
    return {"name": name, "in": "header", "required": False, "schema": schema, "description": words}


def _takes_key(route: Route) -> bool:
    return route.method == "POST" and not route.access.open


def _links(route: Route, table: tuple[Route, ...]) -> dict[str, Any]:
    """What can be done next with the thing that was made: every operation below its address."""
    sources = {parameter: f"$response.body#/{field}" for parameter, field in route.makes.items()}
    if route.method == "PUT":
        sources = {name: f"$request.path.{name}" for name in route.parameters}
    below = route.full_path + ("" if route.method == "PUT" else "/{")
    return {
        _name(other): {"operationId": _name(other), "parameters": sources}
        for other in table
        if sources
        and set(other.parameters) == set(sources)
        and other.full_path.startswith(below)
        and other is not route
    }


def _responses(route: Route, schemas: Schemas, links: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for status, kind in route.answers.items():
        answer: dict[str, Any] = {"description": _words(status)}
        if kind is not None:
            schema = {} if kind is bytes else {"schema": schemas[route, status]}
            answer["content"] = {route.answer_type: schema}
            if status < 300:
                answer["content"] |= {media: {} for media in route.other_types}
        if status == 201:
            answer["headers"] = {"Location": {"schema": {"type": "string"}}}
        if links and status < 300:
            answer["links"] = links
        found[str(status)] = answer
    if "If-None-Match" in route.reads_headers:
        found["304"] = {"description": "The reader has it already"}
    for status, named in sorted(_refusals(route).items()):
        answer = found.setdefault(str(status), {"description": ", ".join(named)})
        answer.setdefault("content", {})[MEDIA_TYPE] = {"schema": schemas[PROBLEM]}
    return found


def _refusals(route: Route) -> dict[int, list[str]]:
    """Status → the codes that a route refuses with."""
    codes = {*route.problems, *EVERYWHERE}
    if not route.access.open:
        codes |= set(TO_CALLERS)
    if route.is_write:
        codes |= {"TOO_LARGE", "MEDIA_TYPE"}
    if _takes_key(route):
        codes |= {"IDEMPOTENCY_IN_PROGRESS", "IDEMPOTENCY_MISMATCH"}
    if route.about in ("run", "workflow") or route.parameters:
        codes.add("NOT_FOUND")
    statuses: dict[int, list[str]] = {}
    for code in sorted(codes):
        statuses.setdefault(status_and_title(code)[0], []).append(code)
    if route.is_write:
        statuses[408] = ["BAD_REQUEST"]  # the body did not arrive in time
    if "Range" in route.reads_headers:
        statuses[416] = ["BAD_REQUEST"]
    return statuses


def _codes(table: tuple[Route, ...]) -> list[str]:
    return sorted({code for route in table for named in _refusals(route).values() for code in named})


def _words(status: int) -> str:
    return {200: "Done", 201: "Made", 202: "Accepted", 204: "Done, nothing to tell"}.get(status, "Answered")
