"""Requests to a recruiter that failed, as where no answer came, and were done all the same: what
the marketplace said later shows it. What it shows nothing of stays failed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.utils.translation import gettext as _

from annotation.study_jobs import RECRUIT, subject_of
from hits.models import Connection, RecruiterCall, Recruitment
from hits.recruited_batches import (
    DISCARD,
    DRAFT,
    PAUSE,
    PLACES,
    PUBLISH,
    RESUME,
    SETTLE,
    STOP,
)
from work.models import Job

if TYPE_CHECKING:
    from collections.abc import Mapping

State = Recruitment.State
# In which states of a study what was requested of it is done.
DONE_IN = {
    DRAFT: (State.DRAFT, State.ACTIVE, State.PAUSED, State.STOPPED),
    PUBLISH: (State.ACTIVE, State.PAUSED, State.STOPPED),
    PAUSE: (State.PAUSED,),
    RESUME: (State.ACTIVE,),
    STOP: (State.STOPPED,),
    DISCARD: (State.DISCARDED,),
}


def note_done_since(connection: Connection) -> None:
    """Have the latest request of each study, where it failed and is done by now, say so."""
    rows = Recruitment.objects.filter(batch__connection=connection, is_under_way=False)
    studies = {one.pk: one for one in rows.select_related("batch__study")}
    subjects = {subject_of(one.batch.study) for one in studies.values()}
    failed = Job.objects.of_kind(RECRUIT).filter(subject__in=subjects, state=Job.State.FAILED)
    for job in failed:
        study = studies.get(job.arguments["recruitment"])
        if study is None or job.arguments["number"] != study.n_requests:
            continue
        if message := _done_since(study, job.arguments):
            rows_of_it = Job.objects.filter(pk=job.pk, state=Job.State.FAILED)
            rows_of_it.update(state=Job.State.DONE, message=message)


def _done_since(study: Recruitment, arguments: Mapping[str, Any]) -> str:
    """What became of it, in words; empty where it is not done."""
    action = arguments["action"]
    if action == SETTLE:
        calls = RecruiterCall.objects.filter(recruitment=study, number=arguments["call"])
        is_listed = calls.filter(is_uncertain=True).exists()
        return "" if is_listed else _("Nothing of it is left to be settled.")
    is_done = study.state in DONE_IN.get(action, ())
    if action == PLACES:
        is_done = study.places >= arguments["places"]
    return _("It was done all the same, as was seen later.") if is_done else ""
