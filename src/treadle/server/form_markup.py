"""Fields of a form as markup, with entries kept and problems at their field."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from treadle.model.errors import FieldProblem
from treadle.server.form_fields import FormField
from treadle.server.html import Content, Html, element, joined

INPUTS = {"text": "text", "date": "date", "datetime": "datetime-local", "email": "email", "url": "url"}


class WrongFields:
    """Problems by field; those of no field are told at the top only."""

    def __init__(self, at: Mapping[str, list[str]], fields: Mapping[str, FormField], rest: Sequence[str]) -> None:
        self.at = at
        self._fields = fields
        self._rest = rest

    def lines(self) -> Iterator[Content]:
        """Every problem, with a link to its field."""
        for name, messages in self.at.items():
            field = self._fields[name]
            yield [element("a", field.label, href=f"#{field.id}"), ": ", "; ".join(messages)]
        yield from self._rest


def problems_of(fields: Sequence[FormField], problems: Sequence[FieldProblem]) -> WrongFields:
    """Which field each problem belongs to: the one at its place, or the nearest around it."""
    known = {field.place: field for field in _all(fields)}
    at: dict[str, list[str]] = {}
    rest: list[str] = []
    for problem in problems:
        place = problem.place
        while place not in known and place not in ("", "$"):
            place = re.sub(r"(\.[^.\[]*|\[[^\]]*\])$", "", place) if re.search(r"[.\[]", place) else "$"
        field = known.get(place)
        if field is None:
            rest.append(problem.message)
        else:
            at.setdefault(field.name, []).append(_words(problem.message, field))
    return WrongFields(at, {field.name: field for field in known.values()}, rest)


def _all(fields: Sequence[FormField]) -> Iterator[FormField]:
    for field in fields:
        yield field
        yield from _all(field.fields)


def _words(message: str, field: FormField) -> str:
    """A problem as the person at the form reads it."""
    if message.endswith("is a required property"):
        return "Please choose." if field.choices else "Please fill this in."
    if field.widget == "number" and "is not of type" in message:
        return "Please enter a number." if '"number"' in message else "Please enter a whole number."
    return message


def controls(field: FormField, entries: Mapping[str, Sequence[str]], wrong: WrongFields) -> Html:
    """One field."""
    values = entries.get(field.name, ())
    if field.widget == "hidden":
        return element("input", type="hidden", name=field.name, value=values[0] if values else "")
    messages = wrong.at.get(field.name, [])
    told = element("p", "; ".join(messages), class_="wrong-text", id=f"{field.id}-wrong") if messages else None
    optional = None if field.required else element("em", " optional")
    help_text = element("p", field.help, class_="help", id=f"{field.id}-help") if field.help else None
    if field.widget in ("radio", "checkboxes", "group"):
        legend = element("legend", field.label, optional if field.widget != "group" else None)
        inner: Content = (
            [controls(part, entries, wrong) for part in field.fields]
            if field.widget == "group"
            else _options(field, values, bool(messages))
        )
        looks = "group" if field.widget == "group" else None
        return element("fieldset", legend, help_text, inner, told, class_=looks, id=field.id)
    caption = element("label", field.label, optional, class_="label", for_=field.id)
    described = " ".join(part.partition('id="')[2].partition('"')[0] for part in (help_text, told) if part) or None
    return element("div", caption, help_text, _control(field, values, described, bool(messages)), told)


def _options(field: FormField, values: Sequence[str], is_wrong: bool) -> Html:
    kind = "radio" if field.widget == "radio" else "checkbox"
    rows = []
    for choice in field.choices:
        box = element("input", type=kind, name=field.name, value=choice.text, checked=choice.text in values)
        more = element("span", choice.help) if choice.help else None
        rows.append(element("label", box, element("span", element("b", choice.label), more), class_="option"))
    return element("div", rows, class_="options wrong" if is_wrong else "options")


def _control(field: FormField, values: Sequence[str], described: str | None, is_wrong: bool) -> Html:
    value = values[0] if values else ""
    fixed: dict[str, str | int | bool | None] = {
        "id": field.id,
        "name": field.name,
        "aria_describedby": described,
        "aria_invalid": "true" if is_wrong else None,
    }
    if field.widget == "select":
        empty = element("option", "Please choose" if field.required else "—", value="")
        chosen = [element("option", c.label, value=c.text, selected=c.text in values) for c in field.choices]
        return element("select", empty, chosen, **fixed)
    if field.widget in ("textarea", "lines", "json"):
        looks = {"lines": "One per line", "json": "JSON"}.get(field.widget)
        more = {"rows": 4, "class_": "code" if field.widget == "json" else None, "placeholder": looks}
        return element("textarea", f"\n{value}" if value.startswith("\n") else value, **fixed, **more)
    if field.widget == "file":
        kept = element("input", type="hidden", name=field.name, value=value) if value else None
        said = element("p", "Uploaded: ", value, class_="help") if value else None
        return joined([said, kept, element("input", type="file", **fixed)])
    kind = INPUTS.get(field.widget, "text")
    mode = {"inputmode": "decimal"} if field.widget == "number" else {}
    length = {"maxlength": field.limits.get("maxlength")} if field.widget in INPUTS else {}
    return element("input", type=kind, value=value, **fixed, **mode, **length)
