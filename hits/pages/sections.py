from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from django.utils.translation import gettext as _, ngettext

from annotation.models import Item, Protocol, Study
from annotation.models.uploads import OF_POOLS
from annotation.pages.import_forms import purpose_of, title_of
from annotation.protocols.documents import read_document
from annotation.protocols.faults import Fault
from annotation.protocols.fields import KINDS
from annotation.protocols.records import ProtocolDocument, ProtocolQuestion
from annotation.protocols.scales import OF_LABELS, OF_NUMBERS
from annotation.protocols.templates import template_names, write_yaml
from annotation.protocols.versions import (
    blind_document,
    blind_faults,
    current_document,
    freezing_faults,
    seen_as,
)
from hits.pages.admission import (
    Fold,
    PracticePageRow,
    QualificationTestRow,
    ScoreRow,
    practice_rows,
    qualification_test_rows,
    score_rows,
    value_choices,
)
from hits.pages.field_labels import in_words
from hits.pages.questionnaire import CheckRow, check_rows, field_of, holding_rows, percent_of
from hits.preflight import Finding, Level, item_findings
from hits.wages import TYPICAL

MOST_KEYS = 100


@dataclass(frozen=True)
class FieldFault:
    field: str
    text: str


@dataclass(frozen=True)
class QuestionRow(Fold):
    letter = "q"
    question: ProtocolQuestion
    earlier: list[ProtocolQuestion]
    has_faults: bool

    @property
    def kind(self) -> str:
        return str(KINDS[self.question.kind].title) if self.question.kind in KINDS else ""

    @property
    def options(self) -> set[str]:
        kind = KINDS.get(self.question.kind, KINDS["line"])
        own = {*kind.required, *kind.optional}
        return own if kind.is_comparison else {*own, "about"}

    @property
    def right_answers(self) -> list[tuple[str, str]]:
        check = self.question.check
        return [] if check is None else value_choices(self.question, [check.value])

    @property
    def right_answer(self) -> str:
        check = self.question.check
        return "" if check is None or check.value is None else f"{check.value:g}"

    @property
    def check_percent(self) -> str:
        return "" if self.question.check is None else percent_of(self.question.check.share)


class ProtocolView:
    def __init__(self, study: Study, version: Protocol | None, document: ProtocolDocument) -> None:
        self.study, self.version, self.document = study, version, document
        self.unread: Sequence[str] = ()

    def blinded(self) -> ProtocolView:
        """For those who may not see systems; not for previews, which need the keys."""
        view = ProtocolView(self.study, self.version, blind_document(self.study, self.document))
        view.faults = blind_faults(self.faults)
        return view

    @property
    def is_frozen(self) -> bool:
        return self.version is not None and self.version.frozen_at is not None

    @property
    def number(self) -> int:
        return 1 if self.version is None else self.version.number

    @property
    def seen(self) -> str:
        return seen_as(self.version, self.document)

    @cached_property
    def faults(self) -> list[Fault]:
        return [] if self.is_frozen else freezing_faults(self.study, self.document)

    @property
    def field_faults(self) -> list[FieldFault]:
        return [
            FieldFault(name, _("A number belongs here. What is typed is not stored."))
            for name in self.unread
        ] + [FieldFault(self._field_of(fault), in_words(fault)) for fault in self.faults]

    @cached_property
    def item_findings(self) -> list[Finding]:
        return list(item_findings(self.study, self.document))

    def _field_of(self, fault: Fault) -> str:
        match fault.path:
            case ("checks", int(index), "cases", int(number), *_rest):
                row = self.checks[index]
                if number > row.cases[-1][0] - 1:
                    return f"{row.prefix}hidden"
        return field_of(fault.path)

    @cached_property
    def checks(self) -> list[CheckRow]:
        return check_rows(self.document, self.faults)

    @property
    def tests(self) -> list[QualificationTestRow]:
        return qualification_test_rows(self.document, self.faults)

    @cached_property
    def practice(self) -> list[PracticePageRow]:
        return practice_rows(self.study, self.document, self.faults)

    @property
    def item_keys(self) -> list[str]:
        return list(
            self.study.items.order_by("position", "pk").values_list("key", flat=True)[:MOST_KEYS]
        )

    @property
    def holding(self) -> list[tuple[str, str, bool]]:
        return holding_rows(self.document)

    @property
    def second_round_percent(self) -> str:
        return percent_of(self.document.completion.second_round_share)

    @cached_property
    def versions(self) -> list[Protocol]:
        return list(Protocol.objects.of(self.study).order_by("-number").defer("document"))

    @property
    def questions(self) -> list[QuestionRow]:
        wrong = {f.path[1] for f in self.faults if f.path[:1] == ("questions",) and f.path[1:]}
        rows, earlier = [], list[ProtocolQuestion]()
        for index, each in enumerate(self.document.questions):
            rows.append(QuestionRow(index, each, list(earlier), index in wrong))
            earlier += [each] if each.kind in {*OF_NUMBERS, *OF_LABELS} else []
        return rows

    @property
    def kinds(self) -> list[tuple[str, str]]:
        is_pool = self.study.kind == "alternatives"
        return [(n, str(k.title)) for n, k in KINDS.items() if is_pool or n != "selection"]

    @property
    def templates(self) -> list[tuple[str, str]]:
        is_pool = self.study.kind == "alternatives"
        return [
            (name, title_of(name)) for name in template_names() if (name in OF_POOLS) == is_pool
        ]

    @property
    def template_purposes(self) -> list[tuple[str, str, str]]:
        return [(name, title, purpose_of(name)) for name, title in self.templates]

    @property
    def yaml(self) -> str:
        return write_yaml(self.document)

    @property
    def examples(self) -> list[tuple[int, str, Any, list[ScoreRow]]]:
        document = self.document
        return [
            (
                index,
                f"e{index}-",
                example,
                score_rows(document, document.study_questions, example.scores if example else {}),
            )
            for index, example in enumerate((*document.examples, None))
        ]

    @property
    def summaries(self) -> dict[str, str]:
        return {name: text(self.document) for name, text in SUMMARIES.items()}

    def item(self, key: str | None) -> tuple[Item | None, Item | None]:
        items = self.study.items.order_by("position", "pk")
        chosen = items.filter(pk=key).first() if key and key.isdecimal() and len(key) < 19 else None
        chosen = chosen or items.first()
        after = items.following(chosen) if chosen else None
        return chosen, after or (items.first() if chosen else None)


