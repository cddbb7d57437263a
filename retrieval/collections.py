from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from django.db import transaction
from django.db.models import Sum
from django.utils.text import slugify
from django.utils.translation import gettext as _

from accounts.audit import record
from annotation.models import Study
from annotation.uploads import AT_ONCE_BYTES
from results.models import Result
from retrieval.exceptions import CollectionUnfit
from retrieval.file_readings import subject_of
from retrieval.models import Collection, PoolSlot, TopicValue
from work.models import Job
from work.request import request_job

if TYPE_CHECKING:
    from accounts.models import Team, User
    from work.execution import RunningJob

LONGEST_SLUG = 80


@transaction.atomic
def create_collection(
    *, name: str, team: Team, actor: User | None, studies: Iterable[Study] = ()
) -> Collection:
    collection = Collection.objects.create(
        team=team, slug=_free_slug(name), name=name.strip(), created_by=actor
    )
    collection.studies.set(_of_team(studies, team))
    record(team=team, actor=actor, action="collection.create", subject=collection.slug)
    return collection


@transaction.atomic
def link_studies(*, collection: Collection, studies: Iterable[Study], actor: User | None) -> None:
    rows = _of_team(studies, collection.team)
    collection.studies.set(rows)
    record(
        team=collection.team,
        actor=actor,
        action="collection.studies",
        subject=collection.slug,
        details={"studies": [study.slug for study in rows]},
    )


def _of_team(studies: Iterable[Study], team: Team) -> list[Study]:
    rows = list(studies)
    for study in rows:
        if study.team_id != team.pk:
            raise CollectionUnfit(
                _("Study “{study}” is not team {team}'s. Give it to the team first.").format(
                    study=study.title, team=team
                )
            )
    return rows


def _free_slug(name: str) -> str:
    base = slugify(name)[: LONGEST_SLUG - 6].strip("-_") or "collection"
    taken = set(Collection.objects.filter(slug__startswith=base).values_list("slug", flat=True))
    n, slug = 1, base
    while slug in taken:
        n += 1
        slug = f"{base}-{n}"
    return slug


DELETE_COLLECTION = "delete_collection"
# With more rows of results a collection is deleted in the background.
AT_ONCE_ROWS = 20_000


def remove_collection(*, collection: Collection, actor: User | None) -> Job | None:
    """Delete a collection now, or request the job that does where there is much of it."""
    unfinished = Job.objects.about(subject_of(collection)).unfinished()
    if unfinished.exclude(kind=DELETE_COLLECTION).exists():
        raise CollectionUnfit(_("A job on it is under way. Wait for its end, or stop it."))
    if not _is_large(collection):
        delete_collection(collection=collection, actor=actor)
        return None
    return request_job(
        kind=DELETE_COLLECTION,
        subject=subject_of(collection),
        arguments={"collection": collection.pk},
        requested_by=actor,
    )


def _is_large(collection: Collection) -> bool:
    n_bytes = collection.files.aggregate(n=Sum("n_bytes"))["n"] or 0
    if n_bytes > AT_ONCE_BYTES:
        return True
    rows = (
        TopicValue.objects.filter(result__version__collection=collection),
        PoolSlot.objects.filter(topic__version__collection=collection),
    )
    # Whether there are more, and not how many: that would read all of them.
    return sum(some.order_by()[: AT_ONCE_ROWS + 1].count() for some in rows) > AT_ONCE_ROWS


@transaction.atomic
def delete_collection(*, collection: Collection, actor: User | None) -> None:
    details = {"name": collection.name, "files": collection.files.count()}
    _delete(collection, actor, details)


def _delete(collection: Collection, actor: User | None, details: dict[str, object]) -> None:
    team, slug = collection.team, collection.slug
    collection.delete()
    record(team=team, actor=actor, action="collection.delete", subject=slug, details=details)


def delete_large_collection(running: RunningJob) -> str:
    """Delete the collection of a job result by result and file by file, and then itself."""
    rows = Collection.objects.select_related("team").filter(pk=running.arguments["collection"])
    if (collection := rows.first()) is None:
        return _("It is deleted already.")
    files = list(collection.files.defer("faults", "warnings"))
    parts = [*Result.objects.filter(collection=collection), *files]
    for part in running.progress(_("result or file"))(parts, len(parts)):
        part.delete()
    message = _("“{name}” is deleted.").format(name=collection.name)
    details = {"name": collection.name, "files": len(files)}
    with transaction.atomic():
        _delete(collection, running.job.requested_by, details)
        running.complete(message)
    return message
