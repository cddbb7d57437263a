from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from django.utils.translation import gettext as _, ngettext

from annotation.models import OF_POOLS, Item, Protocol, Study
from annotation.pages.import_forms import purpose_of, title_of
from annotation.protocols.documents import read_document
from annotation.protocols.faults import Fault
from annotation.protocols.fields import CANDIDATE, KINDS
from annotation.protocols.records import Check, ProtocolDocument, ProtocolQuestion
from annotation.protocols.scales import OF_LABELS, OF_NUMBERS, condition_labels, range_of
from annotation.protocols.templates import template_names, write_yaml
from annotation.protocols.validation import CHECKED_KINDS
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
from hits.pages.field_labels import in_words, on_card, section_of
from hits.pages.questionnaire import CheckRow, check_rows, field_of, holding_rows, percent_of
from hits.pages.tasks import TaskChoices
from hits.preflight import Finding, Level, item_findings
from hits.requirements import MINUTES_OF_A_HIT, country_name, language_name

MOST_KEYS = 100
COMPARISONS = [name for name, kind in KINDS.items() if kind.is_comparison]


@dataclass(frozen=True)
class QuestionRow(Fold):
    letter = "q"
    question: ProtocolQuestion
    earlier: list[ProtocolQuestion]
    faults: list[str]
    has_any_labels: bool = False
    is_open: bool = False

    @property
    def scope(self) -> str:
        is_of_candidate = self.question.about == CANDIDATE and "about" in self.options
        return _("Each response") if is_of_candidate else _("Whole page")

    @property
    def scale(self) -> str:
        """What the answers are, unless points show it."""
        question = self.question
        match question.kind:
            case "line" | "number":
                low, high = range_of(question)
                return f"{low:g}–{high:g}"
            case "category" | "categories":
                n = len(question.categories)
                return ngettext("%(n)d category", "%(n)d categories", n) % {"n": n}
        kind = KINDS.get(question.kind)
        return "" if kind is None or question.kind == "likert" else str(kind.title)

    @property
    def points(self) -> list[tuple[int, str, str]]:
        """The place, the value and the label of each point."""
        first = 1 if self.question.first is None else self.question.first
        return [(n, str(first + n), label) for n, label in enumerate(self.question.points)]

    @property
    def point_values(self) -> tuple[str, str]:
        values = [value for _n, value, _label in self.points] or [""]
        return values[0], values[-1]

    @property
    def has_end_labels_only(self) -> bool:
        return not self.has_any_labels and not any(self.question.points[1:-1])

    @property
    def answers(self) -> list[tuple[int, str, bool]]:
        """Answers to the earlier question on which this one is asked, and whether each is one."""
        when = self.question.when
        if when is None:
            return []
        before = next((each for each in self.earlier if each.name == when.question), None)
        known = condition_labels(before) if before is not None else ()
        labels = dict.fromkeys([*known, *when.any_of])
        return [(n, label, label in when.any_of) for n, label in enumerate(labels)]

    @property
    def has_limits(self) -> bool:
        when = self.question.when
        before = [each for each in self.earlier if when and each.name == when.question]
        return any(each.kind in OF_NUMBERS for each in before)

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
        # Questions whose points may all have labels, though only the ends have one as yet.
        self.labelled_anywhere: Collection[int] = ()
        self.open_question: int | None = None
        self.open_check: int | None = None

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
    def next_number(self) -> int:
        return self.versions[0].number + 1 if self.versions else 2

    @property
    def seen(self) -> str:
        return seen_as(self.version, self.document)

    @cached_property
    def faults(self) -> list[Fault]:
        return [] if self.is_frozen else freezing_faults(self.study, self.document)

    @property
    def field_faults(self) -> list[dict[str, str]]:
        unread = _("A number belongs here. What is typed is not stored.")
        return [
            *({"field": name, "text": unread} for name in self.unread),
            *({"field": self._field_of(one), "text": in_words(one)} for one in self.faults),
        ]

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
        rows = check_rows(self.document, self.faults)
        return [replace(row, is_open=row.index == self.open_check) for row in rows]

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

    @cached_property
    def questions(self) -> list[QuestionRow]:
        wrong: dict[Any, list[str]] = {}
        for fault in self.faults:
            if fault.path[:1] == ("questions",) and fault.path[1:]:
                wrong.setdefault(fault.path[1], []).append(on_card(fault))
        rows, earlier = [], list[ProtocolQuestion]()
        for index, each in enumerate(self.document.questions):
            rows.append(
                QuestionRow(
                    index,
                    each,
                    list(earlier),
                    wrong.get(index, []),
                    has_any_labels=index in self.labelled_anywhere,
                    is_open=index == self.open_question,
                )
            )
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
        questions = [
            each
            for each in document.study_questions
            if each.kind in CHECKED_KINDS and each.about == CANDIDATE
        ]
        return [
            (
                index,
                f"e{index}-",
                example,
                score_rows(document, questions, example.scores if example else {}),
            )
            for index, example in enumerate((*document.examples, None))
        ]

    @property
    def summaries(self) -> dict[str, str]:
        own = {"questions": self._questions_line()}
        return own | {name: text(self.document) for name, text in SUMMARIES.items()}

    def _questions_line(self) -> str:
        n, n_checks = len(self.document.study_questions), len(self.document.all_checks)
        text = ngettext("%(n)d question", "%(n)d questions", n) % {"n": n}
        if n_checks:
            checks = ngettext("%(n)d attention check", "%(n)d attention checks", n_checks)
            text = _("%(a)s and %(b)s") % {"a": text, "b": checks % {"n": n_checks}}
        least, most = (self._answers_on_page(n) for n in self.tasks.on_page)
        most += n_checks
        if least:
            answers = f"{least}" if least == most else _("%(a)d to %(b)d") % {"a": least, "b": most}
            per_page = ngettext("%(n)s answer per page", "%(n)s answers per page", most)
            text = f"{text}; {per_page % {'n': answers}}"
        reason = {"page": _("a reason per page"), "choice": _("a reason per choice")}.get(
            self.document.reason.rule
        )
        return f"{text}; {reason}" if reason else text

    def _answers_on_page(self, n_candidates: int) -> int:
        asked = self.document.study_questions
        each = sum(one.about == CANDIDATE and one.kind not in COMPARISONS for one in asked)
        return each * n_candidates + len(asked) - each if n_candidates else 0

    @cached_property
    def tasks(self) -> TaskChoices:
        return TaskChoices(self.study, self.document)

    @property
    def wrong_sections(self) -> set[str]:
        return {section_of(fault.path) for fault in self.faults}

    def item(self, key: str | None) -> tuple[Item | None, Item | None]:
        items = self.study.items.order_by("position", "pk")
        chosen = items.filter(pk=key).first() if key and key.isdecimal() and len(key) < 19 else None
        chosen = chosen or items.first()
        after = items.following(chosen) if chosen else None
        return chosen, after or (items.first() if chosen else None)


