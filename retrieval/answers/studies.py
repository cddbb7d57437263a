from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, reduce
from operator import or_
from typing import Any

from django.db.models import Count, Exists, OuterRef, Q
from django.utils.translation import gettext as _, ngettext

from annotation.assignment_facts import list_launched_batches
from annotation.models import (
    Judgment,
    Question,
    Study,
    Submission,
    WrittenAnswer,
)
from annotation.result_kinds.agreement import (
    AgreementKind,
    QuestionCoefficient,
    RoundCoefficient,
    list_alphas,
)
from console.glossary import title_of
from console.templatetags.numbers import coefficient, interval
from error_codes import CodedText
from presentation.numbers import group_values
from results.models import Result
from retrieval.models import Collection, CollectionFile

KAPPA_AT_LEVEL: dict[str, str] = {Question.Level.ORDINAL: "cohen_kappa_linear"}
ALPHA = "krippendorff_alpha"
KAPPAS = ("cohen_kappa", "cohen_kappa_linear", ALPHA)


@dataclass(frozen=True)
class RoundOfStudy:
    round: int
    n_items: int
    n_submissions: int
    n_annotators: int

    @property
    def text(self) -> str:
        items = ngettext("{n} target", "{n} targets", self.n_items).format(n=f"{self.n_items:,}")
        people = ngettext("{n} annotator", "{n} annotators", self.n_annotators)
        return CodedText(
            _("Round {round}: {items}, judged by {people}.").format(
                round=self.round, items=items, people=people.format(n=f"{self.n_annotators:,}")
            ),
            code="round",
        )


@dataclass
class StudyJudgments:
    study: Study
    rounds: list[RoundOfStudy] = field(default_factory=list)
    coefficients: list[RoundCoefficient] = field(default_factory=list)
    alphas: list[QuestionCoefficient] = field(default_factory=list)
    is_current: bool = False
    again: int | None = None
    qrels: list[CollectionFile] = field(default_factory=list)
    n_without_judgment: int = 0

    @property
    def n_items(self) -> int:
        return int(self.study.n_items)  # type: ignore[attr-defined]

    @property
    def has_reasons(self) -> bool:
        return bool(self.study.has_reasons)  # type: ignore[attr-defined]

    @property
    def standing(self) -> str:
        first = self.rounds[0] if self.rounds else None
        if first is None:
            return CodedText(_("Nothing is judged yet."), code="nothing_judged")
        return CodedText(
            _("{n} of {total} targets are judged.").format(
                n=f"{first.n_items:,}", total=f"{self.n_items:,}"
            ),
            code="targets_judged",
        )

    @property
    def has_second_round(self) -> bool:
        return len(self.rounds) > 1

    @property
    def has_two_opinions(self) -> bool:
        has_several = any(one.n_submissions > one.n_items for one in self.rounds)
        return self.has_second_round or has_several

    @cached_property
    def kappas(self) -> list[RoundCoefficient]:
        """The coefficients of the first two rounds by other annotators, kappa first: that of
        grades has weights, for which neighbours are half in agreement."""
        levels = {one.name: one.level for one in self.study.questions.all()}
        rows = [
            one
            for one in self.coefficients
            if one.by == "another annotator"
            and one.name in (KAPPA_AT_LEVEL.get(levels.get(one.question, ""), "cohen_kappa"), ALPHA)
        ]
        return sorted(rows, key=lambda one: (KAPPAS.index(one.name), one.earlier, one.later))

    @property
    def agreement(self) -> list[str]:
        sentences = [_sentence_of_alpha(one) for one in self.alphas]
        sentences += [sentence_of(one) for one in self.kappas]
        if self.n_without_judgment:
            text = ngettext(
                "{n} answer says that its candidate cannot be judged; it is in no coefficient, "
                "and no grade.",
                "{n} answers say that their candidates cannot be judged; they are in no "
                "coefficient, and no grades.",
                self.n_without_judgment,
            )
            sentences.append(
                CodedText(text.format(n=f"{self.n_without_judgment:,}"), code="without_judgment")
            )
        return sentences

    @property
    def chance(self) -> str:
        doubted = [
            *(
                _("{name} of round {round}, {value} {interval}").format(
                    name=title_of(one.name),
                    round=one.round,
                    value=coefficient(one.value),
                    interval=interval(one),
                )
                for one in self.alphas
                if _holds_chance(one)
            ),
            *(
                _("{name} of rounds {earlier} and {later}, {value} {interval}").format(
                    name=title_of(one.name),
                    earlier=one.earlier,
                    later=one.later,
                    value=coefficient(one.value),
                    interval=interval(one),
                )
                for one in self.kappas
                if _holds_chance(one)
            ),
        ]
        if not doubted:
            return ""
        return CodedText(
            _("The judgments are not shown to agree better than chance: {coefficients}.").format(
                coefficients="; ".join(doubted)
            ),
            code="chance",
        )


