"""The faults of a file: the first ones, and groups of equal ones."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from django.utils.translation import ngettext

from annotation.exceptions import ImportRefused
from annotation.readers.report import MOST_PLACES

MOST_FAULTS = 100
# Of different kinds, each with its first places.
MOST_GROUPS = 50
LONGEST_VALUE, LONGEST_PROBLEM = 80, 5000
INDEX = re.compile(r"\[\d+\]")


@dataclass(frozen=True)
class Fault:
    line: int | None
    column: str
    value: str
    problem: str
    code: str = "import_refused"  # of faults stored before they had codes
    place: str = ""

    @property
    def plain(self) -> dict[str, Any]:
        return {
            name: getattr(self, name)
            for name in ("line", "column", "value", "problem", "code", "place")
        }


@dataclass
class FaultGroup:
    code: str
    column: str
    problem: str
    value: str
    n: int = 0
    places: list[str] = field(default_factory=list)

    def add(self, place: str, n: int = 1) -> None:
        self.n += n
        if place and len(self.places) < MOST_PLACES:
            self.places.append(place)

    def plain(self) -> dict[str, Any]:
        return {
            name: getattr(self, name)
            for name in ("code", "column", "problem", "value", "n", "places")
        }


@dataclass
class Faults:
    """The first faults of a file, how many there are in all, and groups of equal ones."""

    first: list[Fault] = field(default_factory=list)
    n: int = 0
    groups: dict[tuple[str, str], FaultGroup] = field(default_factory=dict)
    first_error: ImportRefused | None = None

    def add(self, refused: ImportRefused, value: str = "") -> None:
        self.n += 1
        self.first_error = self.first_error or refused
        excerpt = value if len(value) <= LONGEST_VALUE else f"{value[:LONGEST_VALUE]}…"
        problem = refused.problem[:LONGEST_PROBLEM]
        column = refused.field or ""
        if len(self.first) < MOST_FAULTS:
            self.first.append(
                Fault(refused.line, column, excerpt, problem, refused.code, refused.place)
            )
        key = refused.code, INDEX.sub("[]", column)
        if key in self.groups or len(self.groups) < MOST_GROUPS:
            group = self.groups.setdefault(key, FaultGroup(refused.code, column, problem, excerpt))
            group.add(refused.place)

    @property
    def n_more(self) -> int:
        return self.n - len(self.first)

    def error(self) -> ImportRefused | None:
        """The first fault as an error that counts the others, or None."""
        error = self.first_error
        if error is None or self.n == 1:
            return error
        group = next(iter(self.groups.values()))
        parts = [str(error.problem)]
        if group.n > 1:
            text = ngettext(
                "%(n)s more row has this fault: %(places)s",
                "%(n)s more rows have this fault: %(places)s",
                group.n - 1,
            )
            more = ", …" if group.n > len(group.places) else "."
            places = ", ".join(group.places[1:]) + more
            parts.append(text % {"n": f"{group.n - 1:,}", "places": places})
        if self.n > group.n:
            text = ngettext(
                "%(n)s row has another fault.", "%(n)s rows have other faults.", self.n - group.n
            )
            parts.append(text % {"n": f"{self.n - group.n:,}"})
        return ImportRefused(
            error.path,
            " ".join(parts),
            line=error.line,
            field=error.field,
            code=error.code,
            record=error.record,
            sheet=error.sheet,
        )


def group_faults(faults: Iterable[ImportRefused]) -> list[FaultGroup]:
    every = Faults()
    for fault in faults:
        every.add(fault)
    return list(every.groups.values())