def summarize_checks(checks: Sequence[Check]) -> str:
    """How many attention checks there are, on which share of the pages, and what a failure does."""
    if not checks:
        return _("None")
    n, shares = len(checks), sorted({each.share for each in checks})
    text = ngettext("%(n)d check", "%(n)d checks", n) % {"n": n}
    percent = percent_of(shares[0])
    if len(shares) > 1:
        percent = _("%(a)s to %(b)s") % {"a": percent, "b": percent_of(shares[-1])}
    each = _("on %(percent)s%% of pages") if n == 1 else _("each on %(percent)s%% of pages")
    parts = [f"{text}, {each % {'percent': percent}}"]
    if any(check.holds_work for check in checks):
        parts.append(_("review when one fails"))
    return "; ".join(parts)


def protocol_findings(study: Study) -> Iterator[Finding]:
    newest = max(study.protocols.all(), key=lambda version: version.number, default=None)
    for each in ProtocolView(study, newest, current_document(study)).field_faults:
        yield Finding(Level.FAULT, each["text"], protocol_field=each["field"])


def view_of(study: Study, version: Protocol | None, current: ProtocolDocument) -> ProtocolView:
    return ProtocolView(
        study, version, current if version is None else read_document(version.document)
    )


def _instructions(document: ProtocolDocument) -> str:
    n = len(document.instructions.split())
    if not n:
        return _("None")
    words = ngettext("%(n)d word", "%(n)d words", n) % {"n": n}
    k = len(document.examples)
    return f"{words}, " + ngettext("%(n)d example", "%(n)d examples", k) % {"n": k}


