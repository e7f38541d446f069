"""The page behind a link: shows the question, takes the answer, and says what has become of it (5.5).

Owns the decisions about a visit of the page; `links` says how a link is used up, `answer_page` has the markup. Browsers
ask for HTML and get pages. A program that does not gets problem documents instead of pages that refuse, and may answer
in JSON.
"""

from __future__ import annotations

import re
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from treadle.errors import CommandRefused, StoreConflict
from treadle.model.people import people_of
from treadle.runtime.gate_view import GateView
from treadle.server.answer_page import PageQuestion, answered_page, done_page, over_page, question_page
from treadle.server.artifacts import bytes_of
from treadle.server.bodies import read_body
from treadle.server.call import HttpAnswer, HttpCall
from treadle.server.form_fields import FormField, data_of, entries_of, fields_of
from treadle.server.links import KIND, LinkNote, digest_of
from treadle.server.posted_form import PostedForm, read_form
from treadle.server.problems import HttpProblem
from treadle.server.routes import OPEN, Route
from treadle.server.settings import MIB
from treadle.server.shown_input import InputView
from treadle.server.who import Who

FORM_MAX = 16 * MIB
"""Bytes of a form with its files."""
JSON = "application/json"
_TOKEN = re.compile(r"[A-Za-z0-9_-]{43}")


class LinkAnswer(Struct, kw_only=True):
    """An answer by a link, from a program."""

    data: Any = None
    comment: str | None = None
    by: Annotated[str | None, Meta(description="Who answers, where the link names nobody.")] = None


class LinkAnswered(Struct):
    """The answer was taken, and the link is used up."""

    data: Any
    by: str | None


class _Visit:
    """A visit of a page: the link behind its token, and its gate."""

    def __init__(self, note: LinkNote, version: int, view: GateView, call: HttpCall) -> None:
        self.note = note
        self.version = version
        self.view = view
        self._call = call

    async def question(self, view: GateView | None = None) -> PageQuestion:
        view, note = view or self.view, self.note
        artifacts = await self._call.client.run(note.run).artifacts()
        shown = InputView(artifacts, self._call.url(f"/answer/{self._call.path['token']}/files"))
        asked = note.answers_as
        people = _candidates(view)
        if asked is None and len(people) == 1:
            asked = people[0]
        question = PageQuestion(view, asked, note.expires, self._call.now(), shown)
        question.asks_name, question.people = asked is None, people
        return question


def _candidates(view: GateView) -> list[str]:
    """People whom the gate names and who have not answered yet. A gate that asks groups may be answered by others."""
    people = [pair for assign in (view.assign, view.escalated) for pair in people_of(assign)]
    if any(kind == "group" for kind, _ in people):
        return []
    answered = {answer.by for answer in view.answers}
    return [name for name in dict.fromkeys(name for _, name in people) if name not in answered]


async def _visit(call: HttpCall) -> _Visit | HttpAnswer:
    """The link and its gate, or the page that says why there is none."""
    token = call.path["token"]
    found = await call.client.records.find(KIND, digest_of(token)) if _TOKEN.fullmatch(token) else None
    if found is None:
        return _over(call, "There is no such link", "Look whether it was copied as a whole.", 404)
    note = msgspec.convert(found.body, LinkNote)
    if note.used is not None:
        return _over(call, "This link has been used", "It works once. Ask for a new one if something is wrong.")
    if note.expires <= call.now():
        return _over(call, "This link has expired", f"Ask {note.made_by or 'its sender'} for a new one.")
    try:
        view = await call.client.gate(note.run, note.visit)
    except CommandRefused:
        return _over(call, "This question is gone", "Its run does not exist any more.")
    visit = _Visit(note, found.version, view, call)
    if view.status != "open" or view.seq != note.opened:
        return _answered(call, await visit.question())
    return visit


def _over(call: HttpCall, title: str, words: str, status: int = 410) -> HttpAnswer:
    if _wants_page(call):
        return over_page(title, words, status)
    raise HttpProblem("NOT_FOUND" if status == 404 else "GONE", f"{title[0].lower()}{title[1:]}", remedy=words)


def _answered(call: HttpCall, question: PageQuestion) -> HttpAnswer:
    if _wants_page(call):
        return answered_page(question)
    answer = question.view.answer
    raise HttpProblem("GONE", f"{answer.by or 'somebody'} has answered" if answer else "this question is closed")


def _wants_page(call: HttpCall) -> bool:
    """Whether a person looks at the answer: browsers ask for HTML by name, programs do not."""
    return "text/html" in call.request.headers.get("accept", "")


async def show(call: HttpCall) -> HttpAnswer:
    visit = await _visit(call)
    if isinstance(visit, HttpAnswer):
        return visit
    fields = fields_of(visit.view.form)
    return question_page(await visit.question(), fields, entries_of(fields))


