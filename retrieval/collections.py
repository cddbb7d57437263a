from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from django.db import transaction
from django.db.models import Sum
from django.utils.text import slugify
from django.utils.translation import gettext as _, ngettext

from accounts.audit import record
from accounts.models import Team, User
from annotation.imports import import_study
from annotation.models import Study
from annotation.new_studies import kind_of_protocol
from annotation.protocols.templates import read_protocol
from annotation.readers.drafts import StudyDraft
from annotation.uploads import AT_ONCE_BYTES, free_slug
from results.models import Result
from retrieval.exceptions import CollectionUnfit, PoolDefective
from retrieval.file_readings import subject_of
from retrieval.models import (
    Collection,
    CollectionFile,
    PoolSlot,
    PoolStudy,
    TopicValue,
    result_collection,
)
from retrieval.pools.catalogue import Catalogue, names_alone, pool_study
from retrieval.result_kinds.pools import stored_pool
from retrieval.stored_files import (
    files_on_disk,
    opened_catalogue,
)
from work.execution import RunningJob
from work.models import Job
from work.tasks import request_job

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
    if (collection.files.aggregate(n=Sum("n_bytes"))["n"] or 0) > AT_ONCE_BYTES:
        return True
    rows = (
        TopicValue.objects.filter(result__version__collection=collection),
        PoolSlot.objects.filter(topic__version__collection=collection),
    )
    # Whether there are more, and not how many: that would read all of them.
    return sum(some.order_by()[: AT_ONCE_ROWS + 1].count() for some in rows) > AT_ONCE_ROWS


@transaction.atomic
def delete_collection(*, collection: Collection, actor: User | None) -> None:
    _delete(collection, actor, {"name": collection.name, "files": collection.files.count()})


def _delete(collection: Collection, actor: User | None, details: dict[str, object]) -> None:
    team, slug = collection.team, collection.slug
    collection.delete()
    record(team=team, actor=actor, action="collection.delete", subject=slug, details=details)


def delete_large_collection(running: RunningJob) -> str:
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


STUDY_OF_POOL = "study_of_pool"
MOST_NAMED = 5
KIND = CollectionFile.Kind.CATALOGUE


def refused_faults(version: Result, allowed: Sequence[str]) -> dict[str, int]:
    names = version.pool_findings.values_list("name", flat=True).order_by("pk")
    return Counter(name for name in names if name not in allowed)


def request_study(
    *,
    version: Result,
    title: str,
    template: str,
    allowed: Sequence[str],
    actor: User,
) -> Job:
    """Have a study made of a pool; PoolDefective while a fault is not allowed.

    CollectionUnfit where the catalogue is gone.
    """
    _catalogues(version)
    if refused := refused_faults(version, allowed):
        raise PoolDefective(
            _("The pool is defective ({names}). Make it anew, or allow what is wrong.").format(
                names=", ".join(refused)
            )
        )
    return request_job(
        kind=STUDY_OF_POOL,
        subject=subject_of(result_collection(version)),
        arguments={
            "version": version.pk,
            "title": title,
            "template": template,
            "allowed": sorted(allowed),
        },
        requested_by=actor,
    )


def make_pool_study(running: RunningJob) -> str:
    arguments = running.arguments
    version = Result.objects.get(pk=arguments["version"])
    with files_on_disk(_catalogues(version)) as paths:
        if not paths:
            return _study(version, names_alone(()), arguments, running)
        with opened_catalogue(paths[0]) as catalogue:
            return _study(version, catalogue, arguments, running)


def _catalogues(version: Result) -> list[CollectionFile]:
    """The catalogue that a pool was made with, if any; CollectionUnfit where it was removed."""
    catalogues = []
    for one in version.files.filter(kind=KIND).select_related("file"):
        same = result_collection(version).files.usable().filter(kind=KIND, sha256=one.sha256)
        if (file := one.file or same.first()) is None:
            text = _(
                "The catalogue {name} was removed, and candidates would have no pictures or "
                "titles. Send it again, or make the pool anew."
            )
            raise CollectionUnfit(text.format(name=one.name), code="catalogue_removed")
        catalogues.append(file)
    return catalogues


@transaction.atomic
def _study(
    version: Result,
    catalogue: Catalogue,
    arguments: dict[str, Any],
    running: RunningJob,
) -> str:
    collection, actor = result_collection(version), running.job.requested_by
    protocol = read_protocol(arguments["template"])
    imported = import_study(
        draft=_draft(version, catalogue, kind_of_protocol(protocol)),
        path=Path(f"pool-{version.number}"),
        slug=free_slug(arguments["title"]),
        title=arguments["title"],
        owner=actor,
        team=collection.team,
        protocol=protocol,
        actor=actor,
    )
    PoolStudy.objects.create(
        version=version, study=imported.study, allowed=",".join(arguments["allowed"])
    )
    studies = [*collection.studies.all(), imported.study]
    link_studies(collection=collection, studies=studies, actor=actor)
    # with the study: a second attempt would make it once more
    message = f"{imported} {_left_out(version)}".strip()
    running.complete(message)
    return message


def _left_out(version: Result) -> str:
    names = list(version.pooled_topics.filter(slots=None).values_list("topic", flat=True))
    if not names:
        return ""
    return ngettext(
        "%(n)d target without candidates is left out: %(names)s.",
        "%(n)d targets without candidates are left out: %(names)s.",
        len(names),
    ) % {
        "n": len(names),
        "names": ", ".join(names[:MOST_NAMED]) + (", …" if names[MOST_NAMED:] else ""),
    }


def _draft(version: Result, catalogue: Catalogue, kind: str) -> StudyDraft:
    draft = pool_study(stored_pool(version), catalogue)
    if kind == Study.Kind.ALTERNATIVES:
        return draft
    # the protocol's own questions are asked instead
    return replace(draft, kind="rating", questions=())
