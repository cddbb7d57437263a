"""The parts of a page of the worker site that a worker acts on."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser

UNSENT = {"submit", "button", "image", "reset"}


@dataclass
class Form:
    """Where a form goes and what it would send untouched."""

    action: str
    classes: frozenset[str]
    fields: dict[str, str] = field(default_factory=dict)

    @property
    def asks_for_password(self) -> bool:
        return any("password" in name for name in self.fields)


class Page(HTMLParser):
    """Forms, the task's frame, and the task's own data, in one reading."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.forms: list[Form] = []
        self.frame: str | None = None
        self.task: str | None = None
        self.notices: list[str] = []
        self._in_form = self._in_task = False
        self._notice_tag, self._depth = "", 0
        self.feed(html)
        self.close()

    def form(self, name: str) -> Form | None:
        """The form of that class, such as `accept`."""
        return next((form for form in self.forms if name in form.classes), None)

    @property
    def notice(self) -> str:
        """What the page says to a worker, such as why something cannot be had."""
        return " ".join(" ".join(self.notices).split())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        if self._depth:
            self._depth += tag == self._notice_tag
        elif "notice" in values.get("class", "").split():
            self._notice_tag, self._depth = tag, 1
        if tag == "form":
            classes = frozenset(values.get("class", "").split())
            self.forms.append(Form(values.get("action", ""), classes))
            self._in_form = True
        elif tag == "input" and self._in_form and values.get("type") not in UNSENT:
            self.forms[-1].fields[values.get("name", "")] = values.get("value", "")
        elif tag == "iframe" and values.get("id") == "task":
            self.frame = values.get("src")
        elif tag == "script" and values.get("id") == "task":
            self._in_task, self.task = True, ""

    def handle_endtag(self, tag: str) -> None:
        self._in_form = self._in_form and tag != "form"
        self._in_task = self._in_task and tag != "script"
        self._depth -= bool(self._depth) and tag == self._notice_tag

    def handle_data(self, data: str) -> None:
        if self._depth:
            self.notices.append(data)
        if self._in_task:
            self.task = (self.task or "") + data