def _consent(document: ProtocolDocument) -> str:
    return _("Asked once per annotator") if document.consent else _("Not asked")


def _display(document: ProtocolDocument) -> str:
    display = document.display
    parts = [(display.context, _("context")), (display.reference, _("reference"))]
    names = [name for is_shown, name in (*parts, (display.condition, _("condition"))) if is_shown]
    return _("%(what)s; system never") % {"what": ", ".join(names) or _("candidates only")}


def _reason(document: ProtocolDocument) -> str:
    rules = {"none": _("no reason"), "page": _("one reason"), "choice": _("a reason per choice")}
    text = rules.get(document.reason.rule, _("no rule"))  # as of a form sent empty
    if least := document.reason.least_length:
        text += ", " + ngettext("at least %(n)d character", "at least %(n)d characters", least) % {
            "n": least
        }
    return f"{text}; " + (_("comment box") if document.comment else _("no comment box"))


def _qualifications(document: ProtocolDocument) -> str:
    who = document.qualifications
    parts = [", ".join(map(country_name, who.countries[:4])) or _("Any country")]
    if who.countries[4:]:
        parts[0] += " " + _("and %(n)d more") % {"n": len(who.countries[4:])}
    parts += [language_name(code) for code in who.languages]
    if who.least_approval_percent is None:
        parts.append(_("any approval rate"))
    else:
        parts.append(_("approval rate %(n)d%% or more") % {"n": who.least_approval_percent})
    if (least := who.least_approved_hits) is not None:
        parts.append(_("%(n)d approved HITs or more") % {"n": least})
    if (most := who.most_hits_per_worker) is not None:
        text = ngettext("at most %(n)d HIT each", "at most %(n)d HITs each", most)
        parts.append(text % {"n": most})
    if who.hold_after_hits is not None:
        parts.append(_("held for review after %(n)d HITs") % {"n": who.hold_after_hits})
    if n := len(who.excluded_studies):
        text = ngettext("no annotators of %(n)d study", "no annotators of %(n)d studies", n)
        parts.append(text % {"n": n})
    if n := len(who.tests):
        parts.append(ngettext("%(n)d test", "%(n)d tests", n) % {"n": n})
    if who.practice is not None:
        parts.append(_("practice passed"))
    return "; ".join(parts)


def _time(document: ProtocolDocument) -> str:
    n = document.completion.assignments_per_item
    parts = [ngettext("%(n)d annotator per item", "%(n)d annotators per item", n) % {"n": n}]
    if seconds := document.time.estimate_seconds:
        parts.append(_("about %(time)s per HIT") % {"time": _duration(seconds)})
    allowed = document.time.allowed_seconds or MINUTES_OF_A_HIT * 60
    parts.append(_("%(time)s allowed") % {"time": _duration(allowed)})
    if share := document.completion.second_round_share:
        parts.append(_("%(n)s%% of items judged again") % {"n": percent_of(share)})
    return "; ".join(parts)


def _duration(seconds: int) -> str:
    if seconds < 120 or seconds % 60:
        return _("%(n)d s") % {"n": seconds}
    return _("%(n)d min") % {"n": seconds // 60}


SUMMARIES = {
    "instructions": _instructions,
    "consent": _consent,
    "display": _display,
    "reason": _reason,
    "qualifications": _qualifications,
    "time": _time,
}
