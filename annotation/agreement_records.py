"""A version of agreement as plain values under the names of its file, each number signed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from django.db.models import QuerySet

from annotation.models import AgreementVersion

COEFFICIENT = (
    *("level", "name", "value", "se", "ci_low", "ci_high", "ci_method", "confidence"),
    *("observed", "expected", "n_items", "n_items_dropped", "n_annotators", "n_labels"),
    *("n_pairable", "prevalence", "reason", "n_resamples", "seed", "warnings"),
)
# The names that a pair has in the file, and its columns.
PAIR = {
    "question": "question__name",
    "annotator_a": "annotator_a",
    "annotator_b": "annotator_b",
    "n_overlap": "n_shared",
    "observed": "observed",
    "expected": "expected",
    "kappa": "value",
    "se": "se",
    "ci_low": "ci_low",
    "ci_high": "ci_high",
    "reason": "reason",
}
POSITION = (
    *("round", "question", "annotator", "n_pages", "n_annotators", "first", "last"),
    *("value", "ci_low", "ci_high"),
)


def agreement_records(version: AgreementVersion) -> dict[str, list[dict[str, Any]]]:
    """Every coefficient of every round, rounds against each other, versions of the protocol where
    there are several, the first round's kappas of pairs of annotators, and position effects."""
    return {
        "coefficients": _coefficients(version),
        "between_rounds": _between_rounds(version),
        "by_protocol": _by_protocol(version),
        "pairs": _pairs(version),
        "positions": list(_records(version.position_effects.all(), POSITION)),
    }


def _coefficients(version: AgreementVersion) -> list[dict[str, Any]]:
    names = ("round", "with_flagged", "question", "by", *COEFFICIENT)
    return [
        row | _signature(version, row, str(row["round"]))
        for row in _records(version.coefficients.all(), names)
    ]


def _between_rounds(version: AgreementVersion) -> list[dict[str, Any]]:
    names = ("question", "level", "earlier", "later", "by", "n_pairs", *COEFFICIENT[1:])
    return [
        row | _signature(version, row, f"{row['earlier']}-{row['later']}")
        for row in _records(version.round_coefficients.all(), names)
    ]


def _by_protocol(version: AgreementVersion) -> list[dict[str, Any]]:
    names = ("round", "protocol", "question", *COEFFICIENT)
    rows = _records(version.protocol_coefficients.all(), names)
    return [
        row | _signature(version, row, f"{row['round']}|protocol:{row['protocol']}") for row in rows
    ]


def _records(rows: QuerySet[Any], names: Sequence[str]) -> Iterator[dict[str, Any]]:
    columns = ("question__name" if name == "question" else name for name in names)
    return (dict(zip(names, row, strict=True)) for row in rows.values_list(*columns))


def _pairs(version: AgreementVersion) -> list[dict[str, Any]]:
    rows = version.pairs.filter(round=version.first_round, is_kappa=True)
    return [dict(zip(PAIR, row, strict=True)) for row in rows.values_list(*PAIR.values())]


def _signature(version: AgreementVersion, row: dict[str, Any], rounds: str) -> dict[str, str]:
    """All that tells the number from others of the same input: question, level, condition."""
    parts = [row["name"], f"question:{row['question']}", f"level:{row['level']}"]
    if row.get("by"):
        # Of rounds against each other it is who judged again.
        parts.append(f"{'by' if 'earlier' in row else 'condition'}:{row['by']}")
    parts += [f"ci:{row['ci_method']}", f"round:{rounds}"]
    if not row.get("with_flagged", True):
        parts.append("flagged:without")
    return {"signature": "|".join([*parts, f"input:{version.fingerprint[:12]}"])}
