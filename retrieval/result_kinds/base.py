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
from retrieval.models import Collection, CollectionFile, ResultFile, ResultType
from retrieval.result_kinds.settings import QRELS, RUNS, settings_of

ROWS_AT_ONCE = 2000
Kind = CollectionFile.Kind


class CollectionKind(ResultKind[Collection]):
    """A kind of results of a collection's files."""

    subject = "collection"
    refusals = (RetrievalError, AnnotationError)

    def open_subject(self, key: int) -> Collection:
        known = Collection.objects.select_related("team").filter(pk=key)
        if (collection := known.first()) is None:
            raise CollectionUnfit(_("The collection was deleted meanwhile."))
        return collection

    def find_subject(self, name: str) -> Collection:
        if (collection := Collection.objects.filter(slug=name).first()) is None:
            raise CollectionUnfit(f"There is no collection {name}.", code="unknown_collection")
        return collection

    def offer_inputs(self, subject: Collection) -> Mapping[str, Sequence[CollectionFile]]:
        """The usable files, people's first, by the name of the input."""
        files = list(subject.files.usable().defer("faults").people_first())
        return {name: [file for file in files if self.fits(name, file)] for name in self.inputs}

    def fits(self, name: str, file: CollectionFile) -> bool:
        """Whether a file can be chosen for an input."""
        return file.kind == (Kind.QRELS if name == "qrels" else Kind.RUN)

    def name_input(self, row: CollectionFile) -> str:
        if row.made_by == CollectionFile.MadeBy.SIMULATED:
            return _("{name} (simulated workers)").format(name=row.name)
        return f"{row.name} ({row.family})" if row.family else row.name

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

    def list_kept_inputs(self, result: Result) -> Sequence[int]:
        files = ResultFile.objects.filter(version=result).exclude(file=None)
        return list(files.values_list("file", flat=True))

    def prefer_inputs(self, subject: Collection) -> Mapping[str, Sequence[int | None]]:
        """The qrels that were evaluated last."""
        evaluated = Result.objects.of(subject, ResultType.EVALUATION)[:1]
        qrels = ResultFile.objects.filter(version__in=list(evaluated), kind=Kind.QRELS)
        return {"qrels": list(qrels.values_list("file", flat=True))}


class RunsKind(CollectionKind):
    """A kind of results of runs under qrels, by the settings of an evaluation."""

    inputs = {"qrels": QRELS, "runs": RUNS}
    fields_of_errors = {
        "unknown_measure": ("others", "measures"),
        "no_measure": ("measures",),
        "unknown_primary": ("primary",),
        "not_binary": ("test",),
    }

    def check_settings(self, settings: Mapping[str, Any]) -> None:
        settings_of(settings)


def write_rows(model: type[models.Model], rows: Iterable[Mapping[str, Any]]) -> None:
    """Rows of a table, some thousands a statement."""
    for some in batched(rows, ROWS_AT_ONCE):  # bulk_create makes a list of all it is given
        model._default_manager.bulk_create(model(**row) for row in some)
