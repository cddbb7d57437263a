"""The audit of several assessors' grades, whom column 2 names (qrels_jg): how far they agree."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from presentation.counts import count_of
from retrieval.audit.records import AuditedFile, Finding
from retrieval.exceptions import TrecFileFaults
from retrieval.rankings.label_sets import LabelSets, label_sets
from retrieval.rankings.labels import assessors_agree
from retrieval.trec_files import read_assessors


def audit_assessors(path: Path, n_lines: int, *, confidence: float = 0.95) -> AuditedFile | None:
    """Grades of several assessors; None where it is something else, or has a fault as that too."""
    try:
        grades = read_assessors(path)
    except TrecFileFaults:
        return None
    topics = sorted({topic for one in grades.values() for topic in one.topics}, key=str.encode)
    sets = label_sets(grades, topics)
    agreement = assessors_agree(sets, confidence).record()
    documents, n_judges = _judges(sets)
    n_twice = int((n_judges > 1).sum())
    facts = {
        "n_topics": len(topics),
        "n_documents": documents,
        "n_assessors": len(grades),
        "n_judged_by_several": n_twice,
        "agreement": {name: agreement[name] for name in ("overlap", "alpha")},
    }
    said = Finding(
        name="several_assessors",
        severity="note",
        text=f"column 2 names {count_of(len(grades), 'assessor')}, and {n_twice:,} of "
        f"{count_of(documents, 'document')} have several grades (qrels_jg): {_agreement(agreement)}"
        "; it is not read as qrels, so merge them by a rule first",
        n=n_twice,
        of=documents,
    )
    n_rows = int(n_judges.sum())
    return AuditedFile(path, "assessors", n_lines, n_rows=n_rows, findings=(said,), facts=facts)


def _judges(sets: LabelSets) -> tuple[int, np.ndarray[tuple[int], np.dtype[np.intp]]]:
    """How many documents of topics were judged, and by how many each."""
    pair, _number, _grade = sets.judgments()
    documents, counts = np.unique(pair, return_counts=True)
    return len(documents), counts


def _agreement(record: dict[str, dict[str, float | str | None]]) -> str:
    alpha, overlap = record["alpha"], record["overlap"]
    if alpha["value"] is None:
        return f"Krippendorff's alpha is undefined ({alpha['reason']})"
    said = f"Krippendorff's alpha {alpha['value']:.3f}"
    return said if overlap["value"] is None else f"{said}, overlap {overlap['value']:.3f}"