def protocol_findings(study: Study) -> Iterator[Finding]:
    newest = max(study.protocols.all(), key=lambda version: version.number, default=None)
    for each in ProtocolView(study, newest, current_document(study)).field_faults:
        yield Finding(Level.FAULT, each.text, protocol_field=each.field)


def view_of(study: Study, version: Protocol | None, current: ProtocolDocument) -> ProtocolView:
    return ProtocolView(
        study, version, current if version is None else read_document(version.document)
    )


def _instructions(document: ProtocolDocument) -> str:
    n = len(document.instructions.split())
    if not n:
        return _("none")
    words = ngettext("%(n)d word", "%(n)d words", n) % {"n": n}
    seconds = round(n / TYPICAL.words_a_minute * 60 / 5) * 5
    about = _("about %(n)d s to read") % {"n": max(seconds, 5)}
    k = len(document.examples)
    examples = ngettext("%(n)d example", "%(n)d examples", k) % {"n": k}
    return f"{words}, {examples}; {about}"


def _consent(document: ProtocolDocument) -> str:
    return _("asked before the first page") if document.consent else _("not asked")


def _display(document: ProtocolDocument) -> str:
    display = document.display
    parts = [(display.context, _("context")), (display.reference, _("reference"))]
    names = [name for is_shown, name in (*parts, (display.condition, _("condition"))) if is_shown]
    return _("%(what)s; system never") % {"what": ", ".join(names) or _("candidates only")}


def _questions(document: ProtocolDocument) -> str:
    n = len(document.questions)
    return ngettext("%(n)d question", "%(n)d questions", n) % {"n": n}


def _reason(document: ProtocolDocument) -> str:
    rules = {"none": _("no reason"), "page": _("one reason"), "choice": _("a reason per choice")}
    text = rules.get(document.reason.rule, _("no rule"))  # as of a form sent empty
    if least := document.reason.least_length:
        text += ", " + ngettext("at least %(n)d character", "at least %(n)d characters", least) % {
            "n": least
        }
    return f"{text}; " + (_("comment box") if document.comment else _("no comment box"))


def _checks(document: ProtocolDocument) -> str:
    n = len(document.checks)
    return ngettext("%(n)d check", "%(n)d checks", n) % {"n": n} if n else _("none")


def _qualifications(document: ProtocolDocument) -> str:
    who = document.qualifications
    parts = [", ".join(who.countries[:4]) or _("anywhere")]
    if who.languages:
        parts.append(", ".join(who.languages))
    if who.least_approval_percent is not None:
        parts.append(_("approval %(n)d %%") % {"n": who.least_approval_percent})
    if (most := who.most_hits_per_worker) is not None:
        parts.append(ngettext("at most %(n)d HIT", "at most %(n)d HITs", most) % {"n": most})
    if who.hold_after_hits is not None:
        parts.append(_("held after %(n)d") % {"n": who.hold_after_hits})
    if n := len(who.tests):
        parts.append(ngettext("%(n)d test", "%(n)d tests", n) % {"n": n})
    if who.practice is not None:
        n = len(who.practice.items)
        parts.append(ngettext("%(n)d page of practice", "%(n)d pages of practice", n) % {"n": n})
    return "; ".join(parts)


def _time(document: ProtocolDocument) -> str:
    seconds = document.time.estimate_seconds
    estimate = _("%(n)d s estimated") % {"n": seconds} if seconds else _("estimated by its length")
    n = document.completion.assignments_per_item
    workers = ngettext("%(n)d worker an item", "%(n)d workers an item", n) % {"n": n}
    return f"{estimate}; {workers}"


SUMMARIES = {
    "instructions": _instructions,
    "consent": _consent,
    "display": _display,
    "questions": _questions,
    "reason": _reason,
    "checks": _checks,
    "qualifications": _qualifications,
    "time": _time,
}
