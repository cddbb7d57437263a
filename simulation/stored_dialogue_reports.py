"""Reports of studies of dialogues: requested, computed in the background, stored as rows."""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from django.db import transaction
from django.db.models import Max
from django.utils.translation import gettext as _

from annotation.models import Study
from annotation.study_jobs import request_study_job
from simulation.dialogue_estimates import Estimate, outcome_estimates, switching_estimates
from simulation.exceptions import DialoguesUnfit
from simulation.models import DialogueEstimate, DialogueReport, DialogueStudy
from simulation.names import named_user
from simulation.outcome_report import outcome_result
from simulation.switching_report import decisions_of, switching_result

if TYPE_CHECKING:
    from accounts.models import User
    from work.execution import RunningJob
    from work.models import Job

REPORT_DIALOGUES = "report_dialogues"
FORM = 5
"""Of the rows; those of another form are not taken for the same."""
ROWS_AT_ONCE = 2000


def fingerprint_of(dialogues: DialogueStudy, rules: Mapping[str, Any]) -> str:
    """Of the origin, the answers and the rules; the study counts the changes of its answers."""
    study = dialogues.study
    inputs = [FORM, study.pk, dialogues.log_sha256, study.judgments_version, dict(rules)]
    return sha256(json.dumps(inputs, sort_keys=True).encode()).hexdigest()


def request_report(
    *, dialogues: DialogueStudy, rules: Mapping[str, Any], actor: User | None
) -> DialogueReport | Job:
    """The report of a study by some rules, where it is there, or the job that makes it."""
    basis = fingerprint_of(dialogues, rules)
    if same := dialogues.reports.filter(fingerprint=basis).first():
        return same
    return request_study_job(
        study=dialogues.study,
        kind=REPORT_DIALOGUES,
        arguments={"rules": dict(rules)},
        basis=basis,
        requested_by=actor,
    )


def report_dialogues(running: RunningJob) -> str:
    """Compute a report and store it; the same input by the same rules is the report there is."""
    rows = DialogueStudy.objects.select_related("study")
    dialogues = rows.filter(study=running.arguments["study"]).first()
    if dialogues is None:
        raise DialoguesUnfit(_("The study was deleted meanwhile."))
    rules: dict[str, Any] = running.arguments["rules"]
    fingerprint = fingerprint_of(dialogues, rules)
    report = dialogues.reports.filter(fingerprint=fingerprint).first()
    if report is None:
        counts, estimates = _computed(dialogues, rules)
        running.check()
        with transaction.atomic():
            running.hold()
            report = _store(running, dialogues, fingerprint, rules, counts, estimates)
    return _("Report {number}.").format(number=report.number)


def _computed(
    dialogues: DialogueStudy, rules: Mapping[str, Any]
) -> tuple[dict[str, int], list[Estimate]]:
    """How much was answered, and the numbers that come of it."""
    options = {"confidence": rules["confidence"], "seed": rules["seed"]}
    if dialogues.kind == DialogueStudy.Kind.OUTCOMES:
        result = outcome_result(
            dialogues.study,
            users=rules["users"],
            chosen_on=rules["chosen_on"],
            margin=rules["margin"],
            **options,
        )
        people = result.people
        counts = {
            "n_answers": people.n_answers,
            "n_annotators": people.n_annotators,
            "n_targets": len(people.targets),
        }
        return counts, list(outcome_estimates(result))
    decisions = decisions_of(dialogues.study)
    users = [named_user(name) for name in rules["users"]]
    study, fits = switching_result(dialogues.study, decisions, users, **options)
    counts = {
        "n_answers": len(decisions),
        "n_annotators": decisions["worker"].nunique(),
        "n_targets": decisions["target"].nunique(),
    }
    return counts, list(switching_estimates(decisions, study, fits))


def _store(
    running: RunningJob,
    dialogues: DialogueStudy,
    fingerprint: str,
    rules: Mapping[str, Any],
    counts: Mapping[str, int],
    estimates: list[Estimate],
) -> DialogueReport:
    Study.objects.select_for_update().get(pk=dialogues.study_id)
    last = dialogues.reports.aggregate(last=Max("number"))["last"] or 0
    report = DialogueReport.objects.create(
        dialogues=dialogues,
        number=last + 1,
        form=FORM,
        fingerprint=fingerprint,
        rules=dict(rules),
        judgments_version=dialogues.study.judgments_version,
        created_by_id=running.job.requested_by_id,
        **counts,
    )
    rows = (DialogueEstimate(report=report, **one.columns) for one in estimates)
    DialogueEstimate.objects.bulk_create(rows, batch_size=ROWS_AT_ONCE)
    return report
