"""How well catalogues and vectors fit the runs: how many of their documents they know by name."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from retrieval.collection_files import files_on_disk
from retrieval.models import Collection, CollectionFile, FileFit
from retrieval.source_files import names_in
from retrieval.trec_files import read_run

Kind = CollectionFile.Kind


def note_fits(collection: Collection) -> None:
    """Hold each source against each run that it was not held against yet."""
    files = list(collection.files.usable().defer("faults", "warnings"))
    sources = [file for file in files if file.kind in (Kind.CATALOGUE, Kind.EMBEDDINGS)]
    runs = [file for file in files if file.kind == Kind.RUN]
    known = set(FileFit.objects.filter(source__in=sources).values_list("source", "run"))
    missing = [pair for pair in product(sources, runs) if (pair[0].pk, pair[1].pk) not in known]
    for source in sources:
        if of_source := [run for one, run in missing if one == source]:
            _note_fits_of(source, of_source)


def _note_fits_of(source: CollectionFile, runs: Sequence[CollectionFile]) -> None:
    with files_on_disk([source]) as [path]:
        names = names_in(path, source.kind)
    for file in runs:
        with files_on_disk([file]) as [path]:
            run = read_run(path)
        fit = FileFit(
            source=source,
            run=file,
            n_documents=len(run.documents),
            n_known=sum(name in names for name in run.documents),
            n_topics=len(run.topics),
            n_known_topics=sum(name in names for name in run.topics),
        )
        # Another job may hold the same two against each other at the same time.
        FileFit.objects.bulk_create([fit], ignore_conflicts=True)
