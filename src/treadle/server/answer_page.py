"""The pages behind a link: the question with its form, what became of the answer, and what is wrong with the link.

Owns the markup. The pages need no script, fit a phone, follow the light or dark of the device, and load nothing but
pictures of the run. Must not decide anything: `links` does.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files

from treadle.model.errors import FieldProblem
from treadle.runtime.gate_view import GateView
from treadle.server.call import HttpAnswer
from treadle.server.form_fields import FormField
from treadle.server.form_markup import controls, problems_of
from treadle.server.html import Content, Html, element, joined
from treadle.server.markdown import markdown
from treadle.server.shown_input import InputView

LOGO = Html(
    '<svg viewBox="0 0 24 24" aria-hidden="true"><path d="M4 6h16M12 6v5"/><circle cx="12" cy="14" r="3"/>'
    '<path d="M9.2 15.4 4 19M14.8 15.4 20 19"/></svg>'
)
CHECK = Html('<svg viewBox="0 0 24 24" aria-hidden="true"><path d="m5 12.5 4.5 4.5L19 7.5"/></svg>')
CLOCK = Html('<svg viewBox="0 0 24 24" aria-hidden="true"><circle cx="12" cy="12" r="8"/><path d="M12 8v4l3 2"/></svg>')


@cache
def _style() -> tuple[Html, str]:
    """The style sheet, and its digest for the content policy."""
    text = files(__package__).joinpath("answer.css").read_text("utf-8")
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    return Html(text), digest


def policy() -> str:
    """What these pages may load: their own style, and pictures of the run."""
    return (
        f"default-src 'none'; style-src 'sha256-{_style()[1]}'; img-src 'self'; form-action 'self'; "
        "base-uri 'none'; frame-ancestors 'none'"
    )


def page(status: int, title: str, asked: str | None, content: Content) -> HttpAnswer:
    """A whole page."""
    head = [
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="robots", content="noindex"),
        element("meta", name="color-scheme", content="light dark"),
        element("title", f"{title} · Treadle"),
        element("style", _style()[0]),
    ]
    whose = element("span", f"asks {asked}") if asked else None
    top = element("header", LOGO, element("b", "Treadle"), whose)
    whole = element("html", element("head", head), element("body", top, element("main", content)), lang="en")
    headers = {"content-security-policy": policy(), "x-robots-tag": "noindex"}
    return HttpAnswer(f"<!doctype html>{whole}".encode(), status, headers, "text/html; charset=utf-8")


class PageQuestion:
    """Everything a page about an open gate needs."""

    def __init__(self, view: GateView, asked: str | None, expires: int, now: int, shown: InputView) -> None:
        self.view = view
        self.asked = asked
        self.expires = expires
        self.now = now
        self.shown = shown
        self.people: Sequence[str] = ()
        """Names of whom the link does not say which one answers; empty: anybody may give a name."""
        self.asks_name = False

    @property
    def title(self) -> str:
        return self.view.title or f"{self.view.workflow}: {self.view.node}"


def question_page(
    question: PageQuestion,
    fields: Sequence[FormField],
    entries: Mapping[str, Sequence[str]],
    *,
    problems: Sequence[FieldProblem] = (),
    note: str | None = None,
    status: int = 200,
) -> HttpAnswer:
    """The question with its form. Entries that were not accepted are kept, and each problem stands at its field."""
    view = question.view
    wrong = problems_of(fields, problems)
    form = element(
        "form",
        [controls(field, entries, wrong) for field in fields],
        _who(question, entries),
        _remark(entries),
        element(
            "div",
            element("button", "Answer", type="submit"),
            element("p", f"This link works once, and until {instant(question.expires)}."),
            class_="send",
        ),
        method="post",
        enctype="multipart/form-data" if _has_file(fields) else None,
    )
    about = element("div", markdown(view.description), class_="prose") if view.description else None
    return page(
        status,
        question.title,
        question.asked,
        [
            element("h1", question.title),
            _due(view, question.now),
            _trouble(fields, problems, note),
            about,
            question.shown.whole(view.input),
            _comments(question),
            form,
        ],
    )


def _due(view: GateView, now: int) -> Html | None:
    if view.due is None:
        return None
    late = view.due < now
    words = f"Was due {instant(view.due)}" if late else f"Due {instant(view.due)}, in {span(view.due - now)}"
    return element("p", element("i"), words, class_="due late" if late else "due")


def _trouble(fields: Sequence[FormField], problems: Sequence[FieldProblem], note: str | None) -> Html | None:
    if note is not None:
        return element("div", note, class_="note wait", role="alert")
    if not problems:
        return None
    links = [element("li", line) for line in problems_of(fields, problems).lines()]
    count = "One entry is" if len(problems) == 1 else f"{len(problems)} entries are"
    return element("div", element("b", f"{count} not right yet."), element("ul", links), class_="note", role="alert")


def _who(question: PageQuestion, entries: Mapping[str, Sequence[str]]) -> Html | None:
    if not question.asks_name:
        return None
    given = (entries.get("_as") or [""])[0]
    caption = element("span", "You are", "" if question.people else element("em", " optional"), class_="label")
    if not question.people:
        field = element("input", type="text", name="_as", value=given, maxlength=100, autocomplete="name")
        return element("label", caption, field)
    options = [element("option", name, value=name, selected=name == given) for name in question.people]
    return element("label", caption, element("select", options, name="_as"))


def _remark(entries: Mapping[str, Sequence[str]]) -> Html:
    given = (entries.get("_comment") or [""])[0]
    caption = element("span", "Comment", element("em", " optional"), class_="label")
    return element("label", caption, element("textarea", given, name="_comment", rows=2, maxlength=20_000))


def _has_file(fields: Sequence[FormField]) -> bool:
    return any(field.widget == "file" or _has_file(field.fields) for field in fields)


def _comments(question: PageQuestion) -> Html | None:
    if not question.view.comments:
        return None
    said = []
    for comment in question.view.comments:
        by = element("b", comment.by or "Somebody")
        names = [element("p", question.shown.file(name)) for name in comment.attachments]
        head = element("p", by, element("span", f" · {instant(comment.at)}", class_="quiet"))
        said.append(element("div", head, markdown(comment.text), names, class_="said value"))
    return element("section", element("h2", "Comments"), said, class_="card", aria_label="Comments")


def done_page(question: PageQuestion, data: object) -> HttpAnswer:
    """The answer was taken."""
    quorum = question.view.assign.get("quorum") if isinstance(question.view.assign, dict) else None
    more = "Nothing is left for you to do here."
    if quorum is not None and question.view.status == "open":
        more = f"{question.view.answered} of {quorum['of']} people have answered."
    answer = element("section", element("h2", "Your answer"), question.shown.facts(data), class_="card value")
    return page(
        200,
        "Thank you",
        question.asked,
        [
            element("span", CHECK, class_="mark"),
            element("h1", "Thank you"),
            element("p", f"Your answer to “{question.title}” is in. {more}", class_="lead"),
            answer if data not in (None, {}) else None,
            element("p", "This link has been used up. You may close the page.", class_="foot"),
        ],
    )


def answered_page(question: PageQuestion) -> HttpAnswer:
    """Somebody else has answered, or the question is gone."""
    view = question.view
    if view.answer is None:
        words = "It has expired." if view.status == "expired" else "It is not asked any more."
        return over_page("This question is closed", words)
    by = view.answer.by or "somebody"
    counts = element("section", element("h2", "The answer that counts"), question.shown.facts(view.answer.data))
    return page(
        410,
        "Already answered",
        question.asked,
        [
            element("span", CHECK, class_="mark"),
            element("h1", f"Already answered by {by}"),
            element("p", f"{instant(view.answer.at)}. Nothing is left for you to do here.", class_="lead"),
            Html(counts.replace("<section>", '<section class="card value">', 1)),
        ],
    )


def over_page(title: str, words: str, status: int = 410) -> HttpAnswer:
    """The link leads nowhere: used, expired, or never given."""
    return page(
        status,
        title,
        None,
        [
            element("span", CLOCK, class_="mark over"),
            element("h1", title),
            element("p", words, class_="lead"),
        ],
    )


def instant(ms: int) -> str:
    """A moment as people read it. A page without script does not know the reader's time zone."""
    moment = datetime.fromtimestamp(ms / 1000, UTC)
    return f"{moment.day} {moment:%B %Y, %H:%M} UTC"


def span(ms: int) -> str:
    """A duration as people read it."""
    minutes = max(ms // 60_000, 1)
    if minutes < 120:
        return f"{minutes} min"
    return f"{minutes // 60} h" if minutes < 72 * 60 else f"{minutes // 1440} days"


def plain(content: Content) -> Html:
    """Content as markup."""
    return joined(content)
