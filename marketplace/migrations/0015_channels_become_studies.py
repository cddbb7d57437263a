"""Channels become studies of recruiters, and arrivals that led to work become sessions.

Who pays stays as it was: what a HIT type has promised is still paid here, until its requester
hands it over. Arrivals that led to no work are dropped: their people are recognised by the seal.
"""

import secrets
from datetime import timedelta

from django.db import migrations

from encryption import encrypt, seal

PURPOSE = "recruiter's participant id"
ALPHABET = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"
OUTCOMES = (
    "completed",
    "no_consent",
    "incompatible_device",
    "failed_attention",
    "screened_out",
    "no_more_items",
    "follow_up",
)
HANDED_IN = ("Submitted", "Approved", "Rejected")


def convert(apps, editor):
    model = {
        name: apps.get_model("marketplace", name).objects
        for name in (
            "RecruiterConnection",
            "RecruitedStudy",
            "OutcomeCode",
            "Participant",
            "Arrival",
            "Session",
            "SessionItem",
            "Assignment",
        )
    }
    for study in model["RecruitedStudy"].select_related("hit_type").order_by("pk"):
        _give_connection(model, study)
    for participant in model["Participant"].order_by("pk"):
        _seal_id(model, participant)
    done = set()
    # The newest arrival of a worker at a study is the one they are in.
    for arrival in model["Arrival"].select_related("channel__hit_type").order_by("-pk"):
        if (arrival.channel_id, arrival.worker_id) not in done:
            done.add((arrival.channel_id, arrival.worker_id))
            _make_session(model, arrival)


def _connection(model, requester_id, kind, name, created_at):
    connection, _ = model["RecruiterConnection"].get_or_create(
        requester_id=requester_id, kind=kind, name=name, defaults={"created_at": created_at}
    )
    return connection


def _give_connection(model, study):
    name = study.panel if study.kind == "panel" else "Own lab"
    study.connection = _connection(model, study.requester_id, study.kind, name, study.created_at)
    study.state = "active" if study.is_active else "stopped"
    study.maximum_seconds = study.hit_type.assignment_duration_seconds
    study.save()
    for outcome in OUTCOMES:
        code = study.completion_code if outcome == "completed" else ""
        code = code or "".join(secrets.choice(ALPHABET) for _ in range(8))
        model["OutcomeCode"].create(study=study, outcome=outcome, code=code)


def _seal_id(model, participant):
    rows = model["RecruitedStudy"].filter(requester_id=participant.requester_id)
    first = rows.order_by("pk").first()
    created_at = first.created_at if first else participant.worker.created_at
    participant.connection = _connection(
        model, participant.requester_id, "panel", participant.panel, created_at
    )
    text = f"{participant.connection_id}:{participant.external_id}"
    participant.seal = seal(text, purpose=PURPOSE)
    participant.save()


def _make_session(model, arrival):
    study = model["RecruitedStudy"].get(pk=arrival.channel_id)
    rows = model["Assignment"].filter(hit__hit_type=study.hit_type_id, worker=arrival.worker_id)
    rows = rows.filter(status__in=("Accepted", *HANDED_IN), session_item=None)
    assignments = list(rows.order_by("pk"))
    if not assignments:
        return
    is_done = all(each.status in HANDED_IN for each in assignments)
    sessions = model["Session"].filter(connection=study.connection_id)
    submission_id = arrival.session_id or f"{study.pk}:{arrival.worker.worker_id}"
    if sessions.filter(submission_id=submission_id).exists():
        submission_id = f"arrival-{arrival.pk}"
    external_id = arrival.external_worker_id
    code = model["OutcomeCode"].get(study=study, outcome="completed").code
    session = model["Session"].create(
        connection_id=study.connection_id,
        study=study,
        submission_id=submission_id,
        encrypted_participant_id=encrypt(external_id) if external_id else "",
        external_study_id=arrival.study_id,
        worker_id=arrival.worker_id,
        state="finished" if is_done else "started",
        outcome="completed" if is_done else "",
        code=code if is_done else "",
        arrived_at=arrival.arrived_at,
        expires_at=max(each.deadline for each in assignments) + timedelta(minutes=10),
        ended_at=max(each.submitted_at for each in assignments) if is_done else None,
    )
    for position, assignment in enumerate(assignments, start=1):
        model["SessionItem"].create(session=session, assignment=assignment, position=position)


class Migration(migrations.Migration):

    dependencies = [("marketplace", "0014_recruited_studies")]

    operations = [migrations.RunPython(convert, migrations.RunPython.noop)]
