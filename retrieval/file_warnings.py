"""What is odd about a file that can be used all the same, by line."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from retrieval.pools.catalogue import Catalogue
from retrieval.trec_files import Run, each_line

WARNINGS_KEPT = 20


def contradicting_lines(run: Run, most: int) -> Iterator[tuple[int, str]]:
    """The first contradictions of a run, by line."""
    pairs = run.contradicting[:most]
    if not len(pairs):
        return
    positions = set(pairs.ravel().tolist())
    lines = islice(each_line(run.path), max(positions) + 1)
    cells = {at: line for at, line in enumerate(lines) if at in positions}
    for at, before in pairs.tolist():
        number, (topic, _q0, docno, rank, score, _tag) = cells[at]
        _number, (_topic, _q0, other, other_rank, other_score, _tag) = cells[before]
        yield (
            number,
            f"document {docno} of topic {topic} has rank {rank} and score {score}, which is more "
            f"than the {other_score} of {other} at rank {other_rank}.",
        )


def unshown_pictures(catalogue: Catalogue) -> list[tuple[int, str]]:
    """Documents whose picture a catalogue names and cannot show, by line."""
    return [
        (catalogue.lines[docno], f"{docno}: {document.problem}")
        for docno, document in catalogue.documents.items()
        if document.problem
    ]
