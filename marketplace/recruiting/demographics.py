"""What participants told their recruiter about themselves: fetched on a requester's word, kept
encrypted beside the session and gone with it, exported by Worker ID.

What says who somebody is at the recruiter (ids, codes, times to the second) is not kept.
"""

import json
from collections.abc import Iterator, Mapping

from django.db import transaction
from django.db.models import Exists, OuterRef
from django.utils.translation import gettext as _

from csv_cells import to_cell
from encryption import decrypt, encrypt
from marketplace import clock
from marketplace.audit_log import note
from marketplace.exceptions import InvalidParameter
from marketplace.models import (
    Assignment,
    Outcome,
    RecruitedStudy,
    Session,
    SessionDemographics,
)
from marketplace.recruiting.connections import required_recruiter
from marketplace.recruiting.files import note_export
from marketplace.recruiting.problems import RecruiterProblem
from marketplace.users import User
from work.request import request_job

FETCH_DEMOGRAPHICS = "fetch_demographics"
MOST_QUESTIONS, LONGEST_NAME, LONGEST_ANSWER = 100, 200, 500


def can_fetch(study: RecruitedStudy) -> bool:
    """Whether the study's recruiter may be asked."""
    return bool(study.external_id and study.connection.encrypted_token)


def fetch_demographics(*, study: RecruitedStudy, user: User | None = None) -> int:
    """Ask the recruiter, and keep what it says of those whose answers are here; return of how
    many. Of who did not consent, left or sent nothing, nothing is kept."""
    recruiter = required_recruiter(study.connection)
    if not study.external_id:
        raise InvalidParameter(_("This recruiter has no demographics."))
    answered = Assignment.objects.handed_in().filter(session_item__session=OuterRef("pk"))
    mine = Session.objects.filter(Exists(answered), study=study)
    mine = mine.exclude(state=Session.State.RETURNED).exclude(outcome=Outcome.NO_CONSENT)
    sessions = {one.submission_id: one for one in mine}
    try:
        told = {one.submission: one.answers for one in recruiter.demographics(study.external_id)}
    except RecruiterProblem as problem:
        raise InvalidParameter(str(problem)) from problem
    known = {key: answers for key, answers in told.items() if key in sessions}
    with transaction.atomic():
        others = SessionDemographics.objects.filter(session__study=study)
        others.exclude(session__in=sessions.values()).delete()  # who left since it was fetched
        for key, answers in known.items():
            SessionDemographics.objects.update_or_create(
                session=sessions[key],
                defaults={
                    "encrypted_answers": encrypt(json.dumps(_bounded(answers))),
                    "fetched_at": clock.now(),
                },
            )
        detail = {"participants": len(known)}
        note(
            "study.fetch_demographics",
            subject=study.name,
            user=user,
            requester=study.requester,
            detail=detail,
        )
    return len(known)


def request_demographics(*, study: RecruitedStudy, user: User | None = None) -> None:
    """Have the recruiter asked."""
    if not can_fetch(study):
        raise InvalidParameter(_("This recruiter has no demographics."))
    request_job(kind=FETCH_DEMOGRAPHICS, arguments={"study": study.pk}, requested_by=user)


def demographics_file(
    study: RecruitedStudy, *, user: User | None, reader: str = ""
) -> Iterator[tuple[str, ...]]:
    """The rows by Worker ID, the header first; several participations are several rows."""
    note_export(study, "demographics", user=user, reader=reader)
    return _rows(study)


def _rows(study: RecruitedStudy) -> Iterator[tuple[str, ...]]:
    rows = SessionDemographics.objects.filter(session__study=study).order_by("session_id")
    answers = [
        (row.session.worker.worker_id, json.loads(decrypt(row.encrypted_answers)))
        for row in rows.select_related("session__worker")
    ]
    names = list(dict.fromkeys(name for _worker, one in answers for name in one))
    yield ("worker_id", *map(to_cell, names))
    for worker, one in answers:
        yield (worker, *(to_cell(one.get(name, "")) for name in names))


def _bounded(answers: Mapping[str, str]) -> dict[str, str]:
    some = list(answers.items())[:MOST_QUESTIONS]
    return {name[:LONGEST_NAME]: answer[:LONGEST_ANSWER] for name, answer in some}
