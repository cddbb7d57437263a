"""What a reader makes of a file: drafts, faults, and the report of rows read, used and left out.

A file's first faults are kept, and groups of equal ones. What a file has a million of is not
frozen: that would take three times as long to make.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from django.utils.translation import gettext as _, ngettext

from annotation.exceptions import ImportRefused
from error_codes import CodedText

MOST_PLACES = 3
# Of files, each with a line of its own.
MOST_FILES = 10
# Of different words or policies, in a sentence.
MOST_LISTED = 8


@dataclass
class LeftOut:
    reason: CodedText
    n: int = 0
    places: list[str] = field(default_factory=list)

    def add(self, place: str, n: int) -> None:
        self.n += n
        if place and len(self.places) < MOST_PLACES:
            self.places.append(place)

    def plain(self) -> dict[str, Any]:
        return {
            "code": self.reason.code,
            "reason": str(self.reason),
            "n": self.n,
            "places": list(self.places),
        }


@dataclass
class ReadingReport:
    """Counts of one reading: rows read = rows used + rows left out.

    `left_out` has the rows that are not used, by the reason's code. `parts` has what is left out
    of rows that are used: answers, spans, cells. `missing` counts missing labels by the word in
    the file, "" for an empty cell.
    """

    n_rows: int = 0
    left_out: dict[str, LeftOut] = field(default_factory=dict)
    parts: dict[str, LeftOut] = field(default_factory=dict)
    missing: Counter[str] = field(default_factory=Counter)
    notes: list[CodedText] = field(default_factory=list)
    policies: dict[str, str] = field(default_factory=dict)

    def leave_out(self, reason: CodedText, place: str = "", n: int = 1) -> None:
        self.left_out.setdefault(reason.code, LeftOut(reason)).add(place, n)

    def leave_out_part(self, reason: CodedText, place: str = "", n: int = 1) -> None:
        self.parts.setdefault(reason.code, LeftOut(reason)).add(place, n)

    def note_missing(self, word: str, n: int = 1) -> None:
        self.missing[word] += n

    def note(self, text: CodedText) -> None:
        if not any(text == known and text.code == known.code for known in self.notes):
            self.notes.append(text)

    @property
    def n_used(self) -> int:
        return self.n_rows - sum(each.n for each in self.left_out.values())

    def plain(self) -> dict[str, Any]:
        return {
            "n_rows": self.n_rows,
            "n_used": self.n_used,
            "left_out": [each.plain() for each in self.left_out.values()],
            "parts": [each.plain() for each in self.parts.values()],
            "missing": dict(self.missing),
            "notes": [{"code": text.code, "text": str(text)} for text in self.notes],
            "policies": dict(self.policies),
        }

    @classmethod
    def from_plain(cls, values: dict[str, Any]) -> ReadingReport:
        def groups(name: str) -> dict[str, LeftOut]:
            return {
                each["code"]: LeftOut(
                    CodedText(each["reason"], each["code"]), each["n"], list(each["places"])
                )
                for each in values.get(name, ())
            }

        return cls(
            n_rows=values["n_rows"],
            left_out=groups("left_out"),
            parts=groups("parts"),
            missing=Counter(values.get("missing", {})),
            notes=[CodedText(each["text"], each["code"]) for each in values.get("notes", ())],
            policies=dict(values.get("policies", {})),
        )

    def sentences(self) -> list[str]:
        read = ngettext("Read %(n)s row.", "Read %(n)s rows.", self.n_rows)
        sentences = [
            read % {"n": f"{self.n_rows:,}"} + " " + _("Used {n}.").format(n=f"{self.n_used:,}"),
            *self.omissions(),
        ]
        if n := self.missing.total():
            text = ngettext("%(n)s label is missing", "%(n)s labels are missing", n)
            words = _listed([f"'{word}'" if word else _("empty") for word in self.missing])
            sentences.append(f"{text % {'n': f'{n:,}'}} ({words}).")
        sentences += [str(text) for text in self.notes]
        if self.policies:
            pairs = [f"{name} = {value}" for name, value in self.policies.items()]
            sentences.append(_("Policies: {policies}.").format(policies=", ".join(pairs)))
        return sentences

    def omissions(self) -> list[str]:
        return [
            ngettext("Left out %(n)s row: ", "Left out %(n)s rows: ", group.n)
            % {"n": f"{group.n:,}"}
            + _reason(group)
            for group in self.left_out.values()
        ] + [
            ngettext("Left out %(n)s value: ", "Left out %(n)s values: ", group.n)
            % {"n": f"{group.n:,}"}
            + _reason(group)
            for group in self.parts.values()
        ]


def place_of_line(number: int) -> str:
    return _("line {n}").format(n=number)


@dataclass(frozen=True)
class FileReading:
    path: Path
    report: ReadingReport

    def plain(self) -> dict[str, Any]:
        return {"file": self.path.name, **self.report.plain()}


@dataclass(frozen=True)
class FileReadings:
    files: list[FileReading] = field(default_factory=list)

    def add(self, path: Path, report: ReadingReport | None = None) -> ReadingReport:
        report = ReadingReport() if report is None else report
        self.files.append(FileReading(path, report))
        return report

    def plain(self) -> list[dict[str, Any]]:
        return [each.plain() for each in self.files]

    def lines(self) -> Iterator[str]:
        is_short = len(self.files) <= MOST_FILES
        if not is_short:
            n_rows = sum(each.report.n_rows for each in self.files)
            n_used = sum(each.report.n_used for each in self.files)
            yield _("Read {n} rows of {files} files. Used {used}.").format(
                n=f"{n_rows:,}", files=f"{len(self.files):,}", used=f"{n_used:,}"
            )
        for each in self.files:
            sentences = each.report.sentences()
            if is_short or len(sentences) > 1:
                yield f"{each.path.name}: {' '.join(sentences)}"


def _reason(group: LeftOut) -> str:
    places = f" ({', '.join(group.places)}{', …' if group.n > len(group.places) else ''})"
    return f"{str(group.reason).rstrip('.')}{places if group.places else ''}."


def _listed(words: list[str]) -> str:
    more = len(words) - MOST_LISTED
    shown = ", ".join(words[:MOST_LISTED])
    return _("{words} and {n} more").format(words=shown, n=more) if more > 0 else shown


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


@dataclass
class Faults:
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
            self.groups.setdefault(key, FaultGroup(refused.code, column, problem, excerpt)).add(
                refused.place
            )

    @property
    def n_more(self) -> int:
        return self.n - len(self.first)

    def error(self) -> ImportRefused | None:
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
            places = ", ".join(group.places[1:]) + (", …" if group.n > len(group.places) else ".")
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


# Of items whose drafts hold pictures of up to 2 MiB each, fewer are in memory at once.
DRAFTS_WITH_PICTURES_AT_ONCE = 20


@dataclass(frozen=True)
class PictureDraft:
    media_type: str
    content: bytes


@dataclass(slots=True)
class CandidateDraft:
    key: str
    system: str = ""
    text: str = ""
    picture: PictureDraft | None = None
    extra: str = ""


@dataclass(slots=True)
class ItemDraft:
    key: str
    candidates: tuple[CandidateDraft, ...]
    line: int
    context: str = ""
    reference: str = ""
    condition: str = ""
    picture: PictureDraft | None = None


@dataclass(frozen=True)
class QuestionDraft:
    name: str
    wording: str
    level: str = "interval"
    scale_min: float = 0.0
    scale_max: float = 100.0
    low_label: str = ""
    high_label: str = ""
    categories: tuple[str, ...] = ()
    kind: str = "line"


@dataclass(frozen=True)
class WrittenDraft:
    question: str
    text: str
    candidate: str = ""


@dataclass(slots=True)
class JudgmentDraft:
    """`field` is what the file calls the value."""

    candidate: str
    question: str
    value: float
    line: int | None = None
    field: str = "value"


@dataclass(slots=True)
class SubmissionDraft:
    """`annotator` is a name that may be shown; `identity` one that must not be.

    `path` is the file it stands in, where that is another than the items'.
    """

    item: str
    judgments: tuple[JudgmentDraft, ...]
    raw: str
    line: int
    annotator: str = ""
    identity: str = ""
    round: int = 1
    status: str = "submitted"
    justification: str = ""
    accepted_at: datetime | None = None
    submitted_at: datetime | None = None
    seconds: float | None = None
    path: Path | None = None
    written: tuple[WrittenDraft, ...] = ()
    is_simulated: bool = False


@dataclass(frozen=True)
class StudyDraft:
    """A file's content; `report` says what of it is used.

    Items that are only named belong to a study that has them, or make a new one. Items and
    submissions may be made as they are gone through, and are gone through more than once.
    """

    kind: str
    items: Collection[ItemDraft]
    questions: tuple[QuestionDraft, ...] = ()
    submissions: Collection[SubmissionDraft] = ()
    items_only_named: bool = False
    drafts_at_once: int | None = None
    report: ReadingReport = field(default_factory=ReadingReport)
