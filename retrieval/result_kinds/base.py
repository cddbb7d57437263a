"""What all results of a test collection share: they are computed from its files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from django.db import models
from django.utils.translation import gettext as _

from annotation.bulk import batched
from annotation.exceptions import AnnotationError
from results.kinds import ResultKind
from results.models import Result
from retrieval.exceptions import CollectionUnfit, RetrievalError
from retrieval.models import Collection, CollectionFile, ResultFile

ROWS_AT_ONCE = 2000


class CollectionKind(ResultKind[Collection]):
    """A kind of results of a collection's files."""

    refusals = (RetrievalError, AnnotationError)

    def open_subject(self, key: int) -> Collection:
        known = Collection.objects.select_related("team").filter(pk=key)
        if (collection := known.first()) is None:
            raise CollectionUnfit(_("The collection was deleted meanwhile."))
        return collection

    def load_inputs(self, subject: Collection, keys: Sequence[int]) -> Sequence[CollectionFile]:
        files = list(subject.files.usable().filter(pk__in=keys).order_by("kind", "name"))
        if len(files) != len(keys):
            raise CollectionUnfit(_("A file was removed meanwhile. Choose the files again."))
        return files

    def describe_inputs(self, subject: Collection, inputs: Sequence[CollectionFile]) -> list[Any]:
        return [
            [file.kind, file.name, file.family, file.made_by, file.sha256]
            for file in sorted(inputs, key=lambda file: (file.kind, file.name))
        ]

    def keep_inputs(self, result: Result, inputs: Sequence[CollectionFile]) -> None:
        for file in inputs:
            ResultFile.objects.create(
                version=result,
                file=file,
                kind=file.kind,
                name=file.name,
                family=file.family,
                made_by=file.made_by,
                sha256=file.sha256,
            )


def write_rows(model: type[models.Model], rows: Iterable[Mapping[str, Any]]) -> None:
    """Rows of a table, some thousands a statement."""
    for some in batched(rows, ROWS_AT_ONCE):  # bulk_create makes a list of all it is given
        model._default_manager.bulk_create(model(**row) for row in some)
