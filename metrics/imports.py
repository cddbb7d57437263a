"""Scores that were computed elsewhere, from a CSV or JSON Lines file.

A long file has the columns `item`, `system` (or `candidate`), `metric` and `value`, and
may have `signature` and `reason`. A wide one has a column per metric, named when importing.
An empty value is a score that could not be computed.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from django.db import transaction

from annotation.exceptions import ImportRefused
from annotation.models import Candidate, Study
from annotation.readers.rows import Row
from annotation.readers.tables import read_rows
from metrics.models import LONGEST_SIGNATURE
from metrics.stored_scores import write_scores

LONGEST = 64


@dataclass(frozen=True)
class _ScoreKey:
    """Which score of which candidate a row holds; numbers are rows of the file."""

    item: str
    candidate: str
    metric: str
    signature: str


@transaction.atomic
def import_scores(
    *,
    study: Study,
    path: Path,
    metrics: Sequence[str] = (),
    lower_is_better: Sequence[str] = (),
    signature: str = "",
) -> dict[str, int]:
    """Read a file of scores into a study; return how many scores each metric has in it.

    `signature` is that of the rows that name none.
    """
    names = tuple(dict.fromkeys(metrics))
    default = signature or f"imported|file:{path.name}"
    values, reasons = _read(study, path, names, default)
    counts = Counter(cell.metric for cell in values)
    if absent := [metric for metric in lower_is_better if metric not in counts]:
        signature_ = ", ".join(counts)
        raise ImportRefused(
            path, f"it has no metric '{absent[0]}' to be lower (found: {signature_})."
        )
    runs = _by_run(values)
    # Outputs of one scorer share its signature; that of rows without one says nothing of them.
    variants = _variants(run for run in runs if run[1] != default)
    for (metric, signature_), cells in runs.items():
        write_scores(
            study=study,
            metric=metric,
            signature=signature_,
            values={(cell.item, cell.candidate): values[cell] for cell in cells},
            higher_is_better=metric not in lower_is_better,
            is_primary=(metric, signature_) not in variants,
            reasons={(cell.item, cell.candidate): reasons[cell] for cell in cells},
        )
    return dict(counts)


def _variants(runs: Iterable[tuple[str, str]]) -> set[tuple[str, str]]:
    """Those named after another of the same signature: rougeL_precision beside rougeL."""
    known = set(runs)
    return {
        (metric, signature)
        for metric, signature in known
        for end in range(len(metric))
        if metric[end] == "_" and (metric[:end], signature) in known
    }


def _read(
    study: Study, path: Path, metrics: Sequence[str], signature: str
) -> tuple[dict[_ScoreKey, float], dict[_ScoreKey, str]]:
    """The values by score, and the reasons that undefined ones have."""
    candidates = _known_candidates(study)
    rows = read_rows(path, ("item", *(metrics or ("metric", "value"))))
    values: dict[_ScoreKey, float] = {}
    lines: dict[_ScoreKey, int] = {}
    reasons: dict[_ScoreKey, str] = {}
    for row in rows:
        item = row.required("item")
        candidate = _candidate(row, item, candidates, study)
        for metric, field in _cells(row, metrics):
            cell = _ScoreKey(
                item,
                candidate,
                metric,
                row.optional("signature", longest=LONGEST_SIGNATURE) or signature,
            )
            if cell in values:
                raise row.refuse(f"line {lines[cell]} gives '{metric}' for it already.", field)
            values[cell] = row.number_or_nan(field)
            lines[cell] = row.line
            reasons[cell] = row.optional("reason")
    return values, reasons


def _by_run(values: Iterable[_ScoreKey]) -> dict[tuple[str, str], list[_ScoreKey]]:
    """The scores of each metric and signature."""
    cells: dict[tuple[str, str], list[_ScoreKey]] = {}
    for cell in values:
        cells.setdefault((cell.metric, cell.signature), []).append(cell)
    return cells


def _known_candidates(study: Study) -> dict[tuple[str, str], set[str]]:
    """The keys of candidates by item and name: a key, or else the system they are of."""
    rows = Candidate.objects.filter(item__study=study).values_list("item__key", "key", "system")
    candidates: dict[tuple[str, str], set[str]] = {}
    for item, key, system in rows:
        candidates.setdefault((item, system), set()).add(key)
    return candidates | {(item, key): {key} for item, key, _ in rows}


def _candidate(
    row: Row, item: str, candidates: dict[tuple[str, str], set[str]], study: Study
) -> str:
    name = row.optional("candidate") or row.required("system")
    keys = candidates.get((item, name), set())
    if not keys:
        raise row.refuse(f"study '{study.slug}' has no candidate '{name}' of '{item}'.")
    if len(keys) > 1:
        problem = f"system '{name}' has {len(keys)} candidates of '{item}'; name one by its key."
        raise row.refuse(problem, "candidate")
    return next(iter(keys))


def _cells(row: Row, metrics: Sequence[str]) -> list[tuple[str, str]]:
    """The metrics of a row, each with the field that holds its value."""
    if metrics:
        for metric in metrics:
            if len(metric) > LONGEST:
                raise row.refuse(f"a metric's name has at most {LONGEST} characters.", metric)
        return [(metric, metric) for metric in metrics]
    return [(row.required("metric", longest=LONGEST), "value")]
