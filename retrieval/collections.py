"""Collections made and linked to studies, each with its entry in the team's log."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from django.db import transaction
from django.utils.text import slugify
from django.utils.translation import gettext as _

from accounts.audit import record
from annotation.models import Study
from retrieval.exceptions import CollectionUnfit
from retrieval.models import Collection

if TYPE_CHECKING:
    from accounts.models import Team, User

LONGEST_SLUG = 80


@transaction.atomic
def create_collection(
    *, name: str, team: Team, actor: User | None, studies: Iterable[Study] = ()
) -> Collection:
    """An empty collection of a team; its studies are the team's too."""
    collection = Collection.objects.create(
        team=team, slug=_free_slug(name), name=name.strip(), created_by=actor
    )
    collection.studies.set(_of_team(studies, team))
    record(team=team, actor=actor, action="collection.create", subject=collection.slug)
    return collection


@transaction.atomic
def link_studies(*, collection: Collection, studies: Iterable[Study], actor: User | None) -> None:
    """Say whose judgments make the collection's qrels."""
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
    """A short name that no collection has, like a name."""
    base = slugify(name)[: LONGEST_SLUG - 6].strip("-_") or "collection"
    taken = set(Collection.objects.filter(slug__startswith=base).values_list("slug", flat=True))
    n, slug = 1, base
    while slug in taken:
        n += 1
        slug = f"{base}-{n}"
    return slug
