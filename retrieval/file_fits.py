"""How well catalogues and vectors fit runs and samples: how many of their names they know."""

from __future__ import annotations

from collections.abc import Sequence, Set

from results.models import Result
from retrieval.collection_files import files_on_disk
from retrieval.models import (
    Collection,
    CollectionFile,
    FileFit,
    ResultType,
    SampledTarget,
    SampleFit,
)
from retrieval.source_files import names_in
from retrieval.trec_files import read_run

Kind = CollectionFile.Kind
SAMPLES = 20
"""As many as pages offer, the newest first."""


def note_fits(collection: Collection) -> None:
    """Hold each source against each run and each sample that it was not held against yet."""
    files = list(collection.files.usable().defer("faults", "warnings"))
    sources = [file for file in files if file.kind in (Kind.CATALOGUE, Kind.EMBEDDINGS)]
    runs = [file for file in files if file.kind == Kind.RUN]
    targets = ResultType.TARGETS
    samples = list(Result.objects.of(collection, targets)[:SAMPLES])
    for source in sources:
        known = set(source.fits.values_list("run", flat=True))
        known_samples = set(source.sample_fits.values_list("sample", flat=True))
        new = [run for run in runs if run.pk not in known]
        new_samples = [sample for sample in samples if sample.pk not in known_samples]
        if new or new_samples:
            _note_fits_of(source, new, new_samples)


def _note_fits_of(
    source: CollectionFile, runs: Sequence[CollectionFile], samples: Sequence[Result]
) -> None:
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
    SampleFit.objects.bulk_create(
        [_sample_fit(source, sample, names) for sample in samples], ignore_conflicts=True
    )


def _sample_fit(source: CollectionFile, sample: Result, names: Set[str]) -> SampleFit:
    targets = SampledTarget.objects.filter(version=sample).values_list("topic", "docno")
    n_known = sum((docno or topic) in names for topic, docno in targets)
    return SampleFit(source=source, sample=sample, n_targets=len(targets), n_known=n_known)
