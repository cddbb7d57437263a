"""A collection's files as runs and qrels, under the names that its pages call them by."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from retrieval.collection_files import files_on_disk
from retrieval.models import CollectionFile
from retrieval.trec_files import RelevanceGrades, Run, read_assessors, read_qrels, read_run

Kind = CollectionFile.Kind


@contextmanager
def opened_files(
    files: Sequence[CollectionFile],
) -> Iterator[tuple[list[Run], dict[str, RelevanceGrades]]]:
    """The runs, each with its file's name for a tag, and the qrels by name."""
    with files_on_disk(files) as paths:
        pairs = list(zip(files, paths, strict=True))
        runs = [
            replace(read_run(path), tag=file.name) for file, path in pairs if file.kind == Kind.RUN
        ]
        qrels = {
            file.name: replace(read_qrels(path), path=Path(file.name))
            for file, path in pairs
            if file.kind == Kind.QRELS
        }
        yield runs, qrels


def assessors_grades(files: Sequence[CollectionFile]) -> dict[str, RelevanceGrades]:
    """Each assessor's qrels of the file among these that names several; empty without one."""
    chosen = [file for file in files if file.kind == Kind.ASSESSORS]
    with files_on_disk(chosen) as paths:
        return {name: one for path in paths for name, one in read_assessors(path).items()}
