from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.db.models import Count, OuterRef, QuerySet, Subquery, Value
from django.http import HttpRequest
from django.utils.translation import gettext as _, gettext_lazy, ngettext

from accounts.roles import Permission
from annotation.models import (
    Adjudication,
    LabelSet,
    Protocol,
)
from annotation.pages.stages import (
    ANSWER,
    PREPARE,
    Facts,
    Figure,
    Panel,
    State,
    StudyStage,
    register_counts,
    register_figures,
    register_panel,
    register_stage,
    result_state,
    study_for,
)
from annotation.pages.uploads import upload_for
from annotation.result_kinds.agreement import (
    ALPHA,
    AgreementKind,
    QuestionCoefficient,
    first_annotators,
    list_alphas,
)
from annotation.result_kinds.base import newest_results, since_result
from annotation.study_facts import AGREEMENT, LABEL, RESULT, newest_fact
from console.api.endpoint import register_subject
from console.chart_values import LEAST_ITEMS, IntervalChart, correlation_axis, interval_row
from console.glossary import title_of
from console.registrations import ACTIVE, DONE, LATER, NEEDS_YOU, JobAccess, register_job_access
from console.templatetags.numbers import coefficient, interval, words

if TYPE_CHECKING:
    from annotation.models.studies import CountedStudy

# Annotators whose agreement with the others is below it are counted.
LOW_AGREEMENT = 0.4


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


def _alphas(study: CountedStudy) -> tuple[list[QuestionCoefficient], int]:
    """Of the first round, and how many of its items have judgments."""
    if (version := newest_results(study).get(AGREEMENT)) is None:
        return [], 0
    first = version.facts["first_round"]
    alphas = [one for one in list_alphas(version) if one.with_flagged and not one.by]
    return [one for one in alphas if one.round == first], version.facts.get(
        "n_items", study.n_items
    )


def _alpha_figures(study: CountedStudy, facts: Facts) -> Iterator[Figure]:
    rows, n_items = _alphas(study)
    for row in rows[:1] if n_items >= LEAST_ITEMS else ():
        label = _("Agreement, %(question)s") % {"question": row.question}
        rests_on = _("undefined: %(reason)s") % {"reason": words(row.reason)}
        if row.value is not None:
            rests_on = f"{interval(row)} {title_of(ALPHA)}".strip()
        yield Figure(label, coefficient(row.value), rests_on, "agreement")


def _agreement_panel(request: HttpRequest, study: CountedStudy) -> dict[str, Any]:
    alphas, n_items = _alphas(study)
    if not alphas:
        return {}
    version = newest_results(study)[AGREEMENT]
    axis = correlation_axis([low for row in alphas if (low := row.ci_low or row.value) is not None])
    rows = [
        interval_row(
            axis,
            row.question,
            (row.value, row.ci_low, row.ci_high),
            (coefficient(row.value), interval(row)),
            n_items=n_items,
        )
        for row in alphas
    ]
    others = [row["agreement"] for row in first_annotators(version).get("annotators", ())]
    known = [one for one in others if one is not None]
    chart = IntervalChart("", axis, rows)
    return {
        "chart": chart,
        "state": chart.state,
        "measure": title_of(ALPHA),
        "question": alphas[0].question,
        "n_low": sum(one < LOW_AGREEMENT for one in known),
        "n_annotators": len(known),
        "low": LOW_AGREEMENT,
    } | since_result(study, AgreementKind(), version)


register_figures(20, _alpha_figures)
register_panel(
    Panel(
        name="agreement",
        title=gettext_lazy("Agreement"),
        page="agreement",
        place=30,
        template="annotation/_agreement_panel.html",
        describe=_agreement_panel,
        promise=gettext_lazy(
            "How far annotators agree, per question, from 0 (chance) to 1. Needs 2 annotators on 5 "
            "items."
        ),
        is_result=True,
    )
)
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
