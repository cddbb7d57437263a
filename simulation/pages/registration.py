from typing import Any

from django.db.models import Exists, OuterRef, Subquery
from django.utils.translation import gettext_lazy

from accounts.roles import Permission
from annotation.models.studies import CountedStudy
from annotation.pages.stages import (
    ANSWER,
    Facts,
    State,
    StudyStage,
    register_counts,
    register_stage,
    register_study_kind,
    result_state,
)
from console.api.endpoint import register_subject
from console.registrations import JobAccess, register_job_access
from results.models import Result
from simulation.models import DialogueStudy
from simulation.pages.experiments import experiment_for
from simulation.recorded_studies import MAKE_DIALOGUES


def _dialogue_counts() -> dict[str, Any]:
    kinds = DialogueStudy.objects.filter(study=OuterRef("pk")).values("kind")
    reports = Result.objects.filter(study=OuterRef("pk"), kind__in=DialogueStudy.Kind.values)
    return {"kind_of_dialogues": Subquery(kinds[:1]), "has_dialogue_report": Exists(reports)}


OF_DIALOGUES = {
    DialogueStudy.Kind.SWITCHING: gettext_lazy("Keep, take another or leave"),
    DialogueStudy.Kind.OUTCOMES: gettext_lazy("Ticks among what dialogues ended with"),
}


def _kind(facts: Facts) -> str:
    kind = facts["kind_of_dialogues"]
    return str(OF_DIALOGUES[DialogueStudy.Kind(kind)]) if kind else ""


def _dialogues(study: CountedStudy, facts: Facts) -> State | None:
    if facts["kind_of_dialogues"] is None:
        return None
    is_computed = facts["has_dialogue_report"]
    return result_state(is_possible=bool(study.n_judgments), is_computed=is_computed)


register_study_kind(_kind)
register_counts(_dialogue_counts)
register_stage(
    StudyStage(
        "dialogues",
        gettext_lazy("Simulated users"),
        ANSWER,
        110,
        _dialogues,
        Permission.VIEW_SYSTEMS,
    )
)
register_job_access(MAKE_DIALOGUES, JobAccess(page="dialogues"))
for job in ("report_outcomes", "report_switching"):
    register_job_access(job, JobAccess(page="dialogues", control=Permission.ANALYSE))
register_subject("experiment", experiment_for)
