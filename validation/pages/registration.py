"""The stages of a study where systems and metrics are compared with people."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from django.contrib.contenttypes.models import ContentType
from django.db.models import Exists, OuterRef
from django.utils.translation import gettext_lazy

from accounts.roles import Permission
from annotation.models import Study
from annotation.pages.overview import Figure, register_figures
from annotation.pages.stages import (
    ANSWER,
    Facts,
    State,
    StudyStage,
    register_counts,
    register_stage,
    result_state,
)
from annotation.study_results import RESULTS, VALIDATION
from results.models import Result
from validation.human_results import HUMAN_RESULTS
from validation.models import ValidationOutcome
from validation.pages.result_figures import (
    leader_figures,
    top_group_figures,
)
from validation.study_results import current_version
from validation.versions import StoredResults

if TYPE_CHECKING:
    from annotation.study_sizes import CountedStudy


def _result_counts() -> dict[str, Any]:
    outcomes = ValidationOutcome.objects.filter(study=OuterRef("pk"), name=VALIDATION)
    of_study = {
        "subject_type": ContentType.objects.get_for_model(Study),
        "subject_id": OuterRef("pk"),
    }
    return {
        RESULTS: Exists(Result.objects.filter(**of_study, kind=HUMAN_RESULTS)),
        VALIDATION: Exists(outcomes),
    }


def _results(study: CountedStudy, facts: Facts) -> State:
    return result_state(is_possible=bool(study.n_judgments), is_computed=facts[RESULTS])


def _validation(study: CountedStudy, facts: Facts) -> State:
    is_possible = bool(study.n_judgments) and facts["has_scores"]
    return result_state(is_possible=is_possible, is_computed=facts[VALIDATION])


def _leader_figures(study: CountedStudy, facts: Facts) -> Iterator[Figure]:
    for label, value, rests_on in leader_figures(study):
        yield Figure(label, value, rests_on, "results")


def _metric_figures(study: CountedStudy, facts: Facts) -> Iterator[Figure]:
    if (version := current_version(study)) is not None:
        for label, value, rests_on in top_group_figures(StoredResults(version)):
            yield Figure(label, value, rests_on, "validation")


register_figures(40, _leader_figures)
register_figures(60, _metric_figures)
register_counts(_result_counts)
for stage in (
    StudyStage("results", gettext_lazy("Results"), ANSWER, 60, _results, Permission.VIEW_SYSTEMS),
    StudyStage(
        "validation", gettext_lazy("Metrics"), ANSWER, 100, _validation, Permission.VIEW_SYSTEMS
    ),
):
    register_stage(stage)
