"""Invitation links of a batch: people without an account work on its HITs, unpaid, up to a quota.

Requests are stored first and sent by a job. The check each minute sends names and revocations
that the job did not send.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts.audit import record
from accounts.models import User
from annotation.study_facts import LINKS, jobs_of, request_study_job
from hits import recruiter_api
from hits.exceptions import RecruitingRefused, require
from hits.models import Batch, InvitedPerson, LinkStudy
from work.execution import RunningJob
from work.models import Job, JobQuerySet

MOST_PEOPLE = 1000
LONGEST_NAME = 100
INVITE, REVOKE = "invite", "revoke"
# What is wanted of the study by each action.
WANTED = {
    "share": {"is_shared": True},
    "unshare": {"is_shared": False},
    "close": {"is_open": False},
    "open": {"is_open": True},
}


def link_jobs(batch: Batch) -> JobQuerySet:
    return jobs_of(batch.study).of_kind(LINKS).filter(arguments__batch=batch.pk)


@transaction.atomic
def request_invitations(*, batch: Batch, names: Sequence[str], actor: User) -> Job:
    """Request a link per name. A name with an active link gets no second one."""
    study = _locked(batch)
    active = set(study.people.filter(revoked_at=None).values_list("name", flat=True))
    new = [name for name in dict.fromkeys(names) if name not in active]
    require(
        new, RecruitingRefused(_("Each of these names has a link already."), code="invited_already")
    )
    if study.people.count() + len(new) > MOST_PEOPLE:
        text = _("A batch has at most {most} links.").format(most=f"{MOST_PEOPLE:,}")
        raise RecruitingRefused(text, code="too_many_links")
    InvitedPerson.objects.bulk_create(InvitedPerson(study=study, name=name) for name in new)
    return _request(study, INVITE, actor, n=len(new))


@transaction.atomic
def request_revocation(*, person: InvitedPerson, actor: User) -> Job:
    study = _locked(person.study.batch)
    InvitedPerson.objects.filter(pk=person.pk, revoked_at=None).update(revoked_at=timezone.now())
    return _request(study, REVOKE, actor, link=person.pk)


@transaction.atomic
def request_link_action(*, batch: Batch, action: str, actor: User) -> Job:
    return _request(_locked(batch), action, actor)


def follow_links(study: LinkStudy, **wanted: bool) -> None:
    """Send what is requested and store how the links are used."""
    batch = study.batch
    if not study.public_id:
        study.public_id = recruiter_api.open_own_study(batch)
        study.save(update_fields=["public_id"])
    unsent = study.people.filter(number=None, worker_id="", revoked_at=None)
    revoked = study.people.filter(is_revoked=False, number__isnull=False).exclude(revoked_at=None)
    _store(
        study,
        recruiter_api.exchange_links(
            batch.connection,
            study.public_id,
            labels=list(unsent.values_list("name", flat=True)),
            revoked=[one.number for one in revoked if one.number],
            **wanted,
        ),
    )


def exchange_in_background(running: RunningJob) -> str:
    follow_links(
        LinkStudy.objects.select_related("batch__connection", "batch__study").get(
            batch=running.arguments["batch"]
        ),
        **WANTED.get(running.arguments["action"], {}),
    )
    return _("The links are up to date.")


def _locked(batch: Batch) -> LinkStudy:
    require(
        batch.is_invited,
        RecruitingRefused(_("This batch was launched for other annotators."), code="not_invited"),
    )
    require(
        batch.hit_type_id,
        RecruitingRefused(_("None of the batch's HITs is published yet."), code="unpublished"),
    )
    Batch.objects.select_for_update(of=("self",)).get(pk=batch.pk)
    return LinkStudy.objects.get_or_create(batch=batch)[0]


def _request(study: LinkStudy, action: str, actor: User, **details: Any) -> Job:
    of_study, batch = study.batch.study, study.batch
    record(
        team=of_study.team,
        actor=actor,
        action=f"links.{action}",
        subject=of_study.slug,
        details={"batch": batch.pk} | details,
    )
    arguments = {"batch": batch.pk, "action": action}
    return request_study_job(study=of_study, kind=LINKS, arguments=arguments, requested_by=actor)


@transaction.atomic
def _store(study: LinkStudy, links: recruiter_api.Links) -> None:
    locked = LinkStudy.objects.select_for_update(of=("self",)).get(pk=study.pk)
    locked.is_open, locked.shared_link = links.is_open, links.shared_link
    locked.fetched_at = timezone.now()
    locked.save(update_fields=["is_open", "shared_link", "fetched_at"])
    known = {_key(one): one for one in locked.people.all()}
    for values in links.people:
        of_name = InvitedPerson(name=values["name"])
        person = known.pop(_key(InvitedPerson(**values)), None)
        if person is None and values["number"] and not values["is_revoked"]:
            person = known.pop(_key(of_name), None)
        person = person or InvitedPerson(study=locked)
        if any(getattr(person, name) != value for name, value in values.items()):
            for name, value in values.items():
                setattr(person, name, value)
            person.save()
    _delete_gone(known.values())


def _key(person: InvitedPerson) -> tuple[object, ...]:
    if person.number:
        return ("number", person.number)
    return ("worker", person.worker_id) if person.worker_id else ("name", person.name)


def _delete_gone(people: Iterable[InvitedPerson]) -> None:
    # Erased at the marketplace; those that were not sent yet stay, unless they were revoked before.
    gone = [one.pk for one in people if one.number or one.worker_id or one.revoked_at]
    InvitedPerson.objects.filter(pk__in=gone).delete()
