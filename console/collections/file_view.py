"""A collection's files as its pages list them."""

from __future__ import annotations

from typing import Any

from django.db.models import Count, Exists, OuterRef, Q

from retrieval.models import Collection, CollectionFile, FileTopic
from retrieval.models.files import CollectionFileQuerySet

JUDGED = (CollectionFile.Kind.QRELS, CollectionFile.Kind.ASSESSORS)


def listed_runs(collection: Collection) -> CollectionFileQuerySet:
    """The runs, each with its topics that no qrels of the collection have."""
    in_qrels = FileTopic.objects.filter(
        file__collection=collection.pk,
        file__kind__in=JUDGED,
        topic=OuterRef("topic"),
    )
    foreign = (
        FileTopic.objects.filter(file__collection=collection.pk, file__kind=CollectionFile.Kind.RUN)
        .filter(~Exists(in_qrels))
        .values("file")
        .annotate(n=Count("pk"))
    )
    n_foreign: dict[int, int] = dict(foreign.values_list("file", "n"))
    rows = collection.files.runs().usable().defer("faults").order_by("family", "name")
    for row in rows:
        row.n_foreign = n_foreign.get(row.pk, 0)  # type: ignore[attr-defined]
    return rows


def listed_qrels(collection: Collection) -> CollectionFileQuerySet:
    """The qrels, those of several assessors too, people's first."""
    rows = collection.files.filter(kind__in=JUDGED).usable().defer("faults")
    rows = rows.select_related("study")
    return rows.people_first()


def faulty_files(collection: Collection) -> list[Any]:
    """The files that cannot be used, with what is wrong with them."""
    return list(collection.files.filter(Q(n_faults__gt=0)).order_by("pk"))