async def submit(call: HttpCall) -> HttpAnswer:
    visit = await _visit(call)
    if isinstance(visit, HttpAnswer):
        return visit
    call.request.state.about = visit.view.gate
    await call.service.require_engine()
    fields = fields_of(visit.view.form)
    question = await visit.question()
    is_json = call.request.headers.get("content-type", "").partition(";")[0].strip().lower() == JSON
    if is_json:
        told: LinkAnswer = read_body(call.raw, LinkAnswer)
        form = PostedForm({"_as": [told.by or ""], "_comment": [told.comment or ""]}, {})
        data = told.data
    else:
        form = read_form(call.request.headers.get("content-type", ""), call.raw)
        await _keep_files(call, visit, fields, form)
        data = data_of(fields, form.entries) if fields else {}
    try:
        used = msgspec.structs.replace(visit.note, used=call.now())
        kept = await call.client.records.put(
            KIND, digest_of(call.path["token"]), msgspec.to_builtins(used), visit.version
        )
    except StoreConflict:
        return _over(call, "This link has been used", "It works once. Ask for a new one if something is wrong.")
    try:
        comment = (form.entries.get("_comment") or [""])[0].strip() or None
        by = _answers_as(question, form)
        call.request.state.who = Who(id=f"link:{digest_of(call.path['token'])[:12]}", name="link", user=by or "")
        await call.client.complete_gate(visit.note.run, visit.note.visit, data, by=by, comment=comment)
    except BaseException as raised:
        body = msgspec.to_builtins(visit.note)
        await call.client.records.put(KIND, digest_of(call.path["token"]), body, kept.version)
        if isinstance(raised, CommandRefused) and not is_json:
            return await _refused(call, visit, fields, form, raised)
        raise
    if is_json:
        return HttpAnswer(LinkAnswered(data, by), media_type=JSON)
    return done_page(await visit.question(await call.client.gate_again(visit.view)), data)


def _answers_as(question: PageQuestion, form: PostedForm) -> str | None:
    given = (form.entries.get("_as") or [""])[0].strip()
    if not question.asks_name:
        return question.asked
    if question.people:
        return given if given in question.people else question.people[0]
    return given[:100] or None


async def _keep_files(call: HttpCall, visit: _Visit, fields: tuple[FormField, ...], form: PostedForm) -> None:
    """Files become artifacts of the run; their field's value is the artifact's name."""
    for field in fields:
        await _keep_files(call, visit, field.fields, form)
        posted = form.files.get(field.name)
        if field.widget == "file" and posted is not None and posted.content:
            safe = re.sub(r"[^\w. -]", "_", posted.filename.replace("\\", "/").rpartition("/")[2])[-80:] or "file"
            name = f"visit-{visit.note.visit}-{field.name}-{safe}"
            by = visit.note.answers_as
            await call.client.run(visit.note.run).add_artifact(name, posted.content, posted.content_type, by=by)
            form.entries[field.name] = [name]


async def _refused(
    call: HttpCall, visit: _Visit, fields: tuple[FormField, ...], form: PostedForm, refused: CommandRefused
) -> HttpAnswer:
    """The page again, with entries kept and every problem at its field; or what has become of the question."""
    view = await call.client.gate(visit.note.run, visit.note.visit)
    question = await visit.question(view)
    if view.status != "open" or view.seq != visit.note.opened:
        return _answered(call, question)
    if refused.kind == "SCHEMA":
        return question_page(question, fields, form.entries, problems=refused.problems, status=422)
    holder = view.claimed_by
    words = f"{holder} has taken this on, and answers it." if holder is not None else refused.message
    return question_page(question, fields, form.entries, note=words, status=409)


async def read_file(call: HttpCall) -> HttpAnswer:
    """A file that the page shows; no other artifact of the run."""
    visit = await _visit(call)
    if isinstance(visit, HttpAnswer):
        return visit
    run = call.client.run(visit.note.run)
    known, name = await run.artifacts(), call.path["name"]
    named = {name for comment in visit.view.comments for name in comment.attachments}
    if name not in known or not (name in named or _mentions(visit.view.input, name)):
        return _over(call, "There is no such file", "It is not part of this question.", 404)
    return await bytes_of(call, run, known[name])


def _mentions(value: Any, name: str) -> bool:
    if isinstance(value, dict):
        return any(_mentions(part, name) for part in value.values())
    return any(_mentions(part, name) for part in value) if isinstance(value, list) else value == name


def _page(method: Any, path: str, handler: Any, summary: str, **more: Any) -> Route:
    return Route(
        method=method,
        path=path,
        handler=handler,
        access=OPEN,
        about="handler",
        noun="people",
        summary=summary,
        root=True,
        answer_type="text/html",
        **more,
    )


ROUTES = (
    _page("GET", "/answer/{token}", show, "The page behind a link", answers={200: bytes, 404: bytes, 410: bytes}),
    _page(
        "POST",
        "/answer/{token}",
        submit,
        "Answer by a link",
        body=bytes,
        description="A form as browsers send it, or JSON: `{data, comment?, by?}`.",
        media_types=("application/x-www-form-urlencoded", "multipart/form-data", JSON),
        other_types=(JSON,),
        body_max=FORM_MAX,
        answers={200: bytes, 404: bytes, 409: bytes, 410: bytes, 422: bytes},
    ),
    _page(
        "GET",
        "/answer/{token}/files/{name}",
        read_file,
        "A file that the page behind a link shows",
        answers={200: bytes, 206: bytes, 404: bytes, 410: bytes},
        other_types=("*/*",),
        reads_headers=("If-None-Match", "Range", "If-Range"),
    ),
)
