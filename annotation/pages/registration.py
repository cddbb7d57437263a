from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.db.models import Count, OuterRef, QuerySet, Subquery, Value
from django.utils.translation import gettext as _, gettext_lazy, ngettext

from accounts.roles import Permission
from annotation.models import (
    Adjudication,
    LabelSet,
    Protocol,
    Study,
)
from annotation.pages.study import (
    ANSWER,
    PREPARE,
    Facts,
    Figure,
    State,
    StudyStage,
    register_counts,
    register_figures,
    register_stage,
    result_state,
    study_for,
    study_kind,
)
from annotation.pages.uploads import upload_for
from annotation.result_kinds.agreement import QuestionCoefficient, current_agreement, list_alphas
from annotation.study_facts import AGREEMENT, LABEL, RESULT, newest_fact
from console.api.endpoint import register_subject
from console.registrations import ACTIVE, DONE, LATER, NEEDS_YOU, JobAccess, register_job_access
from console.templatetags.numbers import coefficient, interval, words

if TYPE_CHECKING:
    from annotation.models.studies import CountedStudy


def _stage_counts() -> dict[str, Any]:
    protocols = Protocol.objects.filter(study=OuterRef("pk")).order_by("-number")
    return {
        "protocol": Subquery(protocols.values("number")[:1]),
        "protocol_frozen_at": Subquery(protocols.values("frozen_at")[:1]),
        "n_disputed": newest_fact(AGREEMENT, "n_disputed"),
        "n_decided": Subquery(
            _number(Adjudication.objects.standing().filter(question__study=OuterRef("pk")))
        ),
        "n_label_sets": Subquery(_number(LabelSet.objects.filter(study=OuterRef("pk")))),
    }


def _number(rows: QuerySet[Any]) -> QuerySet[Any]:
    counts: QuerySet[Any] = (
        rows.order_by().annotate(all=Value(1)).values("all").annotate(n=Count("*")).values("n")
    )
    return counts


def _protocol(study: CountedStudy, facts: Facts) -> State:
    number = facts["protocol"]
    if number is None:
        return (DONE if study.n_judgments else LATER), ""
    is_frozen = facts["protocol_frozen_at"] is not None
    return (DONE if is_frozen else ACTIVE), _("version %(n)d") % {"n": number}


def _adjudication(study: CountedStudy, facts: Facts) -> State:
    if (n_disputed := facts["n_disputed"]) is None:
        return LATER, ""
    if not facts["n_decided"]:
        return LATER, _("%(n)s disputed") % {"n": f"{n_disputed:,}"}
    return ACTIVE, _("%(n)s of %(total)s decided") % {
        "n": f"{facts['n_decided']:,}",
        "total": f"{n_disputed:,}",
    }


def _labels(study: CountedStudy, facts: Facts) -> State:
    n_sets = facts["n_label_sets"]
    if not n_sets:
        return LATER, ""
    return DONE, ngettext("%(n)d set", "%(n)d sets", n_sets) % {"n": n_sets}


def _size_figures(study: CountedStudy, facts: Facts) -> Iterator[Figure]:
    yield Figure(_("Items"), f"{study.n_items:,}", study_kind(study), "items")


def _judgment_figures(study: CountedStudy, facts: Facts) -> Iterator[Figure]:
    n = study.n_submissions
    yield Figure(
        _("Judgments"),
        f"{study.n_judgments:,}",
        (ngettext("in %(shown)s submission", "in %(shown)s submissions", n) % {"shown": f"{n:,}"}),
        "items",
    )


def _alpha_figures(study: CountedStudy, facts: Facts) -> Iterator[Figure]:
    for row in _alphas(study):
        yield Figure(
            (_("Alpha, %(question)s") % {"question": row.question}),
            *_alpha_text(row),
            "agreement",
        )


def _alphas(study: Study) -> list[QuestionCoefficient]:
    if (version := current_agreement(study)) is None:
        return []
    first = version.facts["first_round"]
    alphas = [one for one in list_alphas(version) if one.with_flagged and not one.by]
    return [one for one in alphas if one.round == first][:MOST_QUESTIONS]


def _alpha_text(row: QuestionCoefficient) -> tuple[str, str]:
    size = row.n_items
    n = ngettext("n = %(n)s candidate", "n = %(n)s candidates", size) % {"n": f"{size:,}"}
    if row.value is None:
        reason = _("undefined: %(reason)s") % {"reason": words(row.reason)}
        return "–", f"{reason}; {n}"
    return coefficient(row.value), f"{interval(row)}, {n}"


for place, list_figures in (
    (10, _size_figures),
    (30, _judgment_figures),
    (50, _alpha_figures),
):
    register_figures(place, list_figures)
# Alphas of so many questions are figures.
MOST_QUESTIONS = 4
register_counts(_stage_counts)
for stage in (
    StudyStage(
        "items",
        gettext_lazy("Items"),
        PREPARE,
        10,
        lambda study, _facts: (
            (DONE, f"{study.n_items:,}") if study.n_items else (NEEDS_YOU, _("none yet"))
        ),
    ),
    StudyStage("protocol", gettext_lazy("Design"), PREPARE, 20, _protocol),
    StudyStage(
        "agreement",
        gettext_lazy("Agreement"),
        ANSWER,
        70,
        lambda study, facts: result_state(
            is_possible=bool(study.n_judgments), is_computed=facts["n_disputed"] is not None
        ),
    ),
    StudyStage("adjudication", gettext_lazy("Adjudication"), ANSWER, 80, _adjudication),
    StudyStage("labels", gettext_lazy("Labels"), ANSWER, 90, _labels),
    StudyStage(
        "downloads",
        gettext_lazy("Downloads"),
        ANSWER,
        120,
        lambda study, _facts: ((DONE if study.n_judgments else LATER), ""),
        Permission.EXPORT,
    ),
):
    register_stage(stage)

register_job_access(LABEL, JobAccess(page="labels", control=Permission.ANALYSE))
# Of the page that its name says.
register_job_access(RESULT, JobAccess(control=Permission.ANALYSE))


register_subject("study", partial(study_for, has_rehearsals=False))
register_subject("upload", lambda request, token, _permission: upload_for(request, UUID(token)))