def _holds_chance(row: RoundCoefficient | QuestionCoefficient) -> bool:
    return row.value is not None and row.ci_low is not None and row.ci_low <= 0


def sentence_of(row: RoundCoefficient) -> str:
    names = {"name": title_of(row.name), "earlier": row.earlier, "later": row.later}
    if row.value is None:
        return CodedText(
            _("{name} of rounds {earlier} and {later} is undefined: {reason}.").format(
                reason=row.reason, **names
            ),
            code="rounds_undefined",
        )
    text = _(
        "{name} of rounds {earlier} and {later}: {value} {interval}, of {n} pairs of judgments; "
        "the interval takes targets as clusters."
    )
    values = {"value": coefficient(row.value), "interval": interval(row)}
    return CodedText(text.format(n=f"{row.n_pairs:,}", **values, **names), code=row.name)


def _sentence_of_alpha(row: QuestionCoefficient) -> str:
    names = {"name": title_of(row.name), "round": row.round}
    if row.value is None:
        text = _("{name} between the annotators of round {round} is undefined: {reason}.")
        return CodedText(text.format(reason=row.reason, **names), code="annotators_undefined")
    text = _(
        "{name} between the annotators of round {round}: {value} {interval}, of {n} judgments that "
        "have another beside them."
    )
    values = {"value": coefficient(row.value), "interval": interval(row)}
    return CodedText(text.format(n=f"{row.n_pairable:,}", **values, **names), code=row.name)


def judged_studies(collection: Collection) -> list[StudyJudgments]:
    """The number of queries does not depend on the number of studies."""
    studies = list(
        collection.studies.with_n_items()
        .annotate(has_reasons=_has_reasons())
        .prefetch_related("questions")
        .order_by("title", "pk")
    )
    rows = {study.pk: StudyJudgments(study) for study in studies}
    for each in _rounds(studies):
        rows[each.pop("item__study")].rounds.append(RoundOfStudy(**each))
    kind = AgreementKind()
    for version in Result.objects.filter(study__in=studies, kind=kind.name):
        row = rows[version.subject_id]
        row.is_current = version.fingerprint == kind.fingerprint(row.study)
        row.coefficients = [RoundCoefficient(**one) for one in version.record["between_rounds"]]
        row.alphas = [
            one
            for one in list_alphas(version)
            if one.with_flagged and not one.by and one.n_pairable
        ]
    for key, n in _answers_without_judgment(studies):
        rows[key].n_without_judgment = n
    for batch in list_launched_batches(list(rows)):
        if batch.round == 1:
            rows[batch.study].again = batch.key
    files = collection.files.qrels().filter(study__in=studies).defer("faults")
    for pk, listed in group_values((file.study_id or 0, file) for file in files).items():
        rows[pk].qrels = listed
    return list(rows.values())


def _has_reasons() -> Q:
    pages = Submission.objects.filter(item__study=OuterRef("pk")).exclude(justification="")
    documents = WrittenAnswer.objects.filter(submission__item__study=OuterRef("pk"))
    return Q(Exists(pages.order_by())) | Q(Exists(documents.order_by()))


def _answers_without_judgment(studies: Sequence[Study]) -> Iterable[tuple[int, int]]:
    """How many answers to each ordered question say that nothing can be said, by study."""
    beyond = [
        Q(question=one, value__gt=one.highest)
        for study in studies
        for one in study.questions.all()
        if one.level == Question.Level.ORDINAL and one.highest < one.scale_max
    ]
    if not beyond:
        return []
    return (
        Judgment.objects.accepted()
        .filter(reduce(or_, beyond))
        .order_by()
        .values_list("question__study")
        .annotate(n=Count("pk"))
    )


def _rounds(studies: Sequence[Study]) -> Iterable[dict[str, Any]]:
    counts = (
        Submission.objects.filter(item__study__in=studies)
        .accepted()
        .order_by()
        .values("item__study", "round")
    )
    rows = counts.annotate(
        n_items=Count("item", distinct=True),
        n_submissions=Count("pk", distinct=True),
        n_annotators=Count("annotator", distinct=True),
    ).order_by("item__study", "round")
    return [dict(row) for row in rows]
