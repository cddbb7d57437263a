"""Groups of participants at a recruiter: those of a study that later ones exclude.

A group is made when a study is first excluded, with all who had come to it; who comes later is
added while a study that excludes them is open. Adding somebody twice is adding them once, and a
group too many, of a lost answer, is one that nobody uses.
"""

from __future__ import annotations

from encryption import decrypt
from marketplace.models import RecruitedStudy, RecruiterConnection, Session
from marketplace.recruiting.port import Recruiter

AT_ONCE = 500
State = RecruitedStudy.State


def group_of(recruiter: Recruiter, study: RecruitedStudy) -> str:
    """The id of the group of all who have come to the study, as of now."""
    if not study.external_group_id:
        study.external_group_id = recruiter.create_group(f"Assay {study.token}")
        study.save(update_fields=["external_group_id"])
    _add_all(recruiter, study)
    return study.external_group_id


def follow_groups(connection: RecruiterConnection, recruiter: Recruiter) -> None:
    """Add who has come since to the groups that an open study excludes."""
    grouped = RecruitedStudy.objects.filter(connection=connection).exclude(external_group_id="")
    needed = grouped.filter(excluded_by__state__in=[State.ACTIVE, State.PAUSED])
    for study in needed.distinct().order_by("pk"):
        _add_all(recruiter, study)


def _add_all(recruiter: Recruiter, study: RecruitedStudy) -> None:
    rows = Session.objects.filter(study=study).exclude(encrypted_participant_id="")
    n_sessions = rows.count()
    if n_sessions == study.group_size:
        return
    stored = rows.order_by("pk").values_list("encrypted_participant_id", flat=True)
    ids = sorted({decrypt(one) for one in stored})
    for start in range(0, len(ids), AT_ONCE):
        recruiter.add_to_group(study.external_group_id, ids[start : start + AT_ONCE])
    RecruitedStudy.objects.filter(pk=study.pk).update(group_size=n_sessions)
