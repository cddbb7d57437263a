"""What is odd about a file that can be used all the same, by line."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from retrieval.pools.catalogue import Catalogue
from retrieval.trec_files import Run, each_row

WARNINGS_KEPT = 20


def contradicting_lines(run: Run, most: int) -> Iterator[tuple[int, str]]:
    """The first contradictions of a run, by line."""
    pairs = run.contradicting[:most]
    if not len(pairs):
        return
    positions = set(pairs.ravel().tolist())
    lines = islice(each_row(run.path, "run"), max(positions) + 1)
    rows = {at: row for at, row in enumerate(lines) if at in positions}
    for at, before in pairs.tolist():
        (number, line), (_number, other) = rows[at], rows[before]
        yield (
            number,
            f"document {line['docno']} of topic {line['topic']} has rank {line['rank']} and score "
            f"{line['score']}, which is more than the {other['score']} of {other['docno']} at rank "
            f"{other['rank']}.",
        )


def unshown_pictures(catalogue: Catalogue) -> list[tuple[int, str]]:
    """Documents whose picture a catalogue names and cannot show, by line."""
    return [
        (catalogue.lines[docno], f"{docno}: {document.problem}")
        for docno, document in catalogue.documents.items()
        if document.problem
    ]
