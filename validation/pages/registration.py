"""The stages of a study where systems and metrics are compared with people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.db.models import Exists, OuterRef
from django.utils.translation import gettext_lazy

from accounts.roles import Permission
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
from console.models import ValidationOutcome
from validation.models import HumanResults

if TYPE_CHECKING:
    from annotation.study_sizes import CountedStudy


def _result_counts() -> dict[str, Any]:
    outcomes = ValidationOutcome.objects.filter(study=OuterRef("pk"), name=VALIDATION)
    return {
        RESULTS: Exists(HumanResults.objects.filter(study=OuterRef("pk"))),
        VALIDATION: Exists(outcomes),
    }


def _results(study: CountedStudy, facts: Facts) -> State:
    return result_state(is_possible=bool(study.n_judgments), is_computed=facts[RESULTS])


def _validation(study: CountedStudy, facts: Facts) -> State:
    is_possible = bool(study.n_judgments) and facts["has_scores"]
    return result_state(is_possible=is_possible, is_computed=facts[VALIDATION])


register_counts(_result_counts)
for stage in (
    StudyStage("results", gettext_lazy("Results"), ANSWER, 60, _results, Permission.VIEW_SYSTEMS),
    StudyStage(
        "validation", gettext_lazy("Metrics"), ANSWER, 100, _validation, Permission.VIEW_SYSTEMS
    ),
):
    register_stage(stage)
